from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topics.errors import InvalidRequest
from topics.server.target import parse_target


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        (b"/", "/", ""),
        (b"/v0/topics/jobs", "/v0/topics/jobs", ""),
        (b"/a%20b%C3%A9?x=%20&y", "/a bé", "x=%20&y"),
        (b"/a%2Fb/%2f", "/a%2Fb/%2F", ""),
        (b"/a?b?c#d", "/a", "b?c"),
        (b"/a#b?c", "/a", ""),
        (b"//a/../b", "//a/../b", ""),
        (b"*", "*", ""),
        (b"http://host", "/", ""),
        (b"HTTP://host:80/a%20b?q", "/a b", "q"),
        (b"https://host?q/r", "/", "q/r"),
    ],
)
def test_forms_of_a_target(target: bytes, path: str, query: str) -> None:
    assert parse_target(target) == (path, query)


@pytest.mark.parametrize(
    "target", [b"/%", b"/%2", b"/%zz", b"/%+1", b"/%ff", b"/%00", b"a/b", b"ftp://host/", b"host:80"]
)
def test_what_is_no_target(target: bytes) -> None:
    with pytest.raises(InvalidRequest, match="request target"):
        parse_target(target)


def test_an_error_does_not_show_the_query() -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_target(b"/%ff?token=secret")
    assert "secret" not in str(caught.value)


@given(st.binary(max_size=40))
def test_any_bytes_are_a_target_or_refused(target: bytes) -> None:
    try:
        path, _ = parse_target(b"/" + target)
    except InvalidRequest:
        return
    assert path.startswith("/") and "\0" not in path
