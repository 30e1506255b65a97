from __future__ import annotations

import msgspec
import pytest

from topics.errors import InvalidRequest
from topics.jsontext import encode


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, b"null"),
        ({"a": [1, 2.5, None, "null"]}, b'{"a":[1,2.5,null,"null"]}'),
        (msgspec.Raw(b" [null] "), b"[null]"),
        ([msgspec.Raw(b"17"), None], b"[17,null]"),
    ],
)
def test_what_is_json(value: object, text: bytes) -> None:
    assert encode(value, "data") == text


@pytest.mark.parametrize(
    "value",
    [object(), float("nan"), {"a": [float("inf")]}, msgspec.Raw(b"{"), msgspec.Raw(b""), "\ud800", {1j: 2}],
    ids=["object", "nan", "infinity", "cut off", "empty", "surrogate", "key"],
)
def test_what_is_none_is_named(value: object) -> None:
    with pytest.raises(InvalidRequest, match=r"^data cannot be written as JSON: ") as refused:
        encode(value, "data")
    assert refused.value.detail == {"field": "data", "expected": "JSON"}


def test_what_is_too_deep() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(InvalidRequest, match="data must be nested at most 512 deep"):
        encode(deep, "data")
