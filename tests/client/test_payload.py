from __future__ import annotations

from typing import Any

import pytest

from topics.client.payload import prepared
from topics.errors import InvalidRequest
from topics.model import parse_records


def test_plain_records_pass_as_they_are() -> None:
    records: list[Any] = [{"data": 1, "tag": "t"}, {"data": "text", "meta": {"k": "v"}}]
    assert prepared(records) == records


@pytest.mark.parametrize("data", [b"\x00\xff", bytearray(b"\x00\xff"), memoryview(b"\x00\xff")])
def test_bytes_become_text_that_says_what_it_is(data: bytes) -> None:
    given: list[Any] = [{"data": data, "meta": {"k": "v"}}, {"data": data, "content_type": "image/png"}]
    first, second = prepared(given)
    assert first == {
        "data": "AP8=",
        "meta": {"k": "v", "$encoding": "base64", "content-type": "application/octet-stream"},
    }
    assert second["meta"] == {"$encoding": "base64", "content-type": "image/png"}
    assert given[0]["meta"] == {"k": "v"}


def test_text_may_have_a_content_type_too() -> None:
    (record,) = prepared([{"data": "<a/>", "content_type": "text/xml"}])
    assert record == {"data": "<a/>", "meta": {"content-type": "text/xml"}}
    (bare,) = prepared([{"data": 1, "content_type": None}])
    assert bare == {"data": 1, "meta": None}


def test_a_content_type_is_a_string() -> None:
    wrong: list[Any] = [{"data": 1}, {"data": 1, "content_type": 5}]
    with pytest.raises(InvalidRequest, match=r"records\[1\]\.content_type must be a string, not 5"):
        prepared(wrong)


def test_what_is_wrong_is_left_for_the_engine_to_refuse() -> None:
    wrong: list[Any] = [5, {"data": b"x", "meta": "no mapping"}]
    assert prepared(wrong) == [5, {"data": "eA==", "meta": "no mapping"}]


@pytest.mark.parametrize(
    ("text", "data"),
    [
        (b'{"$seq":1,"$ts":1,"meta":{"$encoding":"base64"},"data":"AP8="}', b"\x00\xff"),
        (b'{"$seq":1,"$ts":1,"meta":{"$encoding": "base64"},"data":""}', b""),
        (b'{"$seq":1,"$ts":1,"meta":{"$encoding":"base64"},"data":"not base64!"}', "not base64!"),
        (b'{"$seq":1,"$ts":1,"meta":{"$encoding":"base64"},"data":17}', 17),
        (b'{"$seq":1,"$ts":1,"meta":{"$encoding":"hex"},"data":"AP8="}', "AP8="),
        (b'{"$seq":1,"$ts":1,"data":"\\"$encoding\\""}', '"$encoding"'),
        (b'{"$seq":1,"$ts":1,"data":{"$encoding":"base64"}}', {"$encoding": "base64"}),
    ],
)
def test_text_that_says_so_is_bytes_again(text: bytes, data: object) -> None:
    (record,) = parse_records(text)
    assert record.data == data
