from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topics.wire.plain import are_values

pieces = st.sampled_from([b'"', b"a", b"1", b",", b"[", b"]", b"{", b"}", b":", b" ", b"\\", b"\xc3", b"\xa4", b"null"])
texts = st.lists(pieces, max_size=6).map(b"".join)


def is_value(text: bytes) -> bool:
    try:
        text.decode()
        return len(msgspec.json.decode(text, type=msgspec.Raw)) == len(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False


@given(st.lists(texts, max_size=5))
def test_all_are_values_when_each_is_one(found: list[bytes]) -> None:
    assert are_values(found) == all(map(is_value, found))


@pytest.mark.parametrize(
    "found",
    [
        [b'"a', b'b"'],
        [b"1,2", b"3"],
        [b"1,2"],
        [b"[1", b"2]"],
        [b"1", b"", b"2"],
        [b" 1", b"2"],
        [b"1]", b"[2"],
        [b'"\xc3', b'\xa4"'],
        [b"[" * 3000],
        [b"[" * 3000 + b"]" * 3000],
        [b"NaN"],
        [b""],
    ],
)
def test_what_is_no_value_alone_is_none_among_others(found: list[bytes]) -> None:
    assert not are_values(found)


def test_values_of_all_kinds_are_found() -> None:
    assert are_values([b"1", b'"\xc3\xa4"', b'{"a":[1,2,{}]}', b"null", b"[]", b"-1.5e3", b"true"])
    assert are_values([])
