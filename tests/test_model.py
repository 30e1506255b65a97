from __future__ import annotations

from decimal import Decimal

import msgspec
import pytest

from topics.model import Page, Reason, Record, Tombstone, TopicConfig, Written

BODY = b'{"$seq":7,"$ts":5,"$node":"n","meta":{"a":"b"},"data":{"x":1}},{"$seq":9,"$ts":6,"$tag":"t","data":null}'


def page(body: bytes) -> Page:
    return Page(topic="t", partition=0, body=body, count=2, next_from_seq=9, head_seq=12, earliest_seq=7)


def test_a_page_is_parsed_when_asked() -> None:
    read = page(BODY)
    assert read.records == [
        Record(7, 5, {"x": 1}, node="n", meta={"a": "b"}),
        Record(9, 6, None, tag="t"),
    ]
    assert read.records is read.records
    assert (read.lag, read.caught_up) == (3, False)
    assert page(b"").records == []


def test_a_record_goes_back_to_its_wire_form() -> None:
    wire = msgspec.json.encode(page(BODY).records)
    assert msgspec.json.decode(wire) == msgspec.json.decode(b"[" + BODY + b"]")


def test_numbers_of_any_size_can_be_read() -> None:
    long = b"9" * 5000
    (first, second) = page(
        b'{"$seq":1,"$ts":1,"data":[1e999,1.5,7,' + long + b']},{"$seq":2,"$ts":1,"$node":"n","data":0.1}'
    ).records
    assert first == Record(1, 1, [Decimal("1e999"), 1.5, 7, Decimal(long.decode())])
    assert [type(number) for number in first.data] == [Decimal, float, int, Decimal]
    assert second == Record(2, 1, 0.1, node="n")


def test_a_body_that_is_not_records_is_an_error() -> None:
    with pytest.raises(msgspec.DecodeError):
        _ = page(b'{"$seq":1}').records


def test_data_that_is_said_to_be_bytes_is_bytes() -> None:
    body = b'{"$seq":1,"$ts":1,"meta":%b,"data":%b}'
    binary = b'{"$encoding":"base64","k":"v"}'
    for meta, text, data in (
        (binary, b'"AP8="', b"\x00\xff"),
        (binary, b'""', b""),
        (binary, b'"no base64"', "no base64"),
        (binary, b"7", 7),
        (b'{"$encoding":"hex"}', b'"AP8="', "AP8="),
    ):
        (record,) = page(body % (meta, text)).records
        assert record.data == data and record.meta is not None
    (plain, bytes_too) = page(BODY.split(b",{")[0] + b"," + body % (binary, b'"AP8="')).records
    assert (plain.data, bytes_too.data) == ({"x": 1}, b"\x00\xff")


def test_what_was_written() -> None:
    written = Written(topic="t", partition=0, first_seq=5, last_seq=7, head_seq=9)
    assert (written.count, list(written.seqs)) == (3, [5, 6, 7])


def test_values_do_not_change() -> None:
    with pytest.raises(AttributeError):
        TopicConfig().ttl_ms = 5  # type: ignore[misc]


def test_a_reason_that_only_a_newer_server_knows_is_no_error() -> None:
    assert Reason("cap") is Reason.CAP and Reason("of tomorrow") is Reason.MIXED
    told = b'{"gap_from":1,"gap_to":3,"reason":"of tomorrow","missed_estimate":3,"earliest_seq":4,"head_seq":5}'
    assert msgspec.json.decode(told, type=Tombstone).reason is Reason.MIXED
    for wrong in (5, None):
        with pytest.raises(ValueError, match="not a valid Reason"):
            Reason(wrong)
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(told.replace(b'"of tomorrow"', b"5"), type=Tombstone)
