from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topics.core import block as blocks
from topics.core.records import FEW, EncodedRecords, RecordLimits, Records, nesting
from topics.errors import BatchTooLarge, InvalidRequest, RecordTooLarge
from topics.model import parse_records

TS = 1_748_470_000_123
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from(["", "n1", "nö", '"q"', "%d%%", "\n"])
ITEMS = st.lists(
    st.fixed_dictionaries(
        {"data": VALUES},
        optional={"tag": TEXT | NAMES, "node": NAMES, "meta": st.dictionaries(TEXT, TEXT, max_size=3)},
    ),
    min_size=1,
    max_size=12,
)


def stored(encoded: EncodedRecords) -> bytes:
    return b"".join(encoded.block_buffers())


@given(ITEMS, NAMES, st.sampled_from([1, 8, 95, 99_995, 10**18]))
def test_what_goes_in_comes_out_of_the_block(items: list[dict[str, Any]], node: str, first_seq: int) -> None:
    encoded = Records.of(items, node=node).encode(first_seq, TS)
    block = blocks.parse(stored(encoded))
    assert (block.first_seq, block.count, block.first_ts, block.last_ts) == (first_seq, len(items), TS, TS)
    for index, item in enumerate(items):
        assert json.loads(block.data(index)) == item["data"]
        meta = block.meta(index)
        assert (None if meta is None else json.loads(meta)) == item.get("meta")
        assert block.tag(index) == item.get("tag", "").encode()
        assert block.node(index) == ((item.get("node") or node).encode() or None)
    assert encoded.payload_bytes == int(block.sizes.sum())


@given(ITEMS, NAMES, st.sampled_from([1, 9, 99_998]))
def test_the_text_is_the_wire(items: list[dict[str, Any]], node: str, first_seq: int) -> None:
    encoded = Records.of(items, node=node).encode(first_seq, TS)
    for seq, (item, record) in enumerate(zip(items, parse_records(encoded.text), strict=True), first_seq):
        assert (record.seq, record.ts, record.data) == (seq, TS, item["data"])
        assert record.node == (item.get("node") or node or None)
        assert record.meta == item.get("meta")
        assert record.tag is None
    ends = [0, *encoded.ends]
    cut = [encoded.text[start + bool(start) : end] for start, end in pairwise(ends)]
    assert [json.loads(text)["$seq"] for text in cut] == list(range(first_seq, first_seq + len(items)))


@given(ITEMS, NAMES)
def test_all_stored_forms_agree(items: list[dict[str, Any]], node: str) -> None:
    encoded = Records.of(items, node=node).encode(7, TS)
    assert stored(encoded) == b"".join(encoded.as_block().encode())
    again = EncodedRecords.parse(memoryview(stored(encoded)))
    assert {name: getattr(again, name) for name in EncodedRecords.__slots__} == {
        name: getattr(encoded, name) for name in EncodedRecords.__slots__
    }
    assert encoded.tag_list() == encoded.as_block().tag_list()


def test_the_exact_text() -> None:
    encoded = Records.of(
        [{"data": {"x": 1}, "node": "n1", "meta": {"k": "v"}, "tag": "t"}, {"data": None}, {"data": "é", "node": 'a"b'}]
    ).encode(9, 5)
    assert encoded.text.decode() == (
        '{"$seq":9,"$ts":5,"$node":"n1","meta":{"k":"v"},"data":{"x":1}},'
        '{"$seq":10,"$ts":5,"data":null},'
        '{"$seq":11,"$ts":5,"$node":"a\\"b","data":"é"}'
    )
    assert encoded.node_names == (b"n1", b'a"b')
    assert list(encoded.node_ids or []) == [1, 0, 2]


def test_plain_records_carry_no_optional_columns() -> None:
    encoded = Records.of([{"data": 1, "tag": "", "node": ""}, {"data": 2, "meta": None}]).encode(1, TS)
    assert encoded.meta_lens is encoded.tag_ends is encoded.node_ids is None


def test_records_can_be_encoded_twice_with_other_seqs() -> None:
    records = Records.of([{"data": 1}, {"data": 2}])
    assert records.encode(1, TS).text != records.encode(5, TS).text
    assert records.encode(1, TS).text == records.encode(1, TS).text


LIMITS = RecordLimits(batch_records=3, record_bytes=20, meta_bytes=15, tag_bytes=4, node_bytes=4)


@pytest.mark.parametrize("data", [msgspec.Raw(b'{"a": null}'), [msgspec.Raw(b"null"), None]])
def test_ready_text_may_hold_a_null(data: object) -> None:
    assert Records.of([{"data": data}]).datas == [msgspec.json.encode(data)]


