from __future__ import annotations

import pytest

from tests.storage.samples import (
    DATA,
    HOT,
    INDEX,
    SALT,
    Row,
    block_of,
    key,
    live_rows,
    read_bytes,
    reopen,
    simple_rows,
    write,
)
from topics.limits import BLOCK_RECORDS
from topics.storage.segmentfile import scan
from topics.storage.segmentwriter import SegmentWriter, write_segment
from topics.testing import FakeDisk, FaultFs, MonitorFs, SimulatedCrash


def test_small_neighbours_become_one_block_and_large_ones_stay() -> None:
    disk = FakeDisk()
    small = [simple_rows(seq, 1) for seq in range(1, 101)]
    large = simple_rows(101, BLOCK_RECORDS + 1)
    after_hole = simple_rows(large[-1].seq + 10, 1)
    (section,) = write(disk, 1, [(key(1), [*small, large, after_hole])])
    assert section.blocks == 3
    run = reopen(disk, 1).run(0)
    assert [run.block_at(seq)[0].count for seq in (50, 200, run.last_seq)] == [100, BLOCK_RECORDS + 1, 1]
    assert run.block_at(large[-1].seq + 5)[0].first_seq == after_hole[0].seq


def test_a_leap_in_time_that_does_not_fit_a_block_splits_it() -> None:
    disk = FakeDisk()
    rows = [[Row(1, 0, b"1")], [Row(2, 2**32 - 1, b"2")], [Row(3, 2**32, b"3")]]
    (section,) = write(disk, 1, [(key(1), rows)])
    assert section.blocks == 2
    assert [row.ts for row in live_rows(reopen(disk, 1).run(0))] == [0, 2**32 - 1, 2**32]


def test_an_empty_section_is_left_out() -> None:
    disk = FakeDisk()
    sections = write(
        disk, 1, [(key(1), []), (key(2), [simple_rows(1, 3)]), (key(3), []), (key(4), [simple_rows(1, 2)])]
    )
    assert [section.log_id for section in sections] == [2, 4]
    assert [section.log_id for section in reopen(disk, 1).sections] == [2, 4]
    list(scan(DATA, disk.map(DATA).view, 1))


def test_both_files_are_durable_before_the_writer_returns() -> None:
    monitor = MonitorFs(FakeDisk())
    write(monitor, 1, [(key(1), [simple_rows(1, 10, tag=b"t")])])
    for path in (DATA, INDEX):
        assert monitor.name_is_durable(path)
        monitor.assert_synced(path, len(read_bytes(monitor, path)))


def test_a_failed_writer_leaves_no_draft_behind() -> None:
    for call in ("write_at", "sync", "rename"):
        disk = FakeDisk()
        disk.make_dir(HOT)
        faulty = FaultFs(disk)
        faulty.fail(call)
        with pytest.raises(OSError, match="Input/output error"):
            write(faulty, 1, [(key(1), [simple_rows(1, 10)])])
        assert disk.list(HOT) == []


def test_a_crash_while_writing_leaves_a_whole_segment_or_none() -> None:
    rows = simple_rows(1, 20, tag=b"t")
    calls = count_calls()
    assert calls > 10
    for index in range(calls):
        for mode in ("lost", "torn", "zeroed", "reordered", "kept"):
            disk = FakeDisk(index)
            disk.make_dir(HOT)
            faulty = FaultFs(disk)
            faulty.crash_at(index)
            with pytest.raises(SimulatedCrash):
                write(faulty, 1, [(key(1), [rows])])
            after = disk.crash(mode)
            if after.exists(DATA):
                assert live_rows(reopen(after, 1).run(0)) == rows


def count_calls() -> int:
    disk = FakeDisk()
    disk.make_dir(HOT)
    faulty = FaultFs(disk)
    write(faulty, 1, [(key(1), [simple_rows(1, 20, tag=b"t")])])
    return len(faulty.calls)


def test_ten_thousand_small_logs_share_two_files() -> None:
    disk = FakeDisk()
    disk.make_dir(HOT)
    block = block_of(simple_rows(1, 10, tag=b"t"))
    sections = ((key(log_id, f"topic-{log_id}"), [(block, None)]) for log_id in range(10_000))
    write_segment(disk, HOT, 1, SALT, 0, sections)
    assert len(disk.list(HOT)) == 2
    segment = reopen(disk, 1)
    assert len(segment.sections) == 10_000
    assert [row.seq for row in live_rows(segment.run(9_999, 10, 70))] == list(range(1, 11))


def test_blocks_of_a_section_must_ascend() -> None:
    disk = FakeDisk()
    disk.make_dir(HOT)
    with pytest.raises(AssertionError, match="ascend"), SegmentWriter(disk, HOT, 1, SALT, 0) as writer:
        writer.section(key(1))
        writer.add(block_of(simple_rows(5, 2)))
        writer.add(block_of(simple_rows(6, 2)))
