"""Copies of records: the same but for seq, time and what a router changes, however they are made."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topics.core import block as blocks
from topics.core.block import Block
from topics.core.match import Match
from topics.core.payload import CopiedRun, Selection, Shape, slice_block
from topics.core.records import Records
from topics.core.run import MemoryRun, seq_range
from topics.core.stamp import STAMP

TEXTS = st.text('ab"\\é%', max_size=4)
DRAFTS = st.fixed_dictionaries(
    {"data": st.one_of(st.integers(), TEXTS, st.lists(st.integers(), max_size=3))},
    optional={"tag": TEXTS, "node": TEXTS, "meta": st.dictionaries(TEXTS, TEXTS, max_size=2)},
)


def block_of(drafts: list[Any], first_seq: int = 1, ts: int = 1700000000000) -> Block:
    return Records.of(drafts).encode(first_seq, ts).as_block()


def rows(block: Block) -> list[dict[str, Any]]:
    found = []
    for index, record in enumerate(msgspec.json.decode(b"[%b]" % bytes(block.text))):
        assert record.get("data") == msgspec.json.decode(block.data(index))
        meta = block.meta(index)
        assert record.get("meta") == (None if meta is None else msgspec.json.decode(meta))
        node = block.node(index)
        assert record.get("$node") == (None if node is None else node.decode())
        found.append(record | {"tag": block.tag(index).decode()})
    return found


def expected(block: Block, chosen: list[int] | None, shape: Shape, first_seq: int, ts: int) -> list[dict[str, Any]]:
    every = rows(block)
    copies = []
    for at, index in enumerate(range(block.count) if chosen is None else chosen):
        row = every[index] | {"$seq": first_seq + at, "$ts": ts}
        if shape.drops_node:
            row.pop("$node", None)
        if shape.drops_tag:
            row["tag"] = ""
        if shape.stamp:
            row["meta"] = (row.get("meta") or {}) | {STAMP: f"{shape.stamp}{block.first_seq + index}"}
        copies.append(row)
    return copies


@given(
    st.lists(DRAFTS, min_size=1, max_size=45),
    st.integers(1, 10**6),
    st.integers(1, 10**6),
    st.sampled_from([1700000000001, 99, 999999999999]),
    st.builds(Shape, st.booleans(), st.booleans(), st.sampled_from(["", 'r/s"/1/0/'])),
    st.data(),
)
def test_copies_say_what_the_records_say(
    drafts: list[Any], source_seq: int, first_seq: int, ts: int, shape: Shape, data: st.DataObject
) -> None:
    shape = shape._replace(stamp=shape.stamp.replace('"', ""))
    half = len(drafts) // 2
    parts = [block_of(drafts[:half], source_seq)] if half else []
    block = blocks.concat([*parts, block_of(drafts[half:], source_seq + half, 1700000000007)])
    chosen = data.draw(st.none() | st.lists(st.integers(0, len(drafts) - 1), min_size=1, unique=True).map(sorted))
    selection = Selection(block, None if chosen is None else np.array(chosen, np.int64), shape)
    copied = selection.encoded(first_seq, ts)
    assert rows(copied.as_block()) == expected(block, chosen, shape, first_seq, ts)
    assert copied.payload_bytes == selection.payload_bytes == int(copied.as_block().sizes.sum())
    assert copied.first_seq == first_seq and copied.count == selection.count
    run, plain = CopiedRun(selection, first_seq, ts), MemoryRun(copied.as_block())
    assert (run.live_count, run.live_bytes, run.last_seq) == (plain.live_count, plain.live_bytes, plain.last_seq)
    assert bytes(run.block.text) == copied.text
    assert run.find(Match(b"a", prefix=True), 10**9).tolist() == plain.find(Match(b"a", prefix=True), 10**9).tolist()
    assert run.mark(seq_range(first_seq, first_seq + 1)) == plain.mark(seq_range(first_seq, first_seq + 1))
    assert run.live_from(first_seq) == plain.live_from(first_seq)


@pytest.mark.parametrize("first_seq", [101, 99, 1000, 961])
def test_numbers_of_any_length_are_put_in(first_seq: int) -> None:
    """Of the same length throughout, they are overwritten; otherwise the text is put together anew."""
    block = block_of([{"data": {"n": number}, "node": "n"} for number in range(40)], 500)
    for chosen in (None, np.arange(1, 40)):
        selection = Selection(block, chosen, Shape())
        wanted = expected(block, None if chosen is None else chosen.tolist(), Shape(), first_seq, 1700000000009)
        assert rows(selection.encoded(first_seq, 1700000000009).as_block()) == wanted
    assert rows(block) == rows(block_of([{"data": {"n": n}, "node": "n"} for n in range(40)], 500)), "left as it was"


def test_copies_at_the_same_place_are_made_once() -> None:
    selection = Selection(block_of([{"data": 1}] * 3), None, Shape())
    assert selection.encoded(7, 5) is selection.encoded(7, 5)
    assert selection.encoded(8, 5) is not selection.encoded(7, 5)


@pytest.mark.parametrize(("count", "size", "small"), [(512, 1, True), (513, 1, False), (1, 70_000, False)])
def test_what_goes_into_a_tail(count: int, size: int, small: bool) -> None:
    assert Selection(block_of([{"data": "x" * size}] * count), None, Shape()).is_small is small


@given(st.lists(DRAFTS, min_size=1, max_size=6), st.booleans(), st.data())
def test_a_slice_of_a_block(drafts: list[Any], copied: bool, data: st.DataObject) -> None:
    other = [{"data": 0, "tag": "t"}]
    block = blocks.concat([block_of(other, 5), block_of(drafts, 6, 1700000000009)])
    start = data.draw(st.integers(0, block.count - 1))
    end = data.draw(st.integers(start + 1, block.count))
    piece = slice_block(block, start, end, copied)
    assert rows(piece) == rows(block)[start:end] and piece.first_seq == 5 + start
    assert [piece.ts(index) for index in range(piece.count)] == [block.ts(index) for index in range(start, end)]
    if copied:
        assert isinstance(piece.text, bytes) and not np.shares_memory(piece.ends, block.ends)
