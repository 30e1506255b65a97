from __future__ import annotations

import pytest

from topics.errors import InvalidRequest
from topics.wire.nothing import check_nothing


@pytest.mark.parametrize("body", [b"", b"{}", b'{"later": [1]}'])
def test_an_object_or_none_at_all(body: bytes) -> None:
    check_nothing(body)


@pytest.mark.parametrize("body", [b"[]", b"null", b"1", b"{", b'{"a":1}x', b"\xff"])
def test_anything_else_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidRequest):
        check_nothing(body)
