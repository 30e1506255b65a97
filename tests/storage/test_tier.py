from __future__ import annotations

import numpy as np
import pytest

from tests.storage.samples import COLD, HOT, Row, flip, key, live_rows, read_bytes, reopen, simple_rows, write
from topics.errors import Damaged
from topics.storage.draft import TEMP_SUFFIX
from topics.storage.fs import FileSystem, Mapping
from topics.storage.segment import Segment, write_marks
from topics.storage.segmentfile import data_name, index_name
from topics.storage.tier import Tiers, shred
from topics.testing import CRASH_MODES, FakeDisk, FaultFs, MonitorFs, SimulatedCrash

ROWS = simple_rows(1, 20, tag=b"t")
LIVE = [row for row in ROWS if row.seq != 7]


def marked_segment(fs: FileSystem) -> Segment:
    """Segment 1 with one deleted record."""
    write(fs, 1, [(key(1), [ROWS])])
    segment = reopen(fs, 1, cold=True)
    segment.run(0).mark(np.array([7], np.uint64))
    pending = segment.pending_marks(0)
    assert pending is not None
    write_marks(fs, segment.path(), [pending])
    segment.marks_durable(pending)
    return segment


def read(fs: FileSystem) -> list[Row]:
    return live_rows(reopen(fs, 1, cold=True).run(0))


def test_a_relocated_segment_reads_the_same() -> None:
    disk = FakeDisk()
    segment = marked_segment(disk)
    run = segment.run(0)
    assert live_rows(run) == LIVE
    tiers = Tiers(disk, HOT, COLD)
    tiers.relocate(1)
    assert disk.list(HOT) == []
    assert disk.list(COLD) == [data_name(1), index_name(1)]
    segment.moved()
    assert live_rows(run) == LIVE
    after = disk.crash("lost")
    assert after.list(HOT) == []
    assert read(after) == LIVE


def test_marks_after_a_relocation_go_to_the_cold_file() -> None:
    disk = FakeDisk()
    segment = marked_segment(disk)
    Tiers(disk, HOT, COLD).relocate(1)
    segment.moved()
    run = segment.run(0)
    run.mark(np.array([8], np.uint64))
    pending = segment.pending_marks(0)
    assert pending is not None
    write_marks(disk, segment.path(), [pending])
    segment.marks_durable(pending)
    assert live_rows(run) == [row for row in LIVE if row.seq != 8]
    assert read(disk) == live_rows(run)


@pytest.mark.parametrize("mode", CRASH_MODES)
def test_a_crash_at_any_call_leaves_it_readable(mode: str) -> None:
    counting = FaultFs(prepared(0))
    Tiers(counting, HOT, COLD).relocate(1)
    calls = len(counting.calls)
    assert calls > 20
    for index in range(calls):
        for when in ("before", "after"):
            disk = prepared(index)
            faulty = FaultFs(disk)
            faulty.crash_at(index, when)
            with pytest.raises(SimulatedCrash):
                Tiers(faulty, HOT, COLD).relocate(1)
            after = disk.crash(mode)
            assert read(after) == LIVE, f"crash {when} call {index}: {counting.calls[index]}"
            tiers = Tiers(after, HOT, COLD)
            tiers.sweep({1})
            assert read(after) == LIVE
            left = after.list(HOT) + after.list(COLD)
            assert not [name for name in left if name.endswith(TEMP_SUFFIX)]
            assert left.count(data_name(1)) == 1
            if after.exists(f"{HOT}/{data_name(1)}"):
                tiers.relocate(1)
            assert read(after) == LIVE


def prepared(seed: int) -> FakeDisk:
    disk = FakeDisk(seed)
    marked_segment(disk)
    disk.make_dir(COLD)
    return disk


def test_nothing_is_unlinked_before_the_copy_is_durable() -> None:
    monitor = MonitorFs(FakeDisk())
    marked_segment(monitor)

    def copied(path: str) -> bool:
        cold = path.replace(HOT, COLD)
        return path.startswith(HOT) and monitor.name_is_durable(cold) and monitor.durable_length(cold) > 0

    monitor.allow_unlink(copied)
    Tiers(monitor, HOT, COLD).relocate(1)
    assert monitor.list(HOT) == []


