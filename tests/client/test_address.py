from __future__ import annotations

import pytest

from topics.client.address import Address, parse_address
from topics.errors import InvalidRequest


@pytest.mark.parametrize(
    ("url", "address", "authority"),
    [
        ("http://127.0.0.1:4000", Address("127.0.0.1", 4000, False), "127.0.0.1:4000"),
        ("http://example.org", Address("example.org", 80, False), "example.org"),
        ("https://example.org", Address("example.org", 443, True), "example.org"),
        ("https://example.org:80", Address("example.org", 80, True), "example.org:80"),
        (" http://example.org/a/b/ ", Address("example.org", 80, False, "/a/b"), "example.org"),
        ("http://[::1]:4000/", Address("::1", 4000, False), "[::1]:4000"),
    ],
)
def test_a_url_is_taken_apart(url: str, address: Address, authority: str) -> None:
    assert parse_address(url) == address
    assert address.authority == authority
    assert parse_address(str(address)) == address


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("127.0.0.1:4000", "is not the URL of a server"),
        ("localhost", "is not the URL of a server"),
        ("", "is not the URL of a server"),
        ("ftp://example.org", "is not the URL of a server"),
        ("http://", "is not the URL of a server"),
        ("http://host:port", "is not a URL"),
        ("http://host:99999", "is not a URL"),
        ("http://host/?a=b", "has a query"),
        ("http://host/#a", "has a query or a fragment"),
        (17, "must be a string, not int"),
    ],
)
def test_what_is_no_address_is_refused_with_what_would_be(url: str, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said) as refused:
        parse_address(url)
    assert "expected http://host:port" in refused.value.message


@pytest.mark.parametrize("url", ["http://user:secret@host", "http://secret@host", "http://user:secret@host:port"])
def test_a_secret_in_a_url_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse_address(url)
    assert "secret" not in refused.value.message
