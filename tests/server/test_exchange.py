from __future__ import annotations

import json

import pytest

from topics.errors import InvalidRequest, TopicNotFound
from topics.server.exchange import Exchange, error_body
from topics.server.httpoptions import HttpOptions
from topics.server.message import Request, Response
from topics.server.requesthead import RequestHead


class Line:
    gzip_bytes_min = 100

    def __init__(self, closes: bool = False) -> None:
        self.closes = closes
        self.heard: list[Exchange] = []

    def answered(self, exchange: Exchange) -> None:
        self.heard.append(exchange)

    def closes_after(self, exchange: Exchange) -> bool:
        return self.closes


def answer(response: Response, method: str = "GET", closes: bool = False, version: str = "1.1", **headers: str) -> str:
    named = {"host": "here"} | {name.replace("_", "-"): value for name, value in headers.items()}
    head = RequestHead(method, b"/", version, named, True, HttpOptions())
    line = Line(closes)
    exchange = Exchange(line, head, Request(head.method, "/", "", named, b"", 0, "id-1"))
    exchange(response)
    assert line.heard == [exchange] and exchange.answer is not None
    return exchange.answer.decode("latin-1")


def test_the_usual_answer() -> None:
    assert answer(Response(200, b"{}")) == (
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Request-Id: id-1\r\nContent-Length: 2\r\n\r\n{}"
    )


def test_the_usual_answer_is_the_same_as_any_other() -> None:
    usual = answer(Response(200, b"{}"))
    assert answer(Response(200, b"{}"), accept_encoding="gzip") == usual
    assert answer(Response(201, b"{}")) == usual.replace("200 OK", "201 Created")
    assert answer(Response(200, b"{}"), "HEAD") == usual[:-2]
    assert answer(Response(200, b"{}"), closes=True) == usual.replace("Content-L", "Connection: close\r\nContent-L")


def test_an_answer_without_a_body() -> None:
    assert answer(Response(204)) == "HTTP/1.1 204 No Content\r\nX-Request-Id: id-1\r\n\r\n"


def test_a_second_answer_is_our_bug() -> None:
    head = RequestHead("GET", b"/", "1.1", {"host": "here"}, True, HttpOptions())
    exchange = Exchange(Line(), head, Request("GET", "/", "", {}, b"", 0))
    exchange(Response(200))
    with pytest.raises(AssertionError, match="once"):
        exchange(Response(200))


def test_a_refusal_is_known_from_the_start() -> None:
    refusal = Exchange.refusal(Line(), InvalidRequest("no", field="x"), "id-2").answer
    assert refusal is not None
    head, _, body = refusal.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n") and b"Connection: close" in head
    assert json.loads(body) == {"error": {"code": "invalid_request", "message": "no", "detail": {"field": "x"}}}


def test_detail_is_left_out_when_there_is_none() -> None:
    assert json.loads(error_body(TopicNotFound("gone"))) == {"error": {"code": "topic_not_found", "message": "gone"}}