def test_a_damaged_segment_stays_where_it_is() -> None:
    disk = FakeDisk()
    marked_segment(disk)
    flip(disk, f"{HOT}/{data_name(1)}", 400)
    with pytest.raises(Damaged):
        Tiers(disk, HOT, COLD).relocate(1)
    assert disk.list(HOT) == [data_name(1), index_name(1)]
    assert disk.list(COLD) == []


def test_a_failing_cold_disk_leaves_the_hot_files() -> None:
    for call in ("write_at", "sync", "rename", "sync_dir"):
        disk = FakeDisk()
        marked_segment(disk)
        faulty = FaultFs(disk)
        faulty.fail(call, path=f"{COLD}*", always=True)
        with pytest.raises(OSError, match="Input/output error"):
            Tiers(faulty, HOT, COLD).relocate(1)
        assert disk.list(HOT) == [data_name(1), index_name(1)]
        assert read(disk) == LIVE


class RottenDisk(FakeDisk):
    """Gives back other bytes than were written to drafts."""

    def map(self, path: str) -> Mapping:
        if path.endswith(TEMP_SUFFIX):
            flip(self, path, 100)
        return super().map(path)


def test_a_copy_that_is_not_what_was_written_is_noticed() -> None:
    disk = RottenDisk()
    marked_segment(disk)
    with pytest.raises(Damaged, match="not what was copied"):
        Tiers(disk, HOT, COLD).relocate(1)
    assert disk.list(COLD) == []
    assert read(disk) == LIVE


def test_a_sweep_removes_what_nothing_needs() -> None:
    disk = FakeDisk()
    for number in (1, 2, 3):
        write(disk, number, [(key(1), [ROWS])])
    tiers = Tiers(disk, HOT, COLD)
    tiers.relocate(2)
    tiers.relocate(3)
    for path in (f"{HOT}/{data_name(9)}{TEMP_SUFFIX}", f"{COLD}/{data_name(1)}", f"{COLD}/notes.txt"):
        disk.open(path, "create").close()
    assert tiers.numbers() == [1, 2, 3]
    removed = tiers.sweep({1, 2})
    assert sorted(removed) == [
        f"{COLD}/{data_name(1)}",
        f"{COLD}/{data_name(3)}",
        f"{COLD}/{index_name(3)}",
        f"{HOT}/{data_name(9)}{TEMP_SUFFIX}",
    ]
    assert disk.list(COLD) == [data_name(2), index_name(2), "notes.txt"]
    assert tiers.numbers() == [1, 2]


def test_removing_a_segment_is_durable_in_both_directories() -> None:
    disk = FakeDisk()
    write(disk, 1, [(key(1), [ROWS])])
    write(disk, 2, [(key(1), [ROWS])])
    tiers = Tiers(disk, HOT, COLD)
    tiers.relocate(2)
    tiers.remove(1)
    tiers.remove(2)
    tiers.remove(3)
    survivors = Tiers(disk.crash("lost"), HOT, COLD)
    assert survivors.numbers() == []
    with pytest.raises(FileNotFoundError, match="in none of"):
        survivors.find(data_name(1))


def test_shredding_overwrites_before_it_unlinks() -> None:
    monitor = MonitorFs(FakeDisk())
    write(monitor, 1, [(key(1), [ROWS])])
    path = f"{HOT}/{data_name(1)}"
    size = len(read_bytes(monitor, path))
    mapping = monitor.map(path)
    seen: list[bool] = []

    def is_zero(unlinked: str) -> bool:
        seen.append(monitor.is_durable(unlinked, 0, size) and bytes(mapping.view) == bytes(size))
        return True

    monitor.allow_unlink(is_zero)
    shred(monitor, path)
    assert seen == [True]
    assert not monitor.exists(path)


def test_what_a_segment_takes_on_disk_counts_in_both_directories() -> None:
    disk = FakeDisk()
    write(disk, 1, [(key(1), [ROWS])])
    tiers = Tiers(disk, HOT, COLD)
    data, index = (len(read_bytes(disk, f"{HOT}/{name}")) for name in (data_name(1), index_name(1)))
    assert (tiers.size_bytes(1), tiers.size_bytes(2)) == (data + index, 0)
    tiers.relocate(1)
    disk.open(f"{HOT}/{data_name(1)}", "create").write_at(0, [b"left by a copy"])
    assert tiers.size_bytes(1) == data + index + len(b"left by a copy")
