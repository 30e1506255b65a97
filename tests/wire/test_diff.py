from __future__ import annotations

import pytest

from topics.core.cut import Shape
from topics.core.match import Match
from topics.errors import InvalidRequest
from topics.wire.diff import DiffRequest, decode_diff


@pytest.mark.parametrize("body", [b"", b"{}", b'{"from_seq":null,"node":null,"match":null,"include_meta":null}'])
def test_what_is_not_said_is_the_default(body: bytes) -> None:
    assert decode_diff(body) == DiffRequest()
    assert decode_diff(body).shape == Shape(tags=False, meta=True)


def test_everything_said() -> None:
    body = (
        b'{"from_seq":18446744073709551615,"from_ts":5,"limit":7,"node":["a","b"],"include_tags":true,"unknown":[{}],'
        b'"include_meta":false,"wait_ms":99999999,"max_batch_bytes":9,"match":["tag","Glob","x*"],"partition":3}'
    )
    assert decode_diff(body) == DiffRequest(
        from_seq=2**64 - 1,
        from_ts=5,
        limit=7,
        byte_budget=9,
        nodes=("a", "b"),
        match=Match(b"x", prefix=True),
        shape=Shape(tags=True, meta=False),
        wait_ms=30_000,
        partition=3,
    )


def test_a_node_may_stand_alone() -> None:
    assert decode_diff(b'{"node":"a"}').nodes == ("a",)


def test_a_repeated_key_is_found_in_any_spelling() -> None:
    with pytest.raises(InvalidRequest):
        decode_diff(rb'{"limit":1,"l\u0069mit":2}')


def test_a_bomb_is_refused() -> None:
    with pytest.raises(InvalidRequest):
        decode_diff(b'{"match":' + b"[" * 100_000 + b"]" * 100_000 + b"}")
