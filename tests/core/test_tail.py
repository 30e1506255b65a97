from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.rig import frozen
from topics.core import tail as module
from topics.core.block import TS_SPAN_MS_MAX, Block
from topics.core.encoded import EncodedRecords
from topics.core.match import Match
from topics.core.records import Records
from topics.core.run import DEAD, seq_range
from topics.core.tail import Tail
from topics.limits import BLOCK_RECORDS, BLOCK_TEXT_BYTES

TS = 1_748_470_000_123


def batch(first_seq: int, *items: dict[str, Any], ts: int = TS) -> EncodedRecords:
    return Records.of(items).encode(first_seq, ts)


def tail_of(*batches: EncodedRecords) -> Tail:
    tail = Tail(batches[0].first_seq, batches[0].ts)
    for one in batches:
        tail.extend(one)
    return tail


def rows(block: Block) -> list[tuple[int, int, bytes, bytes | None, bytes | None, bytes]]:
    return [
        (block.first_seq + at, block.ts(at), block.tag(at), block.node(at), block.meta(at), block.data(at))
        for at in range(block.count)
    ]


def test_columns_appear_when_the_first_record_needs_them() -> None:
    tail = tail_of(
        batch(5, {"data": 1}),
        batch(6, {"data": 2, "tag": "a"}, {"data": 3}),
        batch(8, {"data": 4, "node": "n"}, ts=TS + 2),
        batch(9, {"data": 5, "meta": {"k": "v"}}, ts=TS + 2),
        batch(10, {"data": 6}, ts=TS + 7),
    )
    expected = [
        (5, TS, b"", None, None, b"1"),
        (6, TS, b"a", None, None, b"2"),
        (7, TS, b"", None, None, b"3"),
        (8, TS + 2, b"", b"n", None, b"4"),
        (9, TS + 2, b"", None, b'{"k":"v"}', b"5"),
        (10, TS + 7, b"", None, None, b"6"),
    ]
    assert rows(tail.freeze().block) == expected
    for seq in range(5, 11):
        for limit in range(1, 8):
            block, marks = tail.block_of(seq, limit)
            assert rows(block) == expected[seq - 5 : seq - 5 + limit] and marks is None
            assert (block.first_ts, block.last_ts) == (block.ts(0), block.ts(block.count - 1))
            assert [record["$seq"] for record in json.loads(b"[%b]" % bytes(block.text))] == [
                row[0] for row in rows(block)
            ]


def test_node_names_are_numbered_anew_in_the_tail() -> None:
    tail = tail_of(
        batch(1, {"data": 1, "node": "a"}, {"data": 2, "node": "b"}),
        batch(3, {"data": 3, "node": "b"}, {"data": 4, "node": "c"}, {"data": 5}),
        batch(6, {"data": 6, "node": "a"}),
    )
    block, _ = tail.block_of(2, 5)
    assert [block.node(at) for at in range(5)] == [b"b", b"b", b"c", None, b"a"]


def test_what_fits_a_tail(monkeypatch: pytest.MonkeyPatch) -> None:
    tail = tail_of(batch(1, {"data": 1}))
    assert tail.takes(2, TS, BLOCK_RECORDS - 1, 10)
    assert not tail.takes(2, TS, BLOCK_RECORDS, 10), "too many records"
    assert not tail.takes(3, TS, 1, 10), "a seq is missing"
    assert tail.takes(2, TS, 1, BLOCK_TEXT_BYTES - tail.text_bytes - 1)
    assert not tail.takes(2, TS, 1, BLOCK_TEXT_BYTES - tail.text_bytes), "too much text"
    assert tail.takes(2, TS + TS_SPAN_MS_MAX, 1, 10)
    assert not tail.takes(2, TS + TS_SPAN_MS_MAX + 1, 1, 10), "too far apart in time for a 32-bit column"
    monkeypatch.setattr(module, "BLOCK_TEXT_BYTES", 8)
    assert Tail(1, TS).takes(1, TS, 1, 100), "an empty tail takes a batch of any size"


ITEMS = st.fixed_dictionaries(
    {"data": st.text("ab", max_size=30)},
    optional={"tag": st.sampled_from("xy"), "node": st.sampled_from("mn"), "meta": st.just({"k": "v"})},
)
STEP_MS = st.sampled_from([0, 0, 0, 0, 1, 5, TS_SPAN_MS_MAX])
SKIPPED = st.sampled_from([0, 0, 0, 1])


