"""Batches that are cut short by a crash or a failing disk."""

from __future__ import annotations

import errno

import pytest

from tests.sim.crashing import reopen
from topics.core.commands import Append, Configure, Drop, Publish, Stage
from topics.core.records import Records
from topics.engine.recovery import recover
from topics.errors import LogStopped
from topics.model import Published
from topics.testing.clock import SimClock
from topics.testing.driver import Driver
from topics.testing.fakedisk import FakeDisk
from topics.testing.faultfs import FaultFs
from topics.testing.workload import SMALL, Rig


def _records(*ids: int) -> Records:
    return Records.of([{"data": {"id": number}} for number in ids])


def _driver(fs: FaultFs | FakeDisk) -> Driver:
    """Two fsync topics whose logs are in different shards, each with a stage."""
    driver = Driver(fs, SimClock(), SMALL)
    for name in TOPICS:
        driver.do(Configure(name, {"durability": "fsync"}))
        driver.do(Append(name, _records(1)))
    for stage, name in (("s", "a"), ("t", "b")):
        driver.do(Stage(stage, name, _records(2, 3)))
    return driver


TOPICS = ("a", "b")
PUBLISH = Publish(("s", "t"), "p", 1)


def _half_published() -> tuple[Driver, FakeDisk]:
    """A batch that reached one of its two logs before the other one's shard failed."""
    disk = FakeDisk()
    fs = FaultFs(disk)
    driver = _driver(fs)
    fs.fail("write_at", errno.EIO, path="*/wal/1-*", always=True)
    with pytest.raises(LogStopped):
        driver.do(PUBLISH)
    return driver, disk


def test_a_batch_that_a_failed_shard_stopped_is_refused_again_and_happens_after_a_restart() -> None:
    driver, disk = _half_published()
    with pytest.raises(LogStopped):
        driver.do(PUBLISH)
    assert [driver.engine.read(name).count for name in TOPICS] == [1, 1]
    recovered = reopen(disk.kill(), SimClock())
    answer = recovered.do(PUBLISH)
    assert isinstance(answer, Published) and [part.count for part in answer.written] == [2, 2]
    assert [recovered.engine.read(name).count for name in TOPICS] == [3, 3]


def test_asking_for_a_stopped_batch_is_answered_also_when_the_topic_it_waited_for_is_gone() -> None:
    driver, _ = _half_published()
    driver.do(Drop("a"))
    with pytest.raises(LogStopped):
        driver.do(PUBLISH)


def test_nobody_sees_part_of_a_batch_while_a_recovery_finishes_it() -> None:
    _, disk = _half_published()
    engine = recover(disk.kill(), "/data", SimClock(), lambda: 1, SMALL, None)
    assert sum(log.count for log in engine.machine.logs.values()) > 2, "one log has its part already"
    assert [engine.read(name).count for name in TOPICS] == [1, 1]


def test_a_drop_that_is_on_its_way_takes_nothing_before_it_is_durable() -> None:
    """A checkpoint that knows nothing of a topic must not trim what the topic needs if its drop is lost."""
    disk = FakeDisk()
    rig = Rig(disk, SimClock())
    for name in TOPICS:
        rig.do(Configure(name, {"durability": "fsync"}))
    *_, job = rig.driver.engine.begin_checkpoint()
    rig.driver.engine.write_job(job)
    rig.do(Configure("late", {"durability": "fsync"}))
    assert rig.driver.wal.shard_of(rig.driver.engine.machine.topic("late").first_log_id) == 1
    for _ in range(40):
        rig.do(rig.append("late", 10))
    rig.driver.engine.submit(Drop("late"))
    rig.driver.engine.end_checkpoint(job, None)
    rig.driver.wal.work()
    recovered = reopen(disk.crash("lost"), rig.clock)
    assert recovered.engine.state("late").count == 400
