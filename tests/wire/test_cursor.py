from __future__ import annotations

from base64 import b64encode

import pytest

from topics.errors import InvalidRequest
from topics.wire.cursor import decode_cursor, encode_cursor


@pytest.mark.parametrize("name", ["jobs", "a", "render-queue:tenant~?>", "x" * 255])
def test_a_cursor_comes_back(name: str) -> None:
    text = encode_cursor(name)
    assert decode_cursor(text) == name
    assert not set("+/&") & set(text)


def test_it_is_the_documented_text() -> None:
    assert encode_cursor("jobs") == "eyJhZnRlciI6ImpvYnMifQ=="


def test_no_cursor_is_the_beginning() -> None:
    assert decode_cursor("") == ""


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "!!!!",
        "e30=",
        "W10=",
        "eyJhZnRlciI6NX0=",
        "eyJhZnRlciI6ImpvYnMifQ",
        "é",
        "/w==",
        b64encode(b'{"after":"\xff"}').decode(),
        b64encode(b'{"after":"a","deep":%b%b}' % (b"[" * 100_000, b"]" * 100_000)).decode(),
    ],
    ids=lambda text: text[:30],
)
def test_what_is_no_cursor(text: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        decode_cursor(text)
    assert caught.value.detail["field"] == "cursor"
