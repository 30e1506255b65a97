from __future__ import annotations

import pytest

from topics.errors import ExpectationFailed, InvalidRequest, PayloadTooLarge, TopicsError, UnsupportedMediaType
from topics.server.httpoptions import HttpOptions
from topics.server.requesthead import RequestHead

OPTIONS = HttpOptions(body_bytes_max=1000)


def head(method: str = "POST", version: str = "1.1", keep_alive: bool = True, **headers: str) -> RequestHead:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return RequestHead(method, b"/a?b", version, {"host": "here"} | named, keep_alive, OPTIONS)


def test_what_a_head_says() -> None:
    plain = head(content_length="12", x_request_id="mine")
    assert (plain.method, plain.path, plain.query, plain.body_bytes) == ("POST", "/a", "b", 12)
    assert (plain.chunked, plain.gzip_body, plain.gzip_answer, plain.head_only) == (False, False, False, False)
    assert plain.request_id == "mine"
    other = head("HEAD", accept_encoding="gzip", content_encoding="gzip", transfer_encoding="Chunked")
    assert (other.method, other.head_only, other.gzip_answer, other.gzip_body) == ("HEAD", True, True, True)
    assert (other.chunked, other.body_bytes) == (True, 0)


@pytest.mark.parametrize("given", ["", "a b", "x" * 129, "é", "a\x7f", '"'])
def test_an_id_we_would_not_repeat(given: str) -> None:
    assert head(x_request_id=given).request_id == ""


@pytest.mark.parametrize(
    ("headers", "awaits"),
    [
        ({"expect": "100-Continue", "content_length": "1"}, True),
        ({"expect": "100-continue", "transfer_encoding": "chunked"}, True),
        ({"expect": "100-continue"}, False),
        ({"expect": "100-continue", "content_length": "1", "version": "1.0"}, False),
        ({"expect": "anything", "content_length": "1", "version": "1.0"}, False),
        ({"content_length": "1"}, False),
    ],
)
def test_who_waits_for_a_word(headers: dict[str, str], awaits: bool) -> None:
    assert head(**headers).awaits_continue is awaits  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("headers", "error"),
    [
        ({"content_length": "1001"}, PayloadTooLarge),
        ({"content_length": "9" * 5000}, PayloadTooLarge),
        ({"transfer_encoding": "gzip, chunked"}, InvalidRequest),
        ({"transfer_encoding": "identity"}, InvalidRequest),
        ({"transfer_encoding": "chunked", "version": "1.0"}, InvalidRequest),
        ({"version": "2.0"}, InvalidRequest),
        ({"version": "0.9"}, InvalidRequest),
        ({"method": "CONNECT"}, InvalidRequest),
        ({"content_encoding": "zstd"}, UnsupportedMediaType),
        ({"expect": "a miracle"}, ExpectationFailed),
    ],
)
def test_what_is_refused(headers: dict[str, str], error: type[TopicsError]) -> None:
    with pytest.raises(error):
        head(**headers)  # type: ignore[arg-type]


def test_a_host_is_needed_in_1_1_only() -> None:
    assert RequestHead("GET", b"/", "1.0", {}, False, OPTIONS).path == "/"
    with pytest.raises(InvalidRequest, match="Host"):
        RequestHead("GET", b"/", "1.1", {}, True, OPTIONS)


@pytest.mark.parametrize(
    ("headers", "repeatable"),
    [
        ({}, True),
        ({"content_length": "5", "content_encoding": "gzip"}, True),
        ({"keep_alive": False}, False),
        ({"transfer_encoding": "chunked"}, False),
        ({"expect": "100-continue", "content_length": "1"}, False),
        ({"upgrade": "websocket"}, False),
    ],
)
def test_which_heads_may_be_remembered(headers: dict[str, str], repeatable: bool) -> None:
    assert head(**headers).repeatable is repeatable  # type: ignore[arg-type]
