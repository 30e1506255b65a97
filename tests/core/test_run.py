"""What every run answers, held against a plain list: the run of one block in memory, and the growing tail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topics.core import block as blocks
from topics.core.match import Match
from topics.core.records import Records
from topics.core.run import DEAD, MemoryRun, Run, seq_range
from topics.core.tail import Tail

TS = 1_748_470_000_123
FIRST_SEQ = 41
ITEMS = st.fixed_dictionaries(
    {"data": st.text("x", max_size=5)},
    optional={"tag": st.sampled_from(["", "a", "ab", "b"]), "meta": st.just({"k": "v"}), "node": st.just("n")},
)
BATCHES = st.lists(st.tuples(st.lists(ITEMS, min_size=1, max_size=4), st.integers(0, 3)), min_size=1, max_size=5)
SEQS = st.integers(-1, 21).map(lambda offset: FIRST_SEQ + offset)


@dataclass(slots=True)
class Row:
    seq: int
    ts: int
    tag: bytes
    size: int
    live: bool = True


Batches = list[tuple[list[dict[str, Any]], int]]


def build(batches: Batches, tail: bool) -> tuple[Run, list[Row]]:
    rows: list[Row] = []
    parts = []
    ts = TS
    grown = Tail(FIRST_SEQ, TS)
    for items, elapsed_ms in batches:
        ts += elapsed_ms if rows else 0
        encoded = Records.of(items).encode(FIRST_SEQ + len(rows), ts)
        assert grown.takes(encoded.first_seq, ts, encoded.count, len(encoded.text))
        grown.extend(encoded)
        block = encoded.as_block()
        parts.append(block)
        rows += [
            Row(block.first_seq + index, ts, block.tag(index), int(block.sizes[index])) for index in range(block.count)
        ]
    return grown if tail else MemoryRun(blocks.concat(parts)), rows


def check(run: Run, rows: list[Row]) -> None:
    live = [row for row in rows if row.live]
    assert (run.first_seq, run.last_seq) == (rows[0].seq, rows[-1].seq)
    assert (run.first_ts, run.last_ts) == (rows[0].ts, rows[-1].ts)
    assert (run.live_count, run.live_bytes) == (len(live), sum(row.size for row in live))
    for row in rows:
        block, marks = run.block_at(row.seq)
        index = row.seq - block.first_seq
        assert (block.ts(index), block.tag(index), int(block.sizes[index])) == (row.ts, row.tag, row.size)
        assert row.live == (marks is None or marks[index] != DEAD)


BOTH = pytest.mark.parametrize("tail", [False, True], ids=["block", "tail"])


@BOTH
@given(batches=BATCHES, marked=st.sets(st.integers(0, 19)), more=st.sets(st.integers(0, 19)), few=st.booleans())
def test_marks_are_for_ever_and_counted_once(
    tail: bool, batches: Batches, marked: set[int], more: set[int], few: bool
) -> None:
    run, rows = build(batches, tail)
    check(run, rows)
    for positions in (marked, more):
        named = [rows[at] for at in sorted(positions) if at < len(rows)]
        fresh = [row for row in named if row.live]
        if named:
            seqs = [row.seq for row in named]
            assert run.mark(seqs if few else np.array(seqs, np.uint64)) == (len(fresh), sum(row.size for row in fresh))
        for row in fresh:
            row.live = False
        check(run, rows)


@BOTH
@given(batches=BATCHES, marked=st.sets(st.integers(0, 19)), seq=SEQS, ts=st.integers(TS - 2, TS + 16))
def test_what_is_live_from_a_seq_on_and_what_came_after_a_time(
    tail: bool, batches: Batches, marked: set[int], seq: int, ts: int
) -> None:
    run, rows = marked_run(batches, tail, marked)
    live = [row for row in rows if row.live and row.seq >= seq]
    assert run.live_from(seq) == (len(live), sum(row.size for row in live))
    if run.first_seq <= seq <= run.last_seq:
        assert run.count_live(seq, run.last_seq) == len(live)
        assert run.count_live(run.first_seq, seq) == len([row for row in rows if row.live and row.seq <= seq])
    assert run.seq_after_ts(ts) == min((row.seq for row in rows if row.ts > ts), default=run.last_seq + 1)


@BOTH
@given(
    batches=BATCHES,
    marked=st.sets(st.integers(0, 19)),
    seq=SEQS,
    skip_count=st.integers(0, 12),
    skip_bytes=st.integers(0, 40),
)
def test_a_floor_passes_as_few_live_records_as_hold_enough(
    tail: bool, batches: Batches, marked: set[int], seq: int, skip_count: int, skip_bytes: int
) -> None:
    run, rows = marked_run(batches, tail, marked)
    start = max(seq, run.first_seq)
    if start > run.last_seq:
        return
    floor, count, size = start, 0, 0
    for row in rows:
        if row.seq >= start and (count < skip_count or size < skip_bytes):
            floor = row.seq + 1
            count += row.live
            size += row.size if row.live else 0
    assert run.seq_at_live(skip_count, skip_bytes, seq) == (floor, count, size)


@BOTH
@given(
    batches=BATCHES,
    marked=st.sets(st.integers(0, 19)),
    below=SEQS,
    match=st.builds(Match, st.sampled_from([b"", b"a", b"ab", b"c"]), st.booleans()),
)
def test_tags_are_found_through_the_index(
    tail: bool, batches: Batches, marked: set[int], below: int, match: Match
) -> None:
    run, rows = marked_run(batches, tail, marked)
    expected = [row.seq for row in rows if row.live and row.seq < below and match.matches(row.tag)]
    for _ in range(2):
        assert run.find(match, below).tolist() == expected
    run.mark(run.find(match, below))
    assert run.find(match, below).tolist() == []


def marked_run(batches: Batches, tail: bool, marked: set[int]) -> tuple[Run, list[Row]]:
    run, rows = build(batches, tail)
    # Looking before marking makes the index older than the marks.
    run.find(Match(b"", prefix=True), FIRST_SEQ)
    for at in marked & set(range(len(rows))):
        run.mark(seq_range(rows[at].seq, rows[at].seq + 1))
        rows[at].live = False
    return run, rows


def test_a_byte_that_is_not_the_mark_is_alive() -> None:
    run, _ = build([([{"data": 1}, {"data": 2}, {"data": 3}], 0)], tail=False)
    block, _ = run.block_at(FIRST_SEQ)
    marked = MemoryRun(block, bytearray([0x00, DEAD, 0xD4]))
    assert (marked.live_count, marked.live_bytes) == (2, 2)


def test_bytes_known_beforehand_are_not_counted_again() -> None:
    make: Callable[..., MemoryRun] = MemoryRun
    run, _ = build([([{"data": 1}], 0)], tail=False)
    block, _ = run.block_at(FIRST_SEQ)
    assert make(block, None, 1).live_bytes == make(block).live_bytes == 1