@pytest.mark.parametrize(
    ("item", "field", "error"),
    [
        ({"data": "x" * 19}, "records[1]", RecordTooLarge),
        ({"data": "x" * 8, "meta": {"a": "bcd"}}, "records[1]", RecordTooLarge),
        ({"data": 1, "meta": {"a": "bcdefghijkl"}}, "records[1].meta", InvalidRequest),
        ({"data": 1, "tag": "12345"}, "records[1].tag", InvalidRequest),
        ({"data": 1, "tag": "ééé"}, "records[1].tag", InvalidRequest),
        ({"data": 1, "node": "ééé"}, "records[1].node", InvalidRequest),
        ({"data": 1, "node": 5}, "records[1].node", InvalidRequest),
        ({"data": 1, "tag": b"t"}, "records[1].tag", InvalidRequest),
        ({"data": 1, "tag": "\ud800"}, "records[1].tag", InvalidRequest),
        ({"data": 1, "meta": {"a": 1}}, "records[1].meta", InvalidRequest),
        ({"data": 1, "meta": ["a"]}, "records[1].meta", InvalidRequest),
        ({"data": b"bytes"}, "records[1].data", InvalidRequest),
        ({"data": float("nan")}, "records[1].data", InvalidRequest),
        ({"data": {"a": [float("-inf")]}}, "records[1].data", InvalidRequest),
        ({"data": "\ud800"}, "records[1].data", InvalidRequest),
        ({"data": object()}, "records[1].data", InvalidRequest),
        ({"data": msgspec.Raw(b"1,2")}, "records[1].data", InvalidRequest),
        ({"data": [msgspec.Raw(b"1],[2")]}, "records[1].data", InvalidRequest),
        ({"data": msgspec.Raw(b'"\xff"')}, "records[1].data", InvalidRequest),
        ({"tag": "t"}, "records[1]", InvalidRequest),
    ],
)
def test_a_refusal_names_the_record_and_the_field(item: dict[str, Any], field: str, error: Any) -> None:
    items = [{"data": 1, "tag": "ok", "node": "ok", "meta": {"a": "b"}}, item, {"data": 3}]
    with pytest.raises(error) as caught:
        Records.of(items, limits=LIMITS)
    assert type(caught.value) is error
    assert caught.value.detail["field"] == field
    assert field in caught.value.message


def test_sizes_at_their_limits_pass() -> None:
    item = {"data": "x" * 9, "meta": {"a": "b"}, "tag": "éé", "node": "éé"}
    assert Records.of([item] * 3, node="éé", limits=LIMITS).payload_bytes == 3 * (11 + 9)


def test_a_batch_has_1_to_the_limit_records() -> None:
    with pytest.raises(InvalidRequest, match="1 to 3 records, not 0"):
        Records.of([], limits=LIMITS)
    with pytest.raises(BatchTooLarge, match="1 to 3 records, not 4"):
        Records.of([{"data": 1}] * 4, limits=LIMITS)


def test_the_node_for_all_is_checked_too() -> None:
    with pytest.raises(InvalidRequest) as caught:
        Records.of([{"data": 1}], node="12345", limits=LIMITS)
    assert caught.value.detail["field"] == "node"


def test_meta_has_at_most_64_keys() -> None:
    Records.of([{"data": 1, "meta": {str(n): "" for n in range(64)}}])
    with pytest.raises(InvalidRequest, match="at most 64 keys"):
        Records.of([{"data": 1, "meta": {str(n): "" for n in range(65)}}])


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def test_data_is_nested_at_most_512_deep() -> None:
    Records.of([{"data": nested(512)}])
    for depth in (513, 5000):
        with pytest.raises(InvalidRequest, match="at most 512 deep"):
            Records.of([{"data": 1}, {"data": nested(depth)}])


def test_wide_data_and_brackets_in_strings_are_not_deep() -> None:
    Records.of([{"data": [[]] * 2000}])
    Records.of([{"data": '["' * 2000}])
    assert nesting(b'{"a\\"[[":' + b"[" * 600 + b'"]"' + b"]" * 600 + b"}") == 601


def test_a_node_for_all_is_text_and_not_a_format() -> None:
    encoded = Records.of([{"data": 1}, {"data": 2}], node="%d%%").encode(1, TS)
    assert [record.node for record in parse_records(encoded.text)] == ["%d%%"] * 2
    assert encoded.ends[-1] == len(encoded.text)


def test_ends_where_seqs_grow_longer_twice_in_a_batch() -> None:
    encoded = Records.of([{"data": number} for number in range(150)]).encode(5, TS)
    assert [encoded.text[end - 1 : end + 1] for end in encoded.ends[:-1]] == [b"},"] * 149
    assert encoded.ends[-1] == len(encoded.text)
    assert [record.seq for record in parse_records(encoded.text)] == list(range(5, 155))


@pytest.mark.parametrize("first_seq", [1, 8, 95, 990])
@pytest.mark.parametrize("nodes", [False, True])
def test_few_records_are_encoded_as_many_are(first_seq: int, nodes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    items = [{"data": "x" * number, **({"node": f"100%-{number % 3}"} if nodes else {})} for number in range(FEW)]
    few = Records.of(items).encode(first_seq, 1700)
    monkeypatch.setattr("topics.core.records.FEW", 1)
    many = Records.of(items).encode(first_seq, 1700)
    assert (few.text, few.ends, few.payload_bytes) == (many.text, many.ends, many.payload_bytes)
