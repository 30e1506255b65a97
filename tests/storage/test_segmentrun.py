"""A segment's run against the plainest reading of the same records."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.storage.samples import (
    DATA,
    HOT,
    Row,
    flip,
    key,
    live_rows,
    read_bytes,
    reopen,
    simple_rows,
    stretches,
    write,
)
from topics.core.match import Match
from topics.core.run import DEAD, LIVE
from topics.errors import Damaged
from topics.limits import BLOCK_RECORDS
from topics.storage.segment import write_marks
from topics.storage.segmentfile import data_name, scan
from topics.storage.segmentrun import SegmentRun
from topics.testing import FakeDisk

ONE_MAPPING_BYTES = 1
"""So small a budget that a mapping is dropped whenever another one is used."""


class Naive:
    """The same answers from a list."""

    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows
        self.dead: set[int] = set()

    def live(self, seq: int = 0) -> list[Row]:
        return [row for row in self.rows if row.seq >= seq and row.seq not in self.dead]

    def live_from(self, seq: int) -> tuple[int, int]:
        return len(self.live(seq)), sum(row.size for row in self.live(seq))

    def seq_after_ts(self, ts: int) -> int:
        return next((row.seq for row in self.rows if row.ts > ts), self.rows[-1].seq + 1)

    def find(self, match: Match, below: int) -> list[int]:
        return [row.seq for row in self.live() if match.matches(row.tag) and row.seq < below]

    def passed(self, skip_count: int, skip_bytes: int, seq: int) -> list[Row]:
        taken: list[Row] = []
        for row in self.live(seq):
            if len(taken) >= skip_count and sum(row.size for row in taken) >= skip_bytes:
                break
            taken.append(row)
        return taken


def check(run: SegmentRun, naive: Naive) -> None:
    assert live_rows(run) == naive.live()
    assert (run.live_count, run.live_bytes) == naive.live_from(0)
    first, last = naive.rows[0], naive.rows[-1]
    seqs = range(max(0, first.seq - 2), last.seq + 3)
    for seq in seqs:
        assert run.live_from(seq) == naive.live_from(seq)
    for end in range(first.seq, last.seq + 1):
        assert run.count_live(first.seq, end) == len([row for row in naive.live() if row.seq <= end])
        assert run.count_live(end, last.seq) == len(naive.live(end))
    for ts in {ts + shift for ts in (row.ts for row in naive.rows) for shift in (-1, 0, 1)}:
        assert run.seq_after_ts(ts) == naive.seq_after_ts(ts)
    for text in (b"", b"a", b"ab", b"b", b"zz", b"a\x00"):
        for prefix in (False, True):
            for below in (0, first.seq, (first.seq + last.seq) // 2, last.seq + 1):
                match = Match(text, prefix)
                assert run.find(match, below).tolist() == naive.find(match, below)


@given(stretches(), st.data(), st.sampled_from([ONE_MAPPING_BYTES, 1 << 30]))
def test_it_answers_like_a_list(blocks: list[list[Row]], data: st.DataObject, budget_bytes: int) -> None:
    disk = FakeDisk()
    write(disk, 1, [(key(9), [simple_rows(1, 2)]), (key(1), blocks)])
    segment = reopen(disk, 1, budget_bytes)
    naive = Naive([row for block in blocks for row in block])
    run = segment.run(1)
    check(run, naive)
    for _ in range(2):
        seqs = data.draw(st.lists(st.integers(0, naive.rows[-1].seq + 3), max_size=8))
        fresh = [row for row in naive.live() if row.seq in seqs]
        few = sorted({seq for seq in seqs if run.first_seq <= seq <= run.last_seq})
        marked = run.mark(few if data.draw(st.booleans()) else np.array(seqs, np.uint64))
        assert marked == (len(fresh), sum(row.size for row in fresh))
        naive.dead |= set(seqs)
        check(run, naive)
        pending = segment.pending_marks(0)
        if pending is not None and data.draw(st.booleans()):
            write_marks(disk, segment.path(), [pending])
            segment.marks_durable(pending)
            check(run, naive)
            check(reopen(disk, 1, budget_bytes).run(1), naive)


@given(stretches(), st.data())
def test_a_floor_moves_past_just_enough(blocks: list[list[Row]], data: st.DataObject) -> None:
    disk = FakeDisk()
    write(disk, 1, [(key(1), blocks)])
    naive = Naive([row for block in blocks for row in block])
    run = reopen(disk, 1).run(0)
    seqs = data.draw(st.lists(st.sampled_from([row.seq for row in naive.rows])))
    run.mark(np.array(seqs, np.uint64))
    naive.dead |= set(seqs)
    first, last = naive.rows[0].seq, naive.rows[-1].seq
    for _ in range(5):
        seq = data.draw(st.integers(max(0, first - 1), last + 2))
        count, size = data.draw(st.integers(0, len(naive.rows) + 2)), data.draw(st.sampled_from([0, 1, 30, 400, 10**6]))
        end, passed_count, passed_bytes = run.seq_at_live(count, size, seq)
        expected = naive.passed(count, size, seq)
        assert (passed_count, passed_bytes) == (len(expected), sum(row.size for row in expected))
        reached = passed_count >= count and passed_bytes >= size
        if not expected and reached:
            assert end == max(seq, first)
        else:
            assert end == (expected[-1].seq + 1 if reached else last + 1)


def test_marking_twice_counts_once() -> None:
    disk = FakeDisk()
    rows = simple_rows(1, 10)
    write(disk, 1, [(key(1), [rows])])
    run = reopen(disk, 1).run(0)
    assert run.mark(np.array([3, 3, 4], np.uint64)) == (2, rows[2].size + rows[3].size)
    assert run.mark(np.array([3, 4], np.uint64)) == (0, 0)
    assert run.live_count == 8


def test_marking_records_whose_sizes_are_known_reads_no_block() -> None:
    disk = FakeDisk()
    path = f"{HOT}/{data_name(1)}"
    rows = simple_rows(1, 2 * BLOCK_RECORDS)
    write(disk, 1, [(key(1), [rows])])
    sizes = {row.seq: row.size for row in rows}
    whole = reopen(disk, 1).run(0)
    for offset in [frame.offset for frame in scan(path, disk.map(path).view, 1)][1:3]:
        flip(disk, path, offset + 100)
    run, naive = reopen(disk, 1).run(0, whole.live_count, whole.live_bytes), Naive(rows)
    for seqs in ([2, 3, BLOCK_RECORDS + 5], [3, 4], [BLOCK_RECORDS, BLOCK_RECORDS + 1]):
        fresh = [seq for seq in seqs if seq not in naive.dead]
        assert run.mark(seqs, sizes) == (len(fresh), sum(sizes[seq] for seq in fresh))
        naive.dead.update(seqs)
        assert (run.live_count, run.live_bytes) == naive.live_from(0)
    assert run.mark([2, 3], sizes) == (0, 0)
    assert [seq for seq in range(1, 10) if run.is_live(seq)] == [1, 5, 6, 7, 8, 9]
    assert run.pending_seqs().tolist() == sorted(naive.dead)


def test_a_clean_block_has_no_marks_and_is_parsed_once() -> None:
    disk = FakeDisk()
    write(disk, 1, [(key(1), [simple_rows(1, 10)])])
    run = reopen(disk, 1).run(0)
    block, marks = run.block_at(5)
    assert marks is None
    assert run.block_at(6)[0] is block


def test_a_damaged_block_is_named_and_its_neighbours_are_served() -> None:
    disk = FakeDisk()
    path = f"{HOT}/{data_name(1)}"
    write(disk, 1, [(key(1, "orders"), [simple_rows(1, 3), simple_rows(BLOCK_RECORDS, BLOCK_RECORDS)])])
    offset = list(scan(path, disk.map(path).view, 1))[1].offset
    flip(disk, path, offset + 100)
    run = reopen(disk, 1).run(0)
    assert run.block_at(1)[0].count == 3
    with pytest.raises(Damaged) as caught:
        run.block_at(BLOCK_RECORDS)
    assert caught.value.detail == {
        "file": path,
        "offset": offset,
        "first_seq": BLOCK_RECORDS,
        "last_seq": 2 * BLOCK_RECORDS - 1,
        "topic": "orders",
    }
    with pytest.raises(Damaged):
        run.mark(np.array([1, BLOCK_RECORDS], np.uint64))
    with pytest.raises(Damaged):
        run.mark([1, BLOCK_RECORDS])
    assert run.block_at(1)[1] is None, "a mark that fails leaves nothing marked"


def test_damage_is_found_again_when_the_mapping_was_dropped() -> None:
    disk = FakeDisk()
    path = f"{HOT}/{data_name(1)}"
    write(disk, 1, [(key(1), [simple_rows(1, 3)])])
    segment = reopen(disk, 1)
    run = segment.run(0)
    run.block_at(1)
    flip(disk, path, next(iter(scan(path, disk.map(path).view, 1))).offset + 100)
    run.block_at(1)
    segment.moved()
    with pytest.raises(Damaged):
        run.block_at(1)


def test_given_counts_are_taken_and_others_are_counted_from_the_flags() -> None:
    disk = FakeDisk()
    rows = simple_rows(1, 10)
    write(disk, 1, [(key(1), [rows])])
    segment = reopen(disk, 1)
    run = segment.run(0, 10, 70)
    assert (run.live_count, run.live_bytes) == (10, 70)
    run.mark(np.array([1], np.uint64))
    pending = segment.pending_marks(0)
    assert pending is not None
    write_marks(disk, segment.path(), [pending])
    counted = reopen(disk, 1).run(0)
    assert (counted.live_count, counted.live_bytes) == (9, sum(row.size for row in rows[1:]))


def test_what_is_live_in_a_stretch_is_counted_from_the_flags_alone() -> None:
    disk = FakeDisk()
    # A seq is missing between any two blocks, else they were one.
    blocks = [simple_rows(first, 9) for first in (1, 11, 21, 31, 41)]
    write(disk, 1, [(key(1), blocks)])
    segment = reopen(disk, 1)
    segment.run(0).mark([1, 2, 13, 14, 15, 26, 49])
    pending = segment.pending_marks(0)
    assert pending is not None
    write_marks(disk, segment.path(), [pending])
    live = {row.seq for block in blocks for row in block} - {1, 2, 13, 14, 15, 26, 49}
    for first, last in ((1, 49), (1, 1), (2, 13), (5, 45), (10, 20), (16, 25), (26, 49)):
        run = reopen(disk, 1).run(0, len(live), 0)
        assert run.count_live(first, last) == len(live.intersection(range(first, last + 1)))


def flagged(disk: FakeDisk, seqs: list[int]) -> SegmentRun:
    """A run of three blocks, whose file has the flags of some records."""
    write(disk, 1, [(key(9), [simple_rows(1, 2)]), (key(4), [simple_rows(first, 9) for first in (1, 11, 21)])])
    segment = reopen(disk, 1)
    segment.run(1).mark(seqs)
    pending = segment.pending_marks(1)
    assert pending is not None
    write_marks(disk, segment.path(), [pending])
    return reopen(disk, 1).run(1)


def test_it_says_whose_records_it_has_and_where_their_flags_are() -> None:
    disk = FakeDisk()
    run = flagged(disk, [1, 3])
    assert (run.segment_no, run.section_no, run.log_id) == (1, 1, 4)
    assert read_bytes(disk, DATA)[run.flags_offset() :][:9] == bytes([DEAD, LIVE, DEAD, *[LIVE] * 6])
    assert run.flagged_live() == 25


def test_the_first_live_record_from_a_seq_on() -> None:
    run = flagged(FakeDisk(), [1, 2, *range(11, 20), 21, 28, 29])
    found = {seq: run.first_live(seq) for seq in (0, 1, 3, 9, 10, 12, 20, 22, 27, 28, 29)}
    assert found == {0: 3, 1: 3, 3: 3, 9: 9, 10: 22, 12: 22, 20: 22, 22: 22, 27: 27, 28: None, 29: None}


def test_flags_that_may_not_be_durable_are_written_again() -> None:
    disk = FakeDisk()
    flagged(disk, [1, 22, 25])
    segment = reopen(disk, 1)
    run = segment.run(1)
    assert segment.pending_marks(1) is None
    run.doubt_flags()
    assert run.pending_seqs().tolist() == [1, 22, 25]
    pending = segment.pending_marks(1)
    assert pending is not None and run.flags_offset() in pending.offsets.tolist()
    untouched = segment.run(0)
    untouched.doubt_flags()
    assert segment.pending_marks(0) is None
