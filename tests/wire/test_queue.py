from __future__ import annotations

import json

import pytest

from topics.core.match import Match
from topics.core.records import DEFAULT_LIMITS, RecordLimits
from topics.errors import InvalidRequest, RecordTooLarge
from topics.limits import RESULT_PARTS_MAX
from topics.wire.queue import (
    ClaimRequest,
    DiscardRequest,
    PlainAck,
    SettleRequest,
    decode_ack,
    decode_claim,
    decode_discard,
    decode_extend,
    decode_nack,
    decode_plain_ack,
    decode_redrive,
)


def text(**fields: object) -> bytes:
    return json.dumps(fields).encode()


def refused(decode: object, body: bytes) -> InvalidRequest:
    assert callable(decode)
    with pytest.raises(InvalidRequest) as caught:
        decode(body)
    return caught.value


def ack(body: bytes) -> SettleRequest:
    return decode_ack(body, DEFAULT_LIMITS)


def test_a_claim() -> None:
    assert decode_claim(text(node="w")) == ClaimRequest("w", 1, None, 0, 0)
    assert decode_claim(text(node="w", max=None, lease_ms=None, wait_ms=None, partition=None)) == ClaimRequest(
        "w", 1, None, 0, 0
    )
    assert decode_claim(text(node="w", max=7, lease_ms=500, wait_ms=9, partition=2)) == ClaimRequest("w", 7, 500, 9, 2)


def test_what_is_done_with_jobs() -> None:
    assert ack(text(node="w", seqs=[1, 2])) == SettleRequest("w", [1, 2], None, 0)
    assert ack(text(node="w", seqs=[1], lease_ids=["lease_1"], partition=3, produce=[])) == SettleRequest(
        "w", [1], ["lease_1"], 3
    )
    assert decode_nack(text(node="w", seqs=[1], delay_ms=5)) == SettleRequest("w", [1], None, 0, delay_ms=5)
    assert decode_extend(text(node="w", seqs=[1], lease_ms=5)) == SettleRequest("w", [1], None, 0, lease_ms=5)


@pytest.mark.parametrize("decode", [decode_claim, ack, decode_nack, decode_extend])
@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"node": None}, "node"),
        ({"node": 7}, "node"),
        ({"partition": -1}, "partition"),
        ({"partition": 1024}, "partition"),
        ({"partition": "0"}, "partition"),
    ],
)
def test_what_all_refuse(decode: object, change: dict[str, object], field: str) -> None:
    whole = {"node": "w", "lease_ms": 5} | ({} if decode is decode_claim else {"seqs": [1]})
    assert refused(decode, text(**(whole | change))).detail["field"] == field
    repeated = text(**whole).replace(b'"node"', b'"node":"x","node"')
    assert refused(decode, repeated).detail["field"] == "node"
    in_escapes = repeated.replace(b'"node": "w"', b'"n\\u006fde": "w"')
    assert in_escapes != repeated and refused(decode, in_escapes).detail["field"] == "node"
    assert refused(decode, b"").detail["expected"] == "JSON"


def test_a_name_that_is_a_key_is_a_name() -> None:
    assert decode_claim(text(node="node")).node == "node"
    assert ack(text(node="seqs", seqs=[1])).node == "seqs"


@pytest.mark.parametrize(
    ("decode", "body", "field"),
    [
        (decode_claim, {"node": "w", "max": -1}, "max"),
        (decode_claim, {"node": "w", "max": 1.5}, "max"),
        (decode_claim, {"node": "w", "lease_ms": "5"}, "lease_ms"),
        (decode_claim, {"node": "w", "wait_ms": -1}, "wait_ms"),
        (ack, {"node": "w"}, "seqs"),
        (ack, {"node": "w", "seqs": [True]}, "seqs[0]"),
        (ack, {"node": "w", "seqs": [1], "lease_ids": [1]}, "lease_ids[0]"),
        (decode_nack, {"node": "w", "seqs": [1], "delay_ms": -1}, "delay_ms"),
        (decode_extend, {"node": "w", "seqs": [1]}, "lease_ms"),
        (decode_extend, {"node": "w", "seqs": [1], "lease_ms": None}, "lease_ms"),
        (decode_redrive, {"limit": 0}, "limit"),
        (decode_redrive, {"rate_per_second": 0}, "rate_per_second"),
        (decode_redrive, {"rate_per_second": 1_000_001}, "rate_per_second"),
        (decode_redrive, {"match": 5}, "match"),
        (decode_redrive, {"dry_run": 1}, "dry_run"),
        (decode_discard, {"limit": 0}, "limit"),
        (decode_discard, {"before_seq": -1}, "before_seq"),
        (decode_discard, {"match": 5}, "match"),
        (decode_discard, {"partition": 1024}, "partition"),
    ],
)
def test_what_each_refuses(decode: object, body: dict[str, object], field: str) -> None:
    assert refused(decode, text(**body)).detail["field"] == field


