from __future__ import annotations

import gzip as standard
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topics.errors import InvalidRequest, PayloadTooLarge, UnsupportedMediaType
from topics.server.encoding import ASIDE_BYTES_MIN, MEMBERS_MAX, accepts_gzip, gunzip, gunzip_if_small, gzip, is_gzip


@given(st.binary(max_size=2000))
def test_what_is_compressed_comes_back(body: bytes) -> None:
    assert gunzip(gzip(body), len(body)) == body == standard.decompress(gzip(body))


@pytest.mark.parametrize("size", [0, 1, 1000])
def test_the_bound_is_exact(size: int) -> None:
    body = standard.compress(b"x" * size)
    assert len(gunzip(body, size)) == size
    if size:
        with pytest.raises(PayloadTooLarge):
            gunzip(body, size - 1)


def test_a_bomb_is_refused_before_it_goes_off() -> None:
    bomb = standard.compress(b"\0" * 50_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(PayloadTooLarge):
            gunzip(bomb, 1_000_000)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def test_joined_members_are_one_body_up_to_so_many() -> None:
    member = standard.compress(b"ab")
    assert gunzip(member * MEMBERS_MAX, 1000) == b"ab" * MEMBERS_MAX
    with pytest.raises(InvalidRequest, match="joined"):
        gunzip(member * (MEMBERS_MAX + 1), 1000)
    with pytest.raises(PayloadTooLarge):
        gunzip(member * 3, 5)


@pytest.mark.parametrize(
    "body", [b"", b"plain", gzip(b"abc")[:-1], gzip(b"abc") + b"tail", gzip(b"abc")[:-8] + b"\0" * 8]
)
def test_what_is_not_gzip(body: bytes) -> None:
    with pytest.raises(InvalidRequest, match="gzip"):
        gunzip(body, 1000)


@pytest.mark.parametrize(
    ("header", "accepted"),
    [
        ("", False),
        ("gzip", True),
        ("br, GZIP;q=0.5", True),
        ("gzip;q=0", False),
        ("gzip; q=0.0, *", False),
        ("*", True),
        ("*;q=0", False),
        ("*;q=0, gzip", True),
        ("identity", False),
        ("gzip;q=much", False),
        ("x-gzip", True),
    ],
)
def test_who_takes_gzip(header: str, accepted: bool) -> None:
    assert accepts_gzip(header) is accepted


def test_which_bodies_are_gzip() -> None:
    assert is_gzip("gzip") and is_gzip(" X-GZIP ")
    assert not is_gzip("") and not is_gzip("identity")
    with pytest.raises(UnsupportedMediaType, match="br"):
        is_gzip("br")


def test_only_what_is_small_is_inflated_at_once() -> None:
    size = ASIDE_BYTES_MIN
    assert gunzip_if_small(standard.compress(b"x" * size), 10 * size) == b"x" * size
    assert gunzip_if_small(standard.compress(b"x" * (size + 1)), 10 * size) is None
    assert gunzip_if_small(b"x" * (size + 1), 10 * size) is None, "not even looked at"
    with pytest.raises(PayloadTooLarge):
        gunzip_if_small(standard.compress(b"x" * 101), 100)
    with pytest.raises(InvalidRequest):
        gunzip_if_small(b"no gzip", 100)
