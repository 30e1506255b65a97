from __future__ import annotations

import pytest

from topics.errors import InvalidRequest
from topics.limits import STREAM_TOKEN_MS_DEFAULT, STREAM_TOKEN_MS_MAX, STREAM_TOKEN_TOPICS_MAX
from topics.wire.tokens import TokenRequest, decode_token


def test_all_of_it_may_be_left_out() -> None:
    assert decode_token(b"") == decode_token(b"{}") == decode_token(b'{"topics":[],"scopes":[]}') == TokenRequest()
    assert TokenRequest().ttl_ms == STREAM_TOKEN_MS_DEFAULT


def test_all_of_it_may_be_said() -> None:
    body = b'{"wid":"wid_1","topics":["a","b:*","*"],"scopes":["write","read","write"],"ttl_ms":5000}'
    wanted = TokenRequest(wid="wid_1", topics=("a", "b:*", "*"), scopes=("write", "read"), ttl_ms=5000)
    assert decode_token(body) == wanted


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b'{"ttl_ms":999}', "ttl_ms"),
        (b'{"ttl_ms":%d}' % (STREAM_TOKEN_MS_MAX + 1), "ttl_ms"),
        (b'{"ttl_ms":"1"}', "ttl_ms"),
        (b'{"ttl_ms":null}', "ttl_ms"),
        (b'{"scopes":["admin"]}', "scopes[0]"),
        (b'{"topics":["a b"]}', "topics"),
        (b'{"topics":["a**"]}', "topics"),
        (b'{"topics":[""]}', "topics"),
        (b'{"topics":[%b]}' % b",".join([b'"a"'] * (STREAM_TOKEN_TOPICS_MAX + 1)), "topics"),
        (b'{"wid":"%b"}' % (b"w" * 129), "wid"),
        (b'{"wid":"a","wid":"b"}', "wid"),
        (b"[]", ""),
    ],
)
def test_what_is_wrong_is_named(body: bytes, field: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        decode_token(body)
    assert caught.value.detail["field"] == field