@given(st.lists(st.tuples(ITEMS | st.just({"data": 7}), STEP_MS, st.booleans(), SKIPPED), max_size=12))
def test_a_plain_record_is_added_as_a_batch_of_one_would_be(steps: list[tuple[dict[str, Any], int, bool, int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK_RECORDS", 4)
        patch.setattr(module, "BLOCK_TEXT_BYTES", 250)
        by_batch, by_record = Tail(5, TS), Tail(5, TS)
        ts = TS
        for item, step_ms, delete, skipped in steps:
            ts += step_ms
            one, records = batch(by_batch.last_seq + 1 + skipped, item, ts=ts), Records.of([item])
            fits = by_batch.takes(one.first_seq, ts, 1, len(one.text))
            if fits:
                by_batch.extend(one)
            if records.is_plain:
                assert records.plain_text(one.first_seq, ts) == one.text
                assert by_record.add(one.first_seq, ts, one.text, records.payload_bytes) == fits
            elif fits:
                by_record.extend(one)
            if fits and delete:
                assert by_record.mark(seq_range(one.first_seq, one.first_seq + 1)) == by_batch.mark(
                    seq_range(one.first_seq, one.first_seq + 1)
                )
            assert frozen(by_record) == frozen(by_batch)


def test_a_plain_record_is_added_as_long_as_it_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    text = batch(1, {"data": 1}).text
    monkeypatch.setattr(module, "BLOCK_RECORDS", 2)
    tail = Tail(1, TS)
    assert [tail.add(seq, TS, text, 1) for seq in (1, 2, 3)] == [True, True, False], "too many records"
    monkeypatch.setattr(module, "BLOCK_RECORDS", 9)
    monkeypatch.setattr(module, "BLOCK_TEXT_BYTES", tail.text_bytes + len(text))
    assert not tail.add(3, TS, text, 1) and tail.add(3, TS, text[:-1], 1), "too much text"


def test_marks_grow_with_the_tail_and_freeze_with_it() -> None:
    tail = tail_of(batch(1, {"data": 1}, {"data": 22}))
    assert tail.mark(np.array([1], np.uint64)) == (1, 1)
    tail.extend(batch(3, {"data": 333}))
    assert (tail.live_count, tail.live_bytes) == (2, 5)
    assert tail.block_of(1, 9)[1] == bytearray([DEAD, 0, 0])
    assert tail.block_of(2, 9)[1] is None, "none is dead in this part"
    run = tail.freeze()
    assert (run.live_count, run.live_bytes, run.marks) == (2, 5, bytearray([DEAD, 0, 0]))


def test_a_block_cut_from_a_tail_does_not_change_as_the_tail_grows() -> None:
    tail = tail_of(batch(1, {"data": 1, "tag": "a", "node": "n"}))
    block, _ = tail.block_of(1, 5)
    before = rows(block)
    tail.extend(batch(2, {"data": 2, "tag": "b", "node": "m", "meta": {}}, ts=TS + 1))
    assert rows(block) == before and block.count == 1


def test_the_index_follows_the_tail() -> None:
    every = Match(b"", prefix=True)
    tail = tail_of(batch(1, {"data": 1}))
    assert tail.find(every, 99).tolist() == [], "no record has a tag"
    tail.extend(batch(2, {"data": 2, "tag": "a"}))
    assert tail.find(every, 99).tolist() == [2]
    tail.mark(np.array([2], np.uint64))
    tail.extend(batch(3, {"data": 3, "tag": "a"}, {"data": 4, "tag": "b"}))
    assert tail.find(Match(b"a", prefix=False), 99).tolist() == [3]
    assert tail.find(every, 4).tolist() == [3]


def test_a_stretch_of_text_is_all_of_it_or_nothing() -> None:
    tail = Tail(5, 1000)
    for seq, text in ((5, b"five"), (6, b"six"), (7, b"seven")):
        assert tail.add(seq, 1000, text, 1)
    assert tail.text_between(5, 7, 100) == b"five,six,seven"
    assert tail.text_between(6, 7, 9) == b"six,seven"
    assert tail.text_between(6, 7, 8) is None
    assert tail.text_between(7, 7, 100) == b"seven"
    for seq, last_seq in ((4, 7), (6, 8), (8, 8), (7, 6)):
        assert tail.text_between(seq, last_seq, 100) is None
    tail.mark(np.array([5], np.uint64))
    assert tail.text_between(6, 7, 100) is None
