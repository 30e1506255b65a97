"""Crashing a workload at its file calls, and what is done with the disk that each crash leaves.

One run of a workload passes all its moments. Before every call that may change the disk, the disk is forked, the fork
loses its power or its process, and is kept with a copy of the history: a `Moment`. Afterwards each moment is checked:
an engine is recovered from it, compared, recovered again, and worked with until it dies again. A moment is named by the
number of its call, a way to die and a seed, and a failure prints the three:

    TOPICS_CRASH=417:reordered:2 python -m pytest tests/sim/test_crash.py -k replay
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from topics.core.commands import Configure
from topics.errors import TopicsError
from topics.storage.fs import FileSystem
from topics.testing.audit import adopt, audit, probe
from topics.testing.clock import SimClock
from topics.testing.driver import Driver
from topics.testing.fakedisk import FakeDisk
from topics.testing.faultfs import Call, FaultFs
from topics.testing.history import History, Row, Seen, look
from topics.testing.platter import CRASH_MODES, CrashMode
from topics.testing.workload import SMALL, Rig

Death = CrashMode | Literal["killed"]
DEATHS: tuple[Death, ...] = ("killed", *CRASH_MODES)

FRESH_IDS = 100_000
"""Records of a rig that goes on after a crash have ids that no other rig's have."""

Choose = Callable[[Call], Sequence[tuple[Death, int]]]
"""The ways to die at a call, each with a seed."""


@dataclass(slots=True)
class Moment:
    """What a crash left: a disk, and the promises made until then."""

    name: str
    disk: FakeDisk
    clock: SimClock
    history: History
    power_lost: bool
    rng: random.Random


def moments(workload: Callable[[Rig], None], choose: Choose, prepare: Callable[[FaultFs], object] = id) -> list[Moment]:
    """Run a workload on a new disk and die in it as often as is chosen."""
    disk = FakeDisk()
    fs = FaultFs(disk)
    prepare(fs)
    rig = Rig(fs, SimClock())
    found = watch(rig, fs, disk, choose)
    workload(rig)
    return found


def watch(rig: Rig, fs: FaultFs, disk: FakeDisk, choose: Choose) -> list[Moment]:
    """The moments of what a rig does from now on; they come in as it goes."""
    found: list[Moment] = []

    def on_call(call: Call) -> None:
        for death, seed in choose(call) if call.changes else ():
            name = f"{call.index}:{death}:{seed}"
            found.append(_moment(f"{name} ({call.name} of {call.path})", disk, rig, death, random.Random(name)))

    fs.on_call = on_call
    return found


def _moment(name: str, disk: FakeDisk, rig: Rig, death: Death, rng: random.Random) -> Moment:
    fork = disk.fork()
    left = fork.kill() if death == "killed" else fork.crash(death, rng)
    clock = SimClock(rig.clock.now_ms(), rig.clock.ticks_ns())
    return Moment(name, left, clock, rig.history.copy(), death != "killed", rng)


def check(moment: Moment, levels: int) -> None:
    """All that has to hold after a crash. What was recovered dies `levels` times more, each time elsewhere."""
    try:
        if levels:
            _die_in_recovery(moment)
        rig, disk = check_recovered(moment.disk, moment.clock, moment.history, power_lost=moment.power_lost)
        if levels:
            for later in _go_on(rig, disk, moment.rng):
                check(later, levels - 1)
    except AssertionError as error:
        error.add_note(f"TOPICS_CRASH={moment.name}")
        raise


def check_recovered(disk: FakeDisk, clock: SimClock, history: History, *, power_lost: bool) -> tuple[Rig, FakeDisk]:
    """Recover and compare with the history; what was found is durable, and found again; the rig to go on with."""
    driver = reopen(disk, clock)
    audit(history, driver.engine, power_lost=power_lost, now_ms=clock.now_ms())
    first = everything(driver)
    durable = everything(reopen(disk.fork().crash("lost"), clock))
    assert _rows(durable) == _rows(first), "readers were shown what was not durable: a power loss took it"
    again = disk.fork()
    life = 1 + max([0, *(row.seq for line in history.lines.values() for row in line.seen[-1].rows)])
    rig = Rig(FaultFs(again), clock, history, seed=2, first_id=FRESH_IDS * life)
    assert everything(rig.driver) == first, "a second recovery finds something else than the first"
    findings = audit(history, rig.driver.engine, power_lost=power_lost, now_ms=clock.now_ms())
    adopt(history, rig.driver.engine, findings, power_lost=power_lost, ticks_ns=clock.ticks_ns())
    return rig, again


def reopen(fs: FileSystem, clock: SimClock) -> Driver:
    """No crash leaves a directory that cannot be opened."""
    try:
        return Driver(fs, clock, SMALL, seed=1)
    except (TopicsError, OSError) as error:
        raise AssertionError(f"the directory cannot be opened: {error}") from error


def everything(driver: Driver) -> dict[tuple[str, int], Seen]:
    return {
        (topic.name, partition): look(driver.engine, topic.name, partition, 0)
        for topic in driver.engine.machine.topics
        for partition in range(topic.config.partitions)
    }


def _rows(found: dict[tuple[str, int], Seen]) -> dict[tuple[str, int], tuple[Row, ...]]:
    return {key: seen.rows for key, seen in found.items()}


def _die_in_recovery(moment: Moment) -> None:
    """Die at one call of the recovery itself, perhaps in another way, and recover from that."""
    rng = moment.rng
    trial = FaultFs(moment.disk.fork())
    reopen(trial, moment.clock)
    chosen = rng.choice([call for call in trial.calls if call.changes])
    death = rng.choice(DEATHS)
    disk = moment.disk.fork()
    fs = FaultFs(disk)
    left: list[FakeDisk] = []

    def on_call(call: Call) -> None:
        if call.index == chosen.index:
            fork = disk.fork()
            left.append(fork.kill() if death == "killed" else fork.crash(death, rng))

    fs.on_call = on_call
    reopen(fs, moment.clock)
    try:
        power_lost = moment.power_lost or death != "killed"
        check_recovered(left[0], moment.clock, moment.history.copy(), power_lost=power_lost)
    except AssertionError as error:
        error.add_note(f"when the recovery has died, too: {death} at {chosen}")
        raise


def _go_on(rig: Rig, disk: FakeDisk, rng: random.Random) -> list[Moment]:
    """Ask again what was asked before, write more, take a checkpoint; one moment in all of that."""
    fs = rig.fs
    assert isinstance(fs, FaultFs)
    drawn = (rng.choice(DEATHS), rng.getrandbits(32))
    found = watch(rig, fs, disk, lambda call: [drawn] if rng.random() < 0.1 else [])
    probe(rig.history, rig.do, rig.clock.now_ms())
    for name in sorted(rig.history.topics):
        rig.do(rig.append(name, 2, tag="z"))
    rig.do(Configure("late", {"durability": "fsync"}))
    rig.checkpoint()
    rig.advance(300)
    rig.do(rig.append("late", 3))
    return rng.sample(found, min(1, len(found)))
