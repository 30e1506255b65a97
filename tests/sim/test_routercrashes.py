"""A net of routers that dies at each of its file calls, in every way: copies that were seen are seen as they were."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.engine.rig import SMALL, Rig
from tests.sim.crashing import DEATHS, Death
from tests.sim.routernet import show
from topics.core.commands import Command, Configure, Delete, Drop, DropRouter, PutRouter
from topics.engine.fsck import fsck
from topics.routermodel import Guarantee, RouterConfig
from topics.testing import FakeDisk, SimClock
from topics.testing.faultfs import Call

STRATA = 4
Texts = dict[tuple[str, int], bytes]
"""What readers saw, by topic and seq."""


@dataclass(slots=True)
class Quiet:
    """What was seen when nothing was under way, and what of it a power loss must not take."""

    seen: Texts
    durable: Texts


def look(rig: Rig) -> Quiet:
    quiet = Quiet({}, {})
    for topic in rig.engine.machine.topics:
        log = rig.log(topic.name)
        for seq, text in show(rig, topic.name).records.items():
            quiet.seen[topic.name, seq] = text
            if seq <= log.synced_seq:
                quiet.durable[topic.name, seq] = text
    return quiet


def route(source: str, dest: str, **fields: object) -> PutRouter:
    return PutRouter(f"{source}->{dest}", RouterConfig(source=source, dest=dest, **fields))  # type: ignore[arg-type]


def history(rig: Rig) -> list[Callable[[], object]]:
    """A chain, a ring, a filter, a full destination, evictions, topics that go, and checkpoints in between."""

    def do(command: Command) -> Callable[[], object]:
        return lambda: rig.driver.do(command)

    def write(topic: str, count: int) -> Callable[[], object]:
        drafts = [{"data": {"n": number}, "tag": "xy"[number % 2], "node": topic} for number in range(count)]
        return lambda: rig.write(topic, *drafts)

    return [
        do(Configure("b", {"durability": "fsync"})),
        do(Configure("c", {"cap_records": 7})),
        do(Configure("f", {"cap_records": 4, "discard": "reject"})),
        do(route("a", "b")),
        do(route("b", "c", guarantee=Guarantee.EXACTLY_ONCE)),
        do(route("c", "d", filter=("tag", "Eq", "x"))),
        do(route("a", "f")),
        write("a", 3),
        write("c", 2),
        rig.checkpoint,
        write("a", 600),
        do(route("r1", "r2", allow_cycle=True)),
        do(route("r2", "r1", allow_cycle=True)),
        write("r1", 2),
        write("r2", 1),
        lambda: rig.clock.advance(300),
        write("a", 1),
        do(Delete("f", before_seq=100)),
        rig.checkpoint,
        do(Delete("a", before_seq=300)),
        write("a", 2),
        do(Drop("a")),
        write("b", 1),
        rig.checkpoint,
        write("r1", 700),
        do(DropRouter("r1->r2")),
        rig.checkpoint,
    ]


def moments(choose: Callable[[Call], list[Death]]) -> list[tuple[str, FakeDisk, SimClock, Quiet, bool]]:
    rig = Rig()
    rig.configure("quiet")
    rig.checkpoint()
    disk, quiet = rig.disk, look(rig)
    found = []

    def on_call(call: Call) -> None:
        for death in choose(call) if call.changes else ():
            fork = disk.fork()
            left = fork.kill() if death == "killed" else fork.crash(death, random.Random(call.index))
            clock = SimClock(rig.clock.now_ms(), rig.clock.ticks_ns())
            found.append((f"{call.index} {death}: {call.name} {call.path}", left, clock, quiet, death == "killed"))

    rig.fs.on_call = on_call
    for happens in history(rig):
        happens()
        rig.work()
        quiet = look(rig)
    return found


def check(name: str, disk: FakeDisk, clock: SimClock, quiet: Quiet, killed: bool) -> None:
    directory = disk.fork()
    rig = Rig(SMALL, disk, clock)
    now = look(rig)
    for (topic, seq), text in (quiet.seen if killed else quiet.durable).items():
        if rig.engine.machine.topics.get(topic) is not None and seq >= rig.log(topic).low:
            assert now.seen.get((topic, seq)) == text, (name, topic, seq)
    for place, text in quiet.seen.items():
        assert now.seen.get(place, text) == text, (name, place, "is another record")
    report = fsck(directory, "/data", clock, lambda: 7, SMALL)
    assert report.clean, (name, report.findings)
    kept = {kept.topic: kept.records for kept in report.kept}
    rig.work()
    before = look(rig)
    rig.kill()
    assert look(rig).seen == before.seen, (name, "a second recovery finds something else")
    assert set(kept) == {topic.name for topic in rig.engine.machine.topics}, name


@pytest.mark.parametrize("stratum", range(STRATA))
def test_no_crash_breaks_a_promise(stratum: int) -> None:
    found = moments(lambda call: [DEATHS[call.index // STRATA % len(DEATHS)]] if call.index % STRATA == stratum else [])
    assert found
    for moment in found:
        check(*moment)
