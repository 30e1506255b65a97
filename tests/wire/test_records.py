from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topics.core.dedupe import IdempotencyKey, ProducerKey
from topics.core.records import RecordLimits, Records
from topics.core.waits import waits_of
from topics.errors import BatchTooLarge, InvalidRequest, RecordTooLarge
from topics.wire.records import decode_write

TS = 1_748_470_000_123
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(["data", "tag", "node", "meta"])
NAME = TEXT.filter(bool)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
ITEMS = st.lists(
    st.fixed_dictionaries(
        {"data": VALUES},
        optional={"tag": st.none() | NAME, "node": st.none() | NAME, "meta": st.none() | st.dictionaries(TEXT, TEXT)},
    ),
    min_size=1,
    max_size=6,
)
WRITERS: list[dict[str, Any]] = [
    {"separators": (",", ":"), "ensure_ascii": False},
    {},
    {"indent": 2},
]


def refusal(body: bytes, limits: RecordLimits | None = None) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        decode_write(body, limits or RecordLimits())
    return caught.value


def one(record: bytes) -> bytes:
    return b'{"records":[{"data":0},' + record + b"]}"


@given(ITEMS, st.none() | NAME, st.sampled_from(WRITERS))
def test_a_body_becomes_the_records_its_objects_would(
    items: list[dict[str, Any]], node: str | None, writer: dict[str, Any]
) -> None:
    body = json.dumps({"records": items, "node": node}, **writer).encode()
    got = decode_write(body).records.encode(1, TS)
    want = Records.of(items, node=node or "").encode(1, TS)
    assert got.count == want.count
    assert json.loads(b"[%b]" % got.text) == json.loads(b"[%b]" % want.text)
    assert (got.tags, got.tag_ends, got.node_names, got.node_ids) == (
        want.tags,
        want.tag_ends,
        want.node_names,
        want.node_ids,
    )


def test_data_and_meta_are_kept_as_received() -> None:
    body = b'{"records":[{"data": { "b" : 1.0, "a":1e999 } ,"meta": {"k" :"v"}}]}'
    encoded = decode_write(body).records.encode(1, 2)
    assert encoded.text == b'{"$seq":1,"$ts":2,"meta":{"k" :"v"},"data":{ "b" : 1.0, "a":1e999 }}'
    assert encoded.payload_bytes == len(b'{ "b" : 1.0, "a":1e999 }') + len(b'{"k" :"v"}')


def test_nothing_said_is_none() -> None:
    batch = decode_write(b'{"records":[{"data":1}]}')
    assert (batch.create, batch.config, batch.partition, batch.key, batch.dedupe_key) == (None,) * 5
    assert batch.disable_backpressure is False


def test_nulls_say_nothing() -> None:
    names = ["node", "idempotency_key", "producer_id", "epoch", "sequence", "create", "config", "partition", "key"]
    fields = dict.fromkeys([*names, "disable_backpressure"])
    batch = decode_write(json.dumps({"records": [{"data": 1, "tag": None}], **fields}).encode())
    assert (batch.create, batch.config, batch.partition, batch.key, batch.dedupe_key) == (None,) * 5
    assert batch.disable_backpressure is False
    assert batch.records.node_ids is batch.records.tag_ends is None