def test_a_redrive() -> None:
    everything = decode_redrive(b"")
    assert everything == decode_redrive(b"{}")
    assert (everything.from_seq, everything.before_seq, everything.limit, everything.dry_run) == (0, None, None, False)
    some = decode_redrive(text(source="q", destination="p", match="a", reason="r", limit=3, before_seq=9, dry_run=True))
    assert (some.source, some.destination, some.reason, some.limit, some.before_seq) == ("q", "p", "r", 3, 9)
    assert isinstance(some.match, Match) and some.dry_run


def test_a_discard() -> None:
    everything = DiscardRequest(
        source=None, match=None, reason=None, from_seq=0, before_seq=None, limit=None, dry_run=False, partition=0
    )
    assert decode_discard(b"") == decode_discard(b"{}") == everything
    some = decode_discard(
        text(source="q", match="a", reason="r", from_seq=2, before_seq=9, limit=3, dry_run=True, partition=1)
    )
    assert (some.source, some.reason, some.from_seq, some.before_seq, some.limit) == ("q", "r", 2, 9, 3)
    assert isinstance(some.match, Match) and (some.dry_run, some.partition) == (True, 1)


def test_a_name_in_escapes_is_a_name() -> None:
    assert decode_claim(b'{"node":"\\u0077"}').node == "w"


def test_an_ack_that_produces() -> None:
    produce = [
        {"topic": "a", "records": [{"data": 1}, {"data": 2, "tag": "x"}], "create": False, "key": "k"},
        {"topic": "b", "records": [{"data": 3}], "partition": 2, "delay_ms": 4, "not_before": 5},
    ]
    one, two = ack(text(node="w", seqs=[1], produce=produce)).products
    assert (one.topic, one.batch.records.count, one.batch.create, one.batch.key) == ("a", 2, False, "k")
    assert (two.topic, two.batch.partition, two.batch.delay_ms, two.batch.not_before_ms) == ("b", 2, 4, 5)


@pytest.mark.parametrize(
    ("product", "field"),
    [
        (b'{"records":[{"data":1}]}', "produce[0].topic"),
        (b'{"topic":"a"}', "produce[0].records"),
        (b'{"topic":"a","records":[{"tag":"x"}]}', "produce[0].records[0].data"),
        (b'{"topic":"a","topic":"b","records":[{"data":1}]}', "produce[0].topic"),
        (b'{"topic":"a","records":[{"data":1}],"idempotency_key":"k"}', "produce[0].idempotency_key"),
        (b'{"topic":"a","records":[{"data":1}],"delay_ms":-1}', "produce[0].delay_ms"),
        (b"7", "produce[0]"),
    ],
)
def test_what_an_ack_does_not_produce(product: bytes, field: str) -> None:
    assert refused(ack, b'{"node":"w","seqs":[1],"produce":[' + product + b"]}").detail["field"] == field


def test_how_much_an_ack_produces_is_bounded() -> None:
    many = [{"topic": f"t{place}", "records": [{"data": 1}]} for place in range(RESULT_PARTS_MAX + 1)]
    assert len(ack(text(node="w", seqs=[1], produce=many[1:])).products) == RESULT_PARTS_MAX
    assert refused(ack, text(node="w", seqs=[1], produce=many)).detail["field"] == "produce"
    large = text(node="w", seqs=[1], produce=[{"topic": "a", "records": [{"data": "x" * 100}]}])
    with pytest.raises(RecordTooLarge) as caught:
        decode_ack(large, RecordLimits(record_bytes=50))
    assert caught.value.detail["field"].startswith("produce[0].records[0]")


def test_an_ack_that_only_names_jobs_is_decoded_in_one_step() -> None:
    assert decode_plain_ack(b'{"node":"w","seqs":[1,2]}') == PlainAck("w", [1, 2])
    fenced = b'{ "seqs": [3], "lease_ids": ["lease_1"], "node": "w", "partition": 2 }'
    assert decode_plain_ack(fenced) == PlainAck("w", [3], ["lease_1"], 2)
    assert decode_plain_ack(rb'{"node":"\u0077","seqs":[]}') == PlainAck("w", [])


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'{"node":"w"}',
        b'{"node":"w","seqs":["1"]}',
        b'{"node":"w","seqs":[1],"seqs":[2]}',
        b'{"node":"w","node":"v","seqs":[1]}',
        b'{"node":"w","seqs":[1],"produce":[]}',
        b'{"node":"w","seqs":[1],"partition":-1}',
        b'{"node":"w","seqs":[1],"partition":1024}',
        b'{"node":"w","seqs":[1],"more":1}',
        b'{"node":"\xc3\xbc","seqs":[1]}',
        b'{"node":"w\\"","seqs":[1]}',
        b'{"node":"w","seqs":[1],"lease_ids":null}',
        b'{"node":"w","seqs":[1]',
        b"[" * 10_000,
    ],
)
def test_an_ack_with_anything_more_to_say_is_left_to_the_ordinary_way(body: bytes) -> None:
    assert decode_plain_ack(body) is None
