from __future__ import annotations

import pytest

from topics.errors import Forbidden
from topics.server.cors import NO_CORS, Cors
from topics.server.pageorigins import PageOrigins, is_same_origin

HOST = {"host": "localhost:4000"}
OWN = {"origin": "http://localhost:4000"}
EVIL = {"origin": "http://evil.example"}


def may(pages: PageOrigins, *headers: dict[str, str], method: str = "POST") -> bool:
    merged = {name: value for each in (HOST, *headers) for name, value in each.items()}
    try:
        pages.check_method(method, merged)
    except Forbidden:
        return False
    return True


def site(name: str) -> dict[str, str]:
    return {"sec-fetch-site": name}


@pytest.mark.parametrize("keys", [False, True])
def test_requests_of_programs_and_own_pages_are_accepted(keys: bool) -> None:
    pages = PageOrigins(NO_CORS, keys)
    for headers in ({}, OWN, OWN | site("same-origin"), site("same-origin"), site("none")):
        assert may(pages, headers), headers


@pytest.mark.parametrize("keys", [False, True])
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_requests_of_foreign_pages_are_refused(method: str, keys: bool) -> None:
    pages = PageOrigins(NO_CORS, keys)
    other_port, null = {"origin": "http://localhost:3000"}, {"origin": "null"}
    sites = (site("cross-site"), site("same-site"), site("Cross-Site"))
    for headers in (EVIL, null, other_port, {"origin": ""}, *sites, OWN | site("same-site")):
        assert not may(pages, headers, method=method), headers


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_reads_of_foreign_pages_are_accepted(method: str) -> None:
    assert may(PageOrigins(NO_CORS, False), EVIL, site("cross-site"), method=method)


def test_listed_origins_are_accepted() -> None:
    pages = PageOrigins(Cors.of("http://app.example, http://other.example"), False)
    assert may(pages, {"origin": "http://app.example"}, site("cross-site"))
    assert not may(pages, EVIL, site("cross-site"))
    assert not may(pages, site("cross-site")), "a page that says no origin is not a listed one"
    assert may(PageOrigins(Cors.of("*"), False), EVIL, site("cross-site"))
    assert may(PageOrigins(Cors.of("*"), False), site("cross-site"))


def test_key_in_a_header_is_proof_enough_with_keys_only() -> None:
    key = {"authorization": "Bearer x"}
    assert may(PageOrigins(NO_CORS, True), EVIL, key)
    assert not may(PageOrigins(NO_CORS, False), EVIL, key)


def test_refusal_names_header_and_remedy() -> None:
    with pytest.raises(Forbidden, match=r"http://evil\.example.*TOPICS_CORS_ORIGINS") as refused:
        PageOrigins(NO_CORS, False).check(HOST | EVIL)
    assert refused.value.detail["field"] == "origin"
    with pytest.raises(Forbidden, match="another site") as refused:
        PageOrigins(NO_CORS, False).check(HOST | site("cross-site"))
    assert refused.value.detail["field"] == "sec-fetch-site"


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("http://localhost:4000", "localhost:4000"),
        ("http://LOCALHOST:4000", "Localhost.:4000"),
        ("https://topics.example", "topics.example"),
        ("https://topics.example", "topics.example:443"),
        ("http://topics.example", "topics.example:80"),
        ("http://[::1]:4000", "[::1]:4000"),
    ],
)
def test_own_origin_is_recognised(origin: str, host: str) -> None:
    assert is_same_origin(origin, host)


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("http://localhost:4001", "localhost:4000"),
        ("http://localhost", "localhost:4000"),
        ("http://127.0.0.1:4000", "localhost:4000"),
        ("https://topics.example", "topics.example:80"),
        ("ftp://localhost:4000", "localhost:4000"),
        ("null", "localhost:4000"),
        ("", ""),
        ("http://", ""),
        ("http://[::1", "[::1"),
        ("http://localhost:x", "localhost:x"),
        ("localhost:4000", "localhost:4000"),
    ],
)
def test_other_origin_is_not_the_own_one(origin: str, host: str) -> None:
    assert not is_same_origin(origin, host)