def test_options_are_taken() -> None:
    batch = decode_write(
        b'{"records":[{"data":1}],"create":false,"config":{"ttl_ms":5},"disable_backpressure":true,"partition":3,'
        b'"idempotency_key":"k","node":"n"}'
    )
    assert batch.create is False
    assert batch.config == {"ttl_ms": 5}
    assert batch.disable_backpressure is True
    assert batch.partition == 3
    assert batch.dedupe_key == IdempotencyKey("k")
    assert batch.records.node_names == (b"n",)
    batch = decode_write(b'{"records":[{"data":1}],"key":"k","producer_id":"p","epoch":1,"sequence":0}')
    assert batch.key == "k"
    assert batch.dedupe_key == ProducerKey("p", 1, 0)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (b'"idempotency_key":""', "idempotency_key"),
        (b'"idempotency_key":5', "idempotency_key"),
        (b'"producer_id":"p"', "epoch"),
        (b'"producer_id":"p","epoch":1', "sequence"),
        (b'"epoch":1,"sequence":1', "producer_id"),
        (b'"producer_id":"p","epoch":-1,"sequence":1', "epoch"),
        (b'"producer_id":"p","epoch":1,"sequence":1,"idempotency_key":"k"', "producer_id"),
        (b'"create":1', "create"),
        (b'"config":[]', "config"),
        (b'"partition":1024', "partition"),
        (b'"partition":-1', "partition"),
        (b'"partition":true', "partition"),
        (b'"partition":0,"key":"k"', "key"),
        (b'"node":7', "node"),
        (b'"disable_backpressure":"yes"', "disable_backpressure"),
    ],
)
def test_a_wrong_option_is_refused_by_name(options: bytes, field: str) -> None:
    error = refusal(b'{"records":[{"data":1}],' + options + b"}")
    assert error.detail["field"] == field
    assert error.detail["expected"]


@pytest.mark.parametrize(
    ("record", "field", "says"),
    [
        (b"{}", "records[1].data", "is required"),
        (b'{"tag":"t"}', "records[1].data", "is required"),
        (b"7", "records[1]", "must be object, not int"),
        (b'{"data":1,"tag":7}', "records[1].tag", "must be string or null, not int"),
        (b'{"data":1,"tag":""}', "records[1].tag", "is empty; leave it out, or name something"),
        (b'{"data":1,"node":"","tag":"t"}', "records[1].node", "is empty; leave it out, or name something"),
        (b'{"data":1,"node":["n"]}', "records[1].node", "must be string or null, not array"),
        (b'{"data":1,"meta":7}', "records[1].meta", "an object of strings"),
        (b'{"data":1,"meta":{"a":1}}', "records[1].meta", "an object of strings"),
        (b'{"data":1,"meta":{"a":null}}', "records[1].meta", "an object of strings"),
    ],
)
def test_a_wrong_record_is_refused_with_its_path(record: bytes, field: str, says: str) -> None:
    error = refusal(one(record))
    assert error.detail["field"] == field
    assert field in error.message
    assert says in error.message


LIMITS = RecordLimits(batch_records=2, record_bytes=20, meta_bytes=12, tag_bytes=4, node_bytes=4)


@pytest.mark.parametrize(
    ("record", "field", "kind"),
    [
        (b'{"data":"1234567890123456789"}', "records[1]", RecordTooLarge),
        (b'{"data":"123456789","meta":{"a":"bc"}}', "records[1]", RecordTooLarge),
        (b'{"data":1,"meta":{"a":"bcdefg"}}', "records[1].meta", InvalidRequest),
        (b'{"data":1,"tag":"12345"}', "records[1].tag", InvalidRequest),
        (b'{"data":1,"tag":"\xc3\xa9\xc3\xa9\xc3\xa9"}', "records[1].tag", InvalidRequest),
        (b'{"data":1,"node":"12345"}', "records[1].node", InvalidRequest),
        (b'{"data":1},{"data":1}', "records", BatchTooLarge),
    ],
)
def test_sizes(record: bytes, field: str, kind: type[InvalidRequest]) -> None:
    error = refusal(one(record), LIMITS)
    assert type(error) is kind
    assert error.detail["field"] == field


