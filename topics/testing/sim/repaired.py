"""A server dies, its files are damaged and repaired: what comes up again must keep the promises made until then.

Somewhere in each life its disk is copied as the death of the process would leave it. After the life the copy is damaged
and `fsck --repair` run on it; a server starts on what that gives, what is left is taken and everything is read. The
checkers are given the history up to the copy with that look at its end. What the report of the repair says to be lost,
or perhaps to be back, they allow, topic by topic, and nothing else.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from topics.engine.findings import Doubt, FsckReport
from topics.engine.fsck import fsck
from topics.engine.opening import SALT_BITS, options
from topics.engine.salvage import TOPICS_MISSING
from topics.errors import TopicsError
from topics.testing.checkers import check
from topics.testing.checkers.events import Call, Fault, History, Outcome, Violation
from topics.testing.fakedisk import FakeDisk
from topics.testing.sim.damage import damage
from topics.testing.sim.machine import SETTINGS
from topics.testing.sim.plan import LETTERS, PROMISES, split
from topics.testing.sim.world import Copy, World

LATER_MS = 10 * 60 * 1000
_SEQ = re.compile(r"seq (\d+)")
_ITEM = re.compile(r": (\d+) was")

RULES: tuple[tuple[str, Doubt | None], ...] = (
    ("log.lost", None), ("log.suffix", None), ("retention.early", None), ("lease.lost", None), ("copy.missing", None),
    ("batch.part", None), ("batch.lost", None), ("batch.moment", None), ("batch.answered", None),
    ("group.passed", None),
    ("log.back", Doubt.RECORDS), ("lease.done", Doubt.RECORDS), ("lease.both", Doubt.RECORDS),
    ("log.twice", Doubt.ANSWERS), ("dedup.", Doubt.ANSWERS),
    ("lease.", Doubt.PROGRESS), ("heap.", Doubt.PROGRESS), ("group.", Doubt.PROGRESS), ("copy.", Doubt.PROGRESS),
    ("batch.", Doubt.PROGRESS),
)  # fmt: skip
"""What a report must say of a topic for a rule to be let pass: that seqs of it are lost (None), or a doubt. The first
rule that fits counts; what is in no rule is never let pass."""

JOBS: Final = ("lease.", "heap.", "batch.")
"""Rules that look for a job among the dead letters, too."""


@dataclass(slots=True)
class Repair:
    """What was done to a copy, and what the checkers say to it."""

    damages: list[str]
    """Each names its kind first, then the file."""
    report: FsckReport
    violations: list[Violation]

    @property
    def kinds(self) -> list[str]:
        """What was done, without where."""
        return [f"{told.split(' at ')[0]} of {told.rpartition('.')[2]}" for told in self.damages]


def check_repaired(history: History, copied: Copy, seed: int) -> Repair:
    """Damage the copy of a life's disk, repair it, and hold it against the history."""
    chance = random.Random(f"damage {seed}")
    disk = copied.disk
    world = World(seed, name="repaired")
    world.timeline.clock.jump(LATER_MS)  # Later than anything in it, whatever the clocks did.

    def run(disk: FakeDisk, repair: bool) -> FsckReport:
        return fsck(
            disk,
            SETTINGS.data_dir,
            world.timeline.clock,
            lambda: chance.getrandbits(SALT_BITS),
            options(SETTINGS),
            repair,
        )

    healthy = run(disk.fork(), False)
    done = damage(disk, SETTINGS.data_dir, chance)
    try:
        report = run(disk, True)
        again = run(disk, False)
    except (TopicsError, OSError) as error:
        return Repair(done, FsckReport(SETTINGS.data_dir), [Violation("repair.refused", f"{done}: {error!r}")])
    found: list[Violation] = []
    if healthy.findings or healthy.lost:
        found.append(Violation("check.healthy", f"what a crash left is called damaged: {healthy.findings[0].message}"))
    if not again.clean:
        found.append(Violation("repair.again", f"{done}: damaged after the repair: {again.findings[0].message}"))
    seen = world.look_at(disk, cut(history, copied))
    if world.machine.start_error is not None:
        found.append(Violation("repair.start", f"{done}: the server cannot start: {world.machine.start_error!r}"))
    else:
        found += [
            replace(one, rule=f"repair: {one.rule}", text=f"{one.text} ({'; '.join(done)})")
            for one in check(seen)
            if not is_told(report, one)
        ]
    return Repair(done, report, found)


def cut(history: History, copied: Copy) -> History:
    """The history as it is known when the copy is made."""
    calls: list[Call] = []
    for call in history.calls:
        if call.sent < copied.at and not call.asked.get("final"):
            known = call.done is not None and call.done < copied.at
            calls.append(call if known or not call.possible else replace(call, outcome=Outcome.UNKNOWN, done=None))
    faults = [fault for fault in history.faults if fault.at < copied.at]
    jumps = [at for at in history.jumps if at < copied.at]
    died = Fault(copied.at, copied.at_ms, stopped=copied.stopped)
    return History(dict(history.topics), calls, [*faults, died], jumps=[*jumps, copied.at])


def is_told(report: FsckReport, violation: Violation) -> bool:
    """Whether the report says by topic what the violation says."""
    return any(_tells(report, topic, violation) for topic in _topics(violation))


def _topics(violation: Violation) -> Iterator[str]:
    """The topics that a violation names, those that these are copies of, and those that have their dead letters."""
    for place, promise in PROMISES.items():
        if re.search(rf"\b{re.escape(split(place)[0])}\b", violation.text):
            yield split(place)[0]
            # Jobs and messages that died there are in its letters.
            if violation.rule.startswith(JOBS) and (letters := LETTERS.get(split(place)[0])):
                yield letters
            if promise.source:
                yield split(promise.source)[0]


def _tells(report: FsckReport, topic: str, violation: Violation) -> bool:
    if TOPICS_MISSING in report.notes and topic not in {kept.topic for kept in report.kept}:
        return True
    doubts = [each for each in report.may_be_back if each.topic == topic]
    if any(each.doubt is Doubt.TOPIC for each in doubts):
        return True
    fitting = [doubt for rule, doubt in RULES if violation.rule.startswith(rule)]
    if not fitting:
        return False
    doubt = fitting[0]
    if doubt is None:
        return any(lost.topic == topic for lost in report.lost)
    seq = _SEQ.search(violation.text) or _ITEM.search(violation.text)
    return any(
        each.doubt is doubt and (doubt is not Doubt.RECORDS or not seq or _holds(each.first_seq, each.last_seq, seq[1]))
        for each in doubts
    )


def _holds(first_seq: int, last_seq: int, seq: str) -> bool:
    return first_seq <= int(seq) <= last_seq
