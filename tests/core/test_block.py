from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topics.core import block as blocks
from topics.core.block import Block
from topics.core.records import Records

TS = 1_748_470_000_123
TEXT = st.text('aä"\\%\n', max_size=4)
ITEMS = st.fixed_dictionaries(
    {"data": st.integers() | TEXT | st.none() | st.dictionaries(TEXT, TEXT, max_size=2)},
    optional={"tag": TEXT, "node": TEXT, "meta": st.dictionaries(TEXT, TEXT, max_size=2)},
)
BATCHES = st.lists(st.tuples(st.lists(ITEMS, min_size=1, max_size=4), st.integers(0, 3)), min_size=1, max_size=5)


def block_of(items: list[dict[str, Any]], first_seq: int = 1, ts: int = TS) -> Block:
    return Records.of(items).encode(first_seq, ts).as_block()


def contents(block: Block) -> list[tuple[Any, ...]]:
    return [
        (
            block.first_seq + index,
            block.ts(index),
            block.tag(index),
            block.node(index),
            block.meta(index),
            block.data(index),
            int(block.sizes[index]),
        )
        for index in range(block.count)
    ]


def series(batches: list[tuple[list[dict[str, Any]], int]], first_seq: int = 8) -> list[Block]:
    """Blocks whose seqs follow each other, each so much later than the one before."""
    made: list[Block] = []
    ts = TS
    for items, elapsed_ms in batches:
        ts += elapsed_ms
        made.append(block_of(items, made[-1].last_seq + 1 if made else first_seq, ts))
    return made


@given(BATCHES)
def test_joined_blocks_hold_what_they_held_apart(batches: list[tuple[list[dict[str, Any]], int]]) -> None:
    parts = series(batches)
    joined = blocks.concat(parts)
    assert contents(joined) == [row for part in parts for row in contents(part)]
    assert (joined.first_seq, joined.last_seq) == (parts[0].first_seq, parts[-1].last_seq)
    assert (joined.first_ts, joined.last_ts) == (parts[0].first_ts, parts[-1].last_ts)
    assert joined.tag_list() == [joined.tag(index) for index in range(joined.count)]
    parsed = json.loads(b"[%b]" % bytes(joined.text))
    assert [record["$seq"] for record in parsed] == list(range(joined.first_seq, joined.last_seq + 1))
    starts = [joined.start(index) for index in range(joined.count)]
    texts = [bytes(joined.text)[start:end] for start, end in zip(starts, joined.ends.tolist(), strict=True)]
    assert [json.loads(text) for text in texts] == parsed


@given(BATCHES, st.booleans())
def test_a_block_is_read_back_from_its_bytes(batches: list[tuple[list[dict[str, Any]], int]], mapped: bool) -> None:
    block = blocks.concat(series(batches))
    body = b"".join(block.encode())
    again = blocks.parse(memoryview(body) if mapped else body)
    assert contents(again) == contents(block)
    assert bytes(again.text) == bytes(block.text)
    assert (again.first_ts, again.last_ts) == (block.first_ts, block.last_ts)
    assert b"".join(again.encode()) == body


@given(BATCHES, st.integers(-2, 14))
def test_timestamps_are_searched(batches: list[tuple[list[dict[str, Any]], int]], offset_ms: int) -> None:
    block = blocks.concat(series(batches))
    expected = sum(block.ts(index) <= TS + offset_ms for index in range(block.count))
    assert block.first_index_after(TS + offset_ms) == expected


def test_the_bytes_of_a_block() -> None:
    block = block_of([{"data": 1, "tag": "t", "node": "n", "meta": {"k": "v"}}, {"data": [2]}], first_seq=7)
    text = (
        b'{"$seq":7,"$ts":1748470000123,"$node":"n","meta":{"k":"v"},"data":1},'
        b'{"$seq":8,"$ts":1748470000123,"data":[2]}'
    )
    columns = blocks.HAS_META | blocks.HAS_TAGS | blocks.HAS_NODES
    assert b"".join(block.encode()) == b"".join(
        [
            blocks.HEADER.pack(7, TS, 2, columns, 1, 3, 1, len(text), 0),
            np.array([68, len(text)], "<u4").tobytes(),
            np.array([1, 3], "<u4").tobytes(),
            np.array([9, 0], "<u4").tobytes(),
            np.array([1, 1], "<u4").tobytes(),
            np.array([1, 0], "<u2").tobytes(),
            b"\x01\x00n",
            b"t",
            text,
        ]
    )


def test_columns_that_nobody_needs_are_not_there() -> None:
    block = blocks.parse(b"".join(block_of([{"data": 1}, {"data": 2}]).encode()))
    assert block.meta_lens is block.ts_deltas is block.tag_ends is block.node_ids is None
    assert block.tag_list() == [b"", b""] and block.node(0) is None and block.meta(1) is None


def test_blocks_with_a_missing_seq_between_them_are_not_joined() -> None:
    with pytest.raises(AssertionError):
        blocks.concat([block_of([{"data": 1}], 1), block_of([{"data": 2}], 3)])


def test_a_block_whose_seqs_have_no_end_is_refused() -> None:
    body = b"".join(Records.of([{"data": 1}, {"data": 2}]).encode(2**64 - 2, 5).block_buffers())
    assert blocks.parse(body).last_seq == 2**64 - 1
    beyond = (2**64 - 1).to_bytes(8, "little") + body[8:]
    with pytest.raises(ValueError, match="2 records from seq 18446744073709551615, and no seq is above"):
        blocks.parse(beyond)
