from __future__ import annotations

import pytest

from topics.core.match import Match
from topics.errors import InvalidRequest
from topics.wire.delete import DeleteRequest, decode_delete


def test_what_a_delete_names() -> None:
    assert decode_delete(b'{"before_seq":0}') == DeleteRequest(before_seq=0)
    assert decode_delete(b'{"match":"x","erase":true,"partition":2}') == DeleteRequest(
        match=Match(b"x", prefix=False), erase=True, partition=2
    )


@pytest.mark.parametrize("body", [b"", b"{}", b'{"erase":true}', b'{"match":null}'])
def test_nothing_named_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidRequest) as caught:
        decode_delete(body)
    assert caught.value.detail["expected"] == "before_seq, match, or both"
