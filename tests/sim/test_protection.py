"""Records that archives have yet to take, over crashes: never lost to retention, never back once they were taken."""

from __future__ import annotations

import random

import pytest

from tests.sim.crashing import DEATHS, Death, reopen
from topics.core.commands import Append, Configure, DropArchive, ReportArchive
from topics.core.records import Records
from topics.testing.clock import SimClock
from topics.testing.driver import Driver
from topics.testing.fakedisk import FakeDisk
from topics.testing.faultfs import Call, FaultFs
from topics.testing.workload import SMALL

CONFIG = {"durability": "fsync", "ttl_ms": 50, "cap_records": 4, "protect_unarchived": True}


def _write(driver: Driver, count: int) -> None:
    driver.do(Append("t", Records.of([{"data": "x" * 100}] * count)))


def _report(driver: Driver, upto_seq: int) -> None:
    driver.do(ReportArchive("t", "lake", upto_seq, "/lake"))


def _seqs(driver: Driver) -> list[int]:
    return [record.seq for record in driver.engine.read("t", limit=1000).records]


def _workload(driver: Driver, clock: SimClock, promise: list[int], written: list[int]) -> None:
    """`promise`: what was reported last, also if it was not answered; all behind it that was acked must be there."""
    driver.do(Configure("t", CONFIG))
    for round_number in range(6):
        _write(driver, 5)
        written[0] += 5
        clock.advance(30)
        if round_number % 2:
            upto_seq = 5 * round_number
            promise.append(upto_seq)
            _report(driver, upto_seq)
        if round_number == 3:
            driver.checkpoint()


@pytest.mark.parametrize("death", DEATHS)
def test_what_is_not_archived_is_there_after_any_crash(death: Death) -> None:
    clock, disk, promise = SimClock(), FakeDisk(), [0]
    written = [0]
    fs = FaultFs(disk)
    found: list[tuple[str, FakeDisk, int, int]] = []

    def on_call(call: Call) -> None:
        if not call.changes:
            return
        fork = disk.fork()
        left = fork.kill() if death == "killed" else fork.crash(death, random.Random(call.index))
        found.append((f"{call.index} {call.name}", left, promise[-1], written[0]))

    driver = Driver(fs, clock, SMALL)
    fs.on_call = on_call
    _workload(driver, clock, promise, written)
    assert _seqs(driver) == list(range(26, 31))
    for name, left, upto_seq, written_count in found:
        later = SimClock(clock.now_ms() + 10_000)
        recovered = reopen(left, later)
        if recovered.engine.machine.topics.get("t") is None:
            continue
        seqs = _seqs(recovered)
        assert set(range(upto_seq + 1, written_count + 1)) <= set(seqs), name
        assert _seqs(reopen(left.fork().kill(), later)) == seqs, name


def test_progress_is_in_snapshots_and_in_the_log() -> None:
    clock, disk = SimClock(), FakeDisk()
    driver = Driver(disk, clock, SMALL)
    driver.do(Configure("t", CONFIG))
    _write(driver, 9)
    _report(driver, 3)
    driver.checkpoint()
    left = disk.kill()
    recovered = reopen(left, clock)
    (archive,) = recovered.engine.state("t").archives
    assert (archive.archive, archive.upto_seq, archive.location) == ("lake", 3, "/lake")
    _report(recovered, 5)
    recovered.do(DropArchive("t", "lake"))
    _report(recovered, 6)
    recovered.close()
    state = reopen(left, clock).engine.state("t")
    assert [(each.archive, each.upto_seq) for each in state.archives] == [("lake", 6)]
    assert state.holding is not None and state.holding.needed_from == 7
