"""A check of a directory that a crash left: it finds nothing wrong, as long as a recovery loses nothing.

A process dies at each of its file calls, in every way: in its first checkpoint, when segments are there and no
snapshot; between the snapshot that replaces a segment and the removal of that segment; in the middle of an erasure.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from tests.sim.crashing import DEATHS, Death, everything, moments, reopen
from topics.core.commands import Append, Claim, Claimer, Configure, Delete, Drop, Publish, PutRouter, Stage
from topics.core.match import Match
from topics.core.records import Records
from topics.engine.findings import FsckReport
from topics.engine.fsck import fsck
from topics.routermodel import RouterConfig
from topics.storage.fs import FileSystem
from topics.testing.clock import SimClock
from topics.testing.driver import Driver
from topics.testing.fakedisk import FakeDisk
from topics.testing.faultfs import Call, FaultFs
from topics.testing.workload import SMALL, run_workload

STRATA = 4
DIRECTORY = "/data"


@dataclass(slots=True)
class Left:
    """What a death left."""

    name: str
    disk: FakeDisk
    clock: SimClock


def checked(fs: FileSystem, clock: SimClock, repair: bool = False) -> FsckReport:
    chance = random.Random(7)
    return fsck(fs, DIRECTORY, clock, lambda: chance.getrandbits(64), SMALL, repair)


def records(*numbers: int, tag: str = "") -> Records:
    return Records.of([{"data": {"n": number}, **({"tag": tag} if tag else {})} for number in numbers])


def run_jobs(driver: Driver, clock: SimClock) -> None:
    """Dead letters, an open stage, a batch and a router before the first checkpoint; then a drop and an erasure."""
    driver.do(Configure("plain", {"durability": "fsync"}))
    driver.do(Configure("jobs", {"type": "queue", "durability": "fsync", "max_deliveries": 1, "dead_letter": "dead"}))
    driver.do(Configure("gone", {"durability": "fsync"}))
    driver.do(PutRouter("copies", RouterConfig(source="plain", dest="copy")))
    driver.do(Append("plain", records(*range(6), tag="secret")))
    driver.do(Append("gone", records(1, 2)))
    driver.do(Append("jobs", records(*range(4))))
    driver.do(Claim("jobs", (Claimer("w", 2, 10),)))
    clock.advance(50)
    driver.do(Claim("jobs", (Claimer("w", 1, 10_000),)))
    driver.do(Stage("open", "plain", records(20, 21)))
    driver.do(Stage("published", "plain", records(22, 23)))
    driver.do(Publish(("published",), "spark", 1))
    driver.checkpoint()
    driver.do(Drop("gone"))
    driver.do(Delete("plain", before_seq=3))
    driver.checkpoint()
    driver.do(Append("plain", records(*range(6, 12), tag="kept")))
    driver.do(Delete("plain", match=Match(b"secret", prefix=False)))
    driver.engine.checkpoint(driver.engine.erasable("plain", 0))
    driver.work()
    driver.do(Append("plain", records(13)))
    driver.close()


def deaths_of(work: Callable[[Driver, SimClock], None], choose: Callable[[Call], list[Death]]) -> Iterator[Left]:
    disk, clock = FakeDisk(), SimClock()
    fs = FaultFs(disk)
    driver = Driver(fs, clock, SMALL)
    found: list[Left] = []

    def on_call(call: Call) -> None:
        for death in choose(call) if call.changes else ():
            name = f"{call.index}:{death} ({call.name} of {call.path})"
            fork, chance = disk.fork(), random.Random(name)
            left = fork.kill() if death == "killed" else fork.crash(death, chance)
            found.append(Left(name, left, SimClock(clock.now_ms(), clock.ticks_ns())))

    fs.on_call = on_call
    work(driver, clock)
    yield from found


def assert_healthy(left: Left) -> None:
    """A check says so before and after the recovery, and a repair has nothing to do."""
    before = left.disk.contents()
    report = checked(left.disk, left.clock, repair=True)
    assert report.clean, (left.name, report.findings)
    assert not report.lost and not report.repaired, left.name
    assert {**before, f"{DIRECTORY}/lock": b""} == {**left.disk.contents(), f"{DIRECTORY}/lock": b""}, left.name
    recovered = left.disk.fork()
    driver = reopen(recovered, left.clock)
    kept = {(kept.topic, kept.partition): kept.records for kept in report.kept if not kept.topic.startswith("stage ")}
    assert kept.keys() == everything(driver).keys(), left.name
    again = checked(recovered.kill(), left.clock)
    assert again.clean and not again.lost, (left.name, again.findings)


@pytest.mark.parametrize("stratum", range(STRATA))
def test_a_crash_at_any_file_call_leaves_no_findings(stratum: int) -> None:
    def choose(call: Call) -> list[tuple[Death, int]]:
        return [(DEATHS[call.index // STRATA % len(DEATHS)], 0)] if call.index % STRATA == stratum else []

    found = moments(run_workload, choose)
    assert found
    for moment in found:
        assert_healthy(Left(moment.name, moment.disk, moment.clock))


def test_a_crash_in_the_first_checkpoint_or_an_erasure_leaves_no_findings() -> None:
    found = list(deaths_of(run_jobs, lambda call: [DEATHS[call.index % len(DEATHS)], "killed"]))
    assert found
    for left in found:
        assert_healthy(left)


@pytest.mark.soak
@pytest.mark.parametrize("death", DEATHS)
def test_a_crash_in_any_way_at_any_file_call_leaves_no_findings(death: Death) -> None:
    for left in deaths_of(run_jobs, lambda call: [death]):
        assert_healthy(left)
    for moment in moments(run_workload, lambda call: [(death, 1)]):
        assert_healthy(Left(moment.name, moment.disk, moment.clock))
