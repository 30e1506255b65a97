from __future__ import annotations

from dataclasses import replace

import pytest

from tests.storage.walrig import SMALL, Rig, entry
from topics.errors import LogStopped
from topics.testing import FakeDisk, FaultFs, SimClock


@pytest.fixture
def rig() -> Rig:
    made = Rig(FaultFs(FakeDisk()), settings=replace(SMALL, shards=3))
    made.start()
    return made


def test_a_log_has_one_shard_and_the_meta_log_has_the_first(rig: Rig) -> None:
    assert [rig.wal.shard_of(log_id) for log_id in range(7)] == [0, 1, 2, 0, 1, 2, 0]
    with pytest.raises(AssertionError):
        rig.wal.append(0, [entry(1, 1)], sync=True)


def test_one_call_of_work_serves_every_shard(rig: Rig) -> None:
    for log_id in range(3):
        rig.add(log_id)
    assert rig.wal.work()
    assert [rig.heard.upto("synced", shard) for shard in range(3)] == [1, 1, 1]
    assert [rig.wal.metrics(shard).frames for shard in range(3)] == [1, 1, 1]
    assert not rig.wal.work()


def test_the_next_deadline_is_the_earliest_of_all_shards(rig: Rig) -> None:
    assert isinstance(rig.clock, SimClock)
    assert rig.wal.due_ns() is None
    rig.add(2, sync=False)
    first_due_ns = rig.clock.ticks_ns() + SMALL.disk_sync_ms * 1_000_000
    rig.clock.advance(5)
    rig.add(0, sync=False)
    rig.wal.work()
    assert rig.wal.due_ns() == first_due_ns


def test_a_stop_closes_every_shard_and_names_the_one_that_could_not(rig: Rig) -> None:
    assert isinstance(rig.fs, FaultFs)
    for log_id in range(3):
        rig.add(log_id, sync=False)
    rig.fs.fail("sync", path="*/1-*.wal")
    with pytest.raises(LogStopped, match="WAL shard 1 has stopped"):
        rig.wal.close()
    assert [rig.heard.upto("synced", shard) for shard in range(3)] == [1, 0, 1]
    rig.recover()
    assert len(rig.replayed) == 3


def test_a_group_with_a_refused_entry_moves_no_tail(rig: Rig) -> None:
    with pytest.raises(Exception, match="ends at position 1, the writer expected 5"):
        rig.wal.append(0, [entry(0, 1), entry(3, 1), entry(0, 6)], sync=True)
    assert (rig.wal.tail(0), rig.wal.tail(3)) == (0, 0)
    assert not rig.wal.work()
