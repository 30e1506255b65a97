from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.heaprig import HEAP, HeapPair
from tests.core.queuerig import Pair
from topics.core.block import Block, concat
from topics.core.cut import PLAIN, Shape, cut
from topics.core.log import Log
from topics.core.read import Span, plan_read
from topics.core.records import Records
from topics.model import parse_records
from topics.wire.arrow import JOB_SCHEMA, MESSAGE_SCHEMA, SCHEMA, arrow_jobs, arrow_messages, arrow_page

TS = 1_748_470_000_123


def block(items: list[dict[str, Any]], first_seq: int = 1, ts: int = TS) -> Block:
    return Records.of(items).encode(first_seq, ts).as_block()


def rows(*spans: Span, shape: Shape = PLAIN) -> list[dict[str, Any]]:
    table = pa.ipc.open_stream(arrow_page(spans, shape)).read_all()
    assert table.schema == SCHEMA
    table.validate(full=True)
    found: list[dict[str, Any]] = table.to_pylist()
    return found


def whole(each: Block) -> Span:
    return Span(each, 0, each.count)


def test_columns_as_stored() -> None:
    items = [{"data": {"x": 1}, "tag": "t", "node": "n", "meta": {"k": "v"}}, {"data": "ü"}, {"data": None}]
    first, second, third = rows(whole(block(items)))
    assert (first["seq"], first["node"], first["tag"]) == (1, "n", "t")
    assert (first["meta"], first["data"]) == ('{"k":"v"}', '{"x":1}')
    assert round(first["ts"].timestamp() * 1000) == TS
    assert (second["data"], second["tag"], second["node"], second["meta"]) == ('"ü"', None, None, None)
    assert third["data"] == "null"


def test_nothing_is_a_stream_without_rows() -> None:
    assert rows() == []


def test_meta_only_when_wanted() -> None:
    (row,) = rows(whole(block([{"data": 1, "meta": {"k": "v"}}])), shape=Shape(meta=False))
    assert row["meta"] is None


def test_several_spans_are_one_batch() -> None:
    spans = [whole(block([{"data": 1}])), Span(block([{"data": 2}, {"data": 3}], 2, TS + 5), 1, 2)]
    with pa.ipc.open_stream(arrow_page(spans, PLAIN)) as stream:
        (batch,) = stream
    assert batch.column("seq").to_pylist() == [1, 3]
    assert [each.timestamp() for each in batch.column("ts").to_pylist()] == [TS / 1000, (TS + 5) / 1000]


def test_times_within_a_block() -> None:
    joined = concat([block([{"data": 1}]), block([{"data": 2}], 2, TS + 70_000)])
    assert [round(row["ts"].timestamp() * 1000) for row in rows(whole(joined))] == [TS, TS + 70_000]


ITEM = st.fixed_dictionaries(
    {"data": st.none() | st.integers() | st.text(max_size=8) | st.lists(st.integers(), max_size=3)},
    optional={
        "tag": st.text(min_size=1, max_size=4),
        "node": st.sampled_from(["a", "b"]),
        "meta": st.dictionaries(st.text(max_size=3), st.text(max_size=3), min_size=1, max_size=2),
    },
)


@given(st.lists(ITEM, min_size=1, max_size=40), st.data())
def test_it_says_what_json_says(items: list[dict[str, Any]], data: st.DataObject) -> None:
    stored = block(items)
    positions = data.draw(st.lists(st.sampled_from(range(stored.count)), unique=True).map(sorted))
    span = data.draw(st.sampled_from([whole(stored), Span(stored, 0, stored.count, np.array(positions, np.int64))]))
    if span.chosen is not None and not len(span.chosen):
        return
    records = parse_records(cut([span], Shape(tags=True)))
    found = rows(span)
    assert [row["seq"] for row in found] == [record.seq for record in records]
    assert [row["tag"] for row in found] == [record.tag for record in records]
    assert [row["node"] for row in found] == [record.node for record in records]
    chosen = range(stored.count) if span.chosen is None else span.chosen.tolist()
    assert [row["data"].encode() for row in found] == [stored.data(at) for at in chosen]
    metas = [stored.meta(at) for at in chosen]
    assert [row["meta"] and row["meta"].encode() for row in found] == metas


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_of_text(kind: Any) -> None:
    stored = block([{"data": 1}, {"data": [2]}])
    moved = Block(stored.first_seq, TS, TS, stored.ends, stored.data_lens, kind(stored.text))
    assert [row["data"] for row in rows(whole(moved))] == ["1", "[2]"]


def spans_of(log: Log) -> list[Span]:
    return plan_read(log, log.visible_seq, 0, 1000, 1 << 20).spans


def columns(stream: bytes, schema: Any, *names: str) -> list[tuple[Any, ...]]:
    table = pa.ipc.open_stream(stream).read_all()
    assert table.schema == schema
    table.validate(full=True)
    return [tuple(row[name] for name in names) for row in table.to_pylist()]


def test_jobs_have_a_state_and_the_times_they_were_handed_out() -> None:
    pair = Pair(lease_ms=1000)
    pair.write(4)
    pair.claim(("a", 2))
    pair.nack("a", [2], delay_ms=500)
    pair.write(delay_ms=500)
    log = pair.rig.log("q")
    assert log.queue is not None
    log.queue.leases.expire(pair.now_ms)
    assert columns(
        arrow_jobs(log.queue.leases, spans_of(log), PLAIN), JOB_SCHEMA, "seq", "data", "state", "attempts"
    ) == [
        (1, "0", "leased", 1),
        (2, "1", "delayed", 1),
        (3, "2", "ready", 0),
        (4, "3", "ready", 0),
        (5, "0", "delayed", 0),
    ]
    assert columns(arrow_jobs(log.queue.leases, [], PLAIN), JOB_SCHEMA, "seq") == []


def messages_of(pair: HeapPair) -> list[tuple[Any, ...]]:
    heap, log = pair.rig.heap(), pair.rig.log(HEAP)
    heap.look(log, pair.config, pair.now_ms)
    stream = arrow_messages(log, heap, spans_of(log), PLAIN)
    return columns(stream, MESSAGE_SCHEMA, "seq", "state", "attempts", "priority")


def test_messages_have_a_priority_and_the_deliveries_that_failed() -> None:
    pair = HeapPair(max_retries=1, lease_ms=1000)
    pair.enqueue(-(2**63), 2, 3, 2**63 - 1)
    ((first, second),) = pair.pop(("a", 2))
    assert (first.priority, second.priority) == (-(2**63), 2)
    pair.nack(second, backoff_ms=500)
    assert messages_of(pair) == [
        (1, "leased", 0, -(2**63)),
        (2, "delayed", 1, 2),
        (3, "ready", 0, 3),
        (4, "ready", 0, 2**63 - 1),
    ]
    pair.reprioritize((0, 3), 7)
    pair.wait(1001)
    assert [row for row in messages_of(pair) if row[0] in (2, 3)] == [(2, "ready", 1, 2), (3, "ready", 0, 7)]


def test_a_message_that_failed_too_often_is_nobodys_until_it_is_moved() -> None:
    pair = HeapPair(max_retries=0, lease_ms=1000)
    pair.enqueue(1, 2)
    pair.pop(("a", 1))
    pair.wait(1001)
    assert messages_of(pair) == [(1, "leased", 1, 1), (2, "ready", 0, 2)]