def test_an_escaped_tag_is_measured_as_what_it_says() -> None:
    assert decode_write(one(b'{"data":1,"tag":"\\u0031\\u0032\\u0033\\u0034"}'), LIMITS).records.tags == b"1234"


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "the body is empty, which is not JSON"),
        (b"[]", "must be object, not array"),
        (b"{}", "records is required"),
        (b'{"records":[]}', "1 to 10000 records, not 0"),
        (b'{"records":null}', "must be array, not null"),
        (b'{"records":[{"data":1}]} x', "trailing characters"),
        (b'{"records":[{"data":1}', "not valid JSON"),
        (b'{"records":[{"data":NaN}]}', "not valid JSON"),
        (b'{"records":[{"data":Infinity}]}', "not valid JSON"),
        (b'{"records":[{"data":[-Infinity]}]}', "not valid JSON"),
        (b'{"records":[{"data":01}]}', "not valid JSON"),
        (b'{"records":[{"data":"a\nb"}]}', "not valid JSON"),
        (b'{"records":[{"data":"\xff"}]}', "not UTF-8: invalid start byte at byte 21"),
        (b'{"records":[{"data":1,"x":"\xc0\x80"}]}', "not UTF-8"),
        (b'\xef\xbb\xbf{"records":[{"data":1}]}', "not valid JSON"),
        (rb'{"records":[{"data":"\ud800"}]}', "escape at byte 21 is half of a surrogate pair"),
        (rb'{"records":[{"data":"\ud800x\udc00"}]}', "escape at byte 21 is half of a surrogate pair"),
        (rb'{"records":[{"data":"\\\udc00"}]}', "escape at byte 23 is half of a surrogate pair"),
        (rb'{"records":[{"data":1,"tag":"\ud800"}]}', "half of a surrogate pair"),
        (b'{"records":[{"data":' + b"[" * 513 + b"]" * 513 + b"}]}", "at most 512 deep"),
        (b'{"records":[{"data":' + b'{"a":' * 513 + b"1" + b"}" * 513 + b"}]}", "at most 512 deep"),
        (b'{"records":[{"data":' + b"[" * 100_000 + b"]" * 100_000 + b"}]}", "at most 512 deep"),
        (b"[" * 100_000, ""),
    ],
)
def test_what_is_not_a_write_at_all(body: bytes, says: str) -> None:
    assert says in refusal(body).message


@pytest.mark.parametrize(
    "data", [rb'"\ud83d\ude00"', rb'"\\ud800"', b"[" * 512 + b"]" * 512, b'"' + b"[" * 2000 + b'"', b"1" * 5000]
)
def test_what_looks_wrong_and_is_not(data: bytes) -> None:
    encoded = decode_write(b'{"records":[{"data":' + data + b"}]}").records.encode(1, 2)
    assert encoded.text == b'{"$seq":1,"$ts":2,"data":' + data + b"}"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b'{"records":[{"data":1}],"records":[{"data":1}]}', "records"),
        (b'{"records":[{"data":1,"data":2}]}', "records[0].data"),
        (b'{"records":[{"data":1},{"data":1,"tag":"a","tag":"b"}]}', "records[1].tag"),
        (b'{"records":[{"data":1,"tag":"a","tag":""}]}', "records[0].tag"),
        (b'{"records":[{"data":1,"tag":"a","tag":null}]}', "records[0].tag"),
        (b'{"records":[{"data":1,"node":"a","node":"a"}]}', "records[0].node"),
        (b'{"records":[{"data":1,"meta":{},"meta":{}}]}', "records[0].meta"),
        (b'{"records":[{"data":1}],"node":"a","node":"b"}', "node"),
        (b'{"records":[{"data":1}],"create":true,"create":null}', "create"),
        (b'{"records":[{"data":{"data":1},"data":{"data":2}}]}', "records[0].data"),
        (b'{"records":[{"data":{"tag":1},"tag":"a","tag":"b"}]}', "records[0].tag"),
        (rb'{"records":[{"data":1,"t\u0061g":"a","tag":"b"}]}', "records[0].tag"),
        (rb'{"records":[{"data":1,"d\u0061ta":2}]}', "records[0].data"),
        (rb'{"records":[{"data":1}],"idempotency\u005fkey":"a","idempotency_key":"b"}', "idempotency_key"),
        (b'{"records":[{"data":' + b"1" * 5000 + b',"data":2}]}', "records[0].data"),
    ],
)
def test_a_key_given_twice_is_refused(body: bytes, field: str) -> None:
    error = refusal(body)
    assert error.detail["field"] == field
    assert error.message == f"{field} is given twice"


