from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topics.core.records import RecordLimits
from topics.core.waits import waits_of
from topics.errors import BatchTooLarge, InvalidRequest, RecordTooLarge, TopicsError
from topics.wire.arrowbody import decode_arrow_write
from topics.wire.query import Query
from topics.wire.records import WriteBatch, decode_write

LIMITS = RecordLimits(batch_records=8, record_bytes=64, tag_bytes=8, node_bytes=8)


def stream(table: pa.Table, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def decode(columns: dict[str, Any], **query: Any) -> WriteBatch:
    return decode_arrow_write(stream(pa.table(columns)), Query(urlencode(query)), LIMITS)


def refused(columns: dict[str, Any], **query: Any) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        decode(columns, **query)
    return caught.value


def test_it_is_the_write_that_json_says() -> None:
    columns = {
        "data": ['{"x":1}', '"ü"', None],
        "tag": ["a", None, "b"],
        "node": [None, "n", None],
        "meta": ['{"k":"v"}', None, None],
        "seq": [7, 8, 9],
    }
    by_arrow = decode(columns).records.encode(1, 5)
    body = '{"records":[{"data":{"x":1},"tag":"a","meta":{"k":"v"}},{"data":"ü","node":"n"},{"data":null,"tag":"b"}]}'
    by_json = decode_write(body.encode()).records.encode(1, 5)
    assert by_arrow.block_buffers() == by_json.block_buffers()


def test_each_job_may_wait() -> None:
    datas = ["1", "2", "3"]
    assert decode({"data": datas}).waits == decode({"data": datas, "delay_ms": [None, 0, None]}).waits == b""
    delays = pa.array([5, None, 0], pa.uint16())
    assert decode({"data": datas, "delay_ms": delays}).waits == waits_of([-5, 0, 0])
    times = [None, 1_700_000_000_000, 7]
    assert decode({"data": datas, "not_before": times}).waits == waits_of([0, *times[1:]])
    for columns, message in [
        ({"delay_ms": [1, None, None], "not_before": [None, None, 1]}, "have one of them"),
        ({"delay_ms": [1, -1, 1]}, "not -1"),
        ({"delay_ms": [1.5, 1.0, 1.0]}, "not double"),
        ({"not_before": pa.array([2**63, 1, 1], pa.uint64())}, "whole numbers from 0 to"),
    ]:
        assert message in refused({"data": datas, **columns}).message


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_both_kinds_of_text(kind: pa.DataType) -> None:
    assert list(map(bytes, decode({"data": pa.array(["1", "[2]"], kind)}).records.datas)) == [b"1", b"[2]"]


def test_tags_and_nodes_may_be_categories() -> None:
    tags = pa.array(["a", "b", None, "a"]).dictionary_encode()
    records = decode({"data": ["1"] * 4, "tag": tags, "node": tags}).records
    assert (records.tags, records.node_names) == (b"aba", (b"a", b"b"))


def test_columns_without_a_value_are_none() -> None:
    records = decode({"data": ["1"], "tag": pa.nulls(1), "meta": pa.nulls(1, pa.string())}).records
    assert (records.tag_ends, records.meta_lens) == (None, None)
    assert list(map(bytes, decode({"data": pa.nulls(2)}).records.datas)) == [b"null", b"null"]


def test_space_around_a_value_is_not_stored() -> None:
    assert list(map(bytes, decode({"data": [" 1", "\n{} "]}).records.datas)) == [b"1", b"{}"]


def test_what_is_beside_the_records_comes_from_the_query() -> None:
    batch = decode({"data": ["1"]}, idempotency_key="k", partition=3, create="false", delay_ms=5, node="n")
    assert batch.dedupe_key is not None
    assert (batch.partition, batch.create, batch.delay_ms) == (3, False, 5)
    assert batch.records.node_names == (b"n",)
    produced = decode({"data": ["1"]}, producer_id="p", epoch=1, sequence=0)
    assert produced.dedupe_key is not None
    assert refused({"data": ["1"]}, producer_id="p").detail["field"] == "epoch"


@pytest.mark.parametrize(
    "texts",
    [["1,2", "[3", "4]"], ["[1", "2]"], ["1", ""], ["tru"], ["1 2"], ["{}", "}{"], ['"a', 'b"'], ["1,2"]],
)
def test_texts_that_are_json_only_together(texts: list[str]) -> None:
    error = refused({"data": texts})
    assert error.detail["field"].startswith("records[") and error.detail["field"].endswith("].data")


@given(st.lists(st.text('[]{},:"1 e.-tn\\', max_size=4), min_size=1, max_size=6))
def test_each_text_is_json_by_itself_or_refused(texts: list[str]) -> None:
    def is_json(text: str) -> bool:
        try:
            decode_write(b'{"records":[{"data":%b}]}' % text.encode())
        except TopicsError:
            return False
        return True

    # A text that closes the record and opens another is no JSON value either.
    right = all(is_json(text) and "data" not in text for text in texts)
    try:
        decode({"data": texts})
    except TopicsError:
        assert not right
    else:
        assert right


def test_what_is_wrong_is_named() -> None:
    assert refused({"tag": ["a"]}).detail["field"] == "data"
    assert "int64" in refused({"data": [1]}).message
    assert refused({"data": ["1"], "tag": [1]}).detail["field"] == "tag"
    assert refused({"data": ["1", "2"], "meta": ["{}", "1"]}).detail["field"] == "records[1].meta"
    assert refused({"data": ["1"], "tag": ["too long a tag"]}).detail["field"] == "records[0].tag"
    assert refused({"data": pa.array(["1"]).dictionary_encode()}).detail["field"] == "data"
    assert refused({"data": ["1"], "node": pa.array(["too long a node"]).dictionary_encode()}).detail["field"] == "node"
    with pytest.raises(BatchTooLarge):
        decode({"data": ["1"] * 9})
    assert refused({"data": pa.array([], pa.string())}).detail["field"] == "records"
    with pytest.raises(RecordTooLarge):
        decode({"data": ['"%s"' % ("x" * 99)]})
    with pytest.raises(InvalidRequest, match="several columns"):
        table = pa.Table.from_arrays([pa.array(["1"]), pa.array(["2"])], ["data", "data"])
        decode_arrow_write(stream(table), Query(""), LIMITS)


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_compressed_buffers_are_refused_before_they_unfold(codec: str) -> None:
    body = stream(pa.table({"data": ["1"] * 4}), compression=codec)
    with pytest.raises(InvalidRequest, match="compressed"):
        decode_arrow_write(body, Query(""), LIMITS)
    tags = pa.array(["a"] * 4).dictionary_encode()
    body = stream(pa.table({"data": ["1"] * 4, "tag": tags}), compression=codec)
    with pytest.raises(InvalidRequest, match="compressed"):
        decode_arrow_write(body, Query(""), LIMITS)


@pytest.mark.parametrize("kind", [pa.string(), pa.int64(), pa.month_day_nano_interval(), pa.null()])
def test_a_stream_without_batches_has_no_records_whatever_they_would_be(kind: pa.DataType) -> None:
    empty = pa.schema([("data", kind), ("tag", pa.string())]).empty_table()
    with pytest.raises(InvalidRequest, match="must hold 1 to 8 records, not 0"):
        decode_arrow_write(stream(empty), Query(""), LIMITS)


def test_views_are_refused() -> None:
    assert "string_view" in refused({"data": pa.array(["1"], pa.string_view())}).message


@given(st.binary(max_size=200))
def test_other_bytes_are_refused(body: bytes) -> None:
    with pytest.raises(InvalidRequest):
        decode_arrow_write(body, Query(""), LIMITS)


GOOD = stream(
    pa.table({"data": ['{"x":1}', "2"], "tag": pa.array(["a", "b"]).dictionary_encode(), "meta": [None, "{}"]})
)


def test_a_changed_byte_is_refused_or_harmless() -> None:
    for at in range(len(GOOD)):
        for change in (0x01, 0x80, 0xFF):
            body = bytearray(GOOD)
            body[at] ^= change
            try:
                batch = decode_arrow_write(bytes(body), Query(""), LIMITS)
            except InvalidRequest:
                continue
            batch.records.encode(1, 1)


def test_a_cut_stream_is_refused_or_whole() -> None:
    for end in range(len(GOOD)):
        try:
            batch = decode_arrow_write(GOOD[:end], Query(""), LIMITS)
        except InvalidRequest:
            continue
        assert batch.records.count == 2


def test_an_empty_tag_or_node_is_refused() -> None:
    data = ["1", "2", "3"]
    assert refused({"data": data, "tag": ["a", None, ""]}).detail["field"] == "records[2].tag"
    words = pa.array(["n", "", "n"]).dictionary_encode()
    assert refused({"data": data, "node": words}).detail["field"] == "records[1].node"
    assert refused({"data": data}, node="").detail["field"] == "node"
    assert decode({"data": data, "tag": [None, None, None]}).records.count == 3