@pytest.mark.parametrize(
    "record",
    [
        b'{"data":{"data":1,"tag":2,"node":3,"meta":4,"records":5}}',
        b'{"data":{"data":1,"data":2}}',
        b'{"data":"data","tag":"tag","node":"node","meta":{"meta":"meta"}}',
        rb'{"data":"\u0061"}',
        b'{"data":{"a":' + b"1" * 5000 + b'},"tag":"tag"}',
        b'{"data":1,"colour":"red","colour2":"tag"}',
    ],
)
def test_keys_inside_the_clients_data_are_its_own(record: bytes) -> None:
    assert decode_write(one(record)).records.count == 2


def test_a_refused_write_leaves_nothing_behind() -> None:
    body = b'{"records":[{"data":1}]}'
    before = decode_write(body).records.encode(1, TS).text
    refusal(one(b'{"data":1,"tag":7}'))
    assert decode_write(body).records.encode(1, TS).text == before


def test_when_jobs_are_due() -> None:
    plain = decode_write(b'{"records":[{"data":1}]}')
    assert (plain.delay_ms, plain.not_before_ms) == (0, 0)
    said = decode_write(b'{"records":[{"data":1}],"delay_ms":5,"not_before":1748467205000}')
    assert (said.delay_ms, said.not_before_ms) == (5, 1_748_467_205_000)
    nulls = decode_write(b'{"records":[{"data":1}],"delay_ms":null,"not_before":null}')
    assert (nulls.delay_ms, nulls.not_before_ms) == (0, 0)
    for field, value in [("delay_ms", -1), ("delay_ms", 2**64), ("not_before", -1), ("delay_ms", '"5"')]:
        with pytest.raises(InvalidRequest) as caught:
            decode_write(f'{{"records":[{{"data":1}}],"{field}":{value}}}'.encode())
        assert caught.value.detail["field"] == field
    with pytest.raises(InvalidRequest) as caught:
        decode_write(b'{"records":[{"data":1}],"delay_ms":5,"delay_ms":6}')
    assert caught.value.detail["field"] == "delay_ms"


def test_each_job_may_have_a_time_of_its_own() -> None:
    def waits(*records: str, rest: str = "") -> bytes:
        return decode_write(f'{{"records":[{",".join(records)}]{rest}}}'.encode()).waits

    assert waits('{"data":1}', '{"data":2}') == b""
    assert waits('{"data":1,"delay_ms":null}', '{"data":2,"delay_ms":0}') == b""
    assert waits('{"data":1}', '{"data":2,"delay_ms":5}') == waits_of([0, -5])
    assert waits('{"data":{"delay_ms":7},"not_before":1748467205000}') == waits_of([1_748_467_205_000])
    both = decode_write(b'{"records":[{"delay_ms":5,"data":"delay_ms"}],"delay_ms":9,"not_before":7}')
    assert (both.waits, both.delay_ms, both.not_before_ms) == (waits_of([-5]), 9, 7)
    for record, field in [
        ('{"data":1,"delay_ms":-1}', "records[1].delay_ms"),
        ('{"data":1,"delay_ms":5,"not_before":7}', "records[1].delay_ms"),
        ('{"data":1,"delay_ms":5,"delay_ms":5}', "records[1].delay_ms"),
        ('{"data":1,"delay_ms":5,"\\u0064elay_ms":6}', "records[1].delay_ms"),
        ('{"data":1,"not_before":5,"not_before":null}', "records[1].not_before"),
        (f'{{"data":1,"not_before":{2**62}}}', "records[1].not_before"),
        ('{"data":1,"not_before":"now"}', "records[1].not_before"),
    ]:
        with pytest.raises(InvalidRequest) as caught:
            waits('{"data":1}', record)
        assert caught.value.detail["field"] == field


def test_an_empty_node_of_a_whole_write_is_refused() -> None:
    refused = refusal(b'{"node":"","records":[{"data":1,"node":"n"}]}')
    assert (refused.detail["field"], refused.message) == ("node", "node is empty; leave it out, or name something")
