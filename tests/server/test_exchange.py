from __future__ import annotations

import asyncio
import gzip
from asyncio import Future
from collections.abc import Callable

import pytest

from tests.server.outlets import Tape, streamed
from topics.server.encoding import ASIDE_BYTES_MIN
from topics.server.exchange import Exchange
from topics.server.heading import Heading
from topics.server.httpoptions import HttpOptions
from topics.server.message import Request, Response
from topics.server.requesthead import RequestHead
from topics.server.streaming import StreamResponse

DATE = "Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n"


class Line:
    gzip_bytes_min = 100
    heading = Heading(0)

    def __init__(self, closes: bool = False) -> None:
        self.closes = closes
        self.heard: list[Exchange] = []
        self.streams: list[tuple[str, bool, StreamResponse]] = []
        self.work: list[tuple[Callable[[], bytes], Callable[[Future[bytes]], None]]] = []

    def answered(self, exchange: Exchange) -> None:
        self.heard.append(exchange)

    def closes_after(self, exchange: Exchange) -> bool:
        return self.closes

    def begin_stream(self, exchange: Exchange, head: bytes, chunked: bool, response: StreamResponse) -> None:
        self.streams.append((head.decode(), chunked, response))

    def aside(self, work: Callable[[], bytes], done: Callable[[Future[bytes]], None]) -> None:
        self.work.append((work, done))


def exchange_on(line: Line, method: str = "GET", version: str = "1.1", **headers: str) -> Exchange:
    named = {"host": "here"} | {name.replace("_", "-"): value for name, value in headers.items()}
    head = RequestHead(method, b"/", version, named, True, HttpOptions())
    return Exchange(line, head, Request(head.method, "/", "", named, b"", 0, "id-1"))


def answer(response: Response, method: str = "GET", closes: bool = False, version: str = "1.1", **headers: str) -> str:
    line = Line(closes)
    exchange = exchange_on(line, method, version, **headers)
    exchange(response)
    assert line.heard == [exchange] and exchange.answer is not None
    return exchange.answer.decode("latin-1")


def test_the_usual_answer() -> None:
    assert answer(Response(200, b"{}")) == (
        f"HTTP/1.1 200 OK\r\n{DATE}"
        "Content-Type: application/json\r\nX-Request-Id: id-1\r\nContent-Length: 2\r\n\r\n{}"
    )


def test_the_usual_answer_is_the_same_as_any_other() -> None:
    usual = answer(Response(200, b"{}"))
    assert answer(Response(200, b"{}"), accept_encoding="gzip") == usual
    assert answer(Response(201, b"{}")) == usual.replace("200 OK", "201 Created")
    assert answer(Response(200, b"{}"), "HEAD") == usual[:-2]
    assert answer(Response(200, b"{}"), closes=True) == usual.replace("Content-L", "Connection: close\r\nContent-L")


def test_an_answer_without_a_body() -> None:
    assert answer(Response(204)) == f"HTTP/1.1 204 No Content\r\n{DATE}X-Request-Id: id-1\r\n\r\n"


def test_a_second_answer_is_our_bug() -> None:
    head = RequestHead("GET", b"/", "1.1", {"host": "here"}, True, HttpOptions())
    exchange = Exchange(Line(), head, Request("GET", "/", "", {}, b"", 0))
    exchange(Response(200))
    with pytest.raises(AssertionError, match="once"):
        exchange(Response(200))


def test_who_waits_for_an_answer_is_told_when_nobody_reads_it() -> None:
    told: list[str] = []
    head = RequestHead("GET", b"/", "1.1", {"host": "here"}, True, HttpOptions())
    request = Request("GET", "/", "", {}, b"", 0)
    exchange = Exchange(Line(), head, request)
    exchange.abandon()
    request.on_gone = lambda: told.append("gone")
    exchange.abandon()
    assert told == ["gone"]
    exchange(Response(200))
    exchange.abandon()
    Exchange.known(Line(), b"").abandon()
    assert told == ["gone"], "not once it is answered"


def test_a_refusal_is_known_from_the_start() -> None:
    refusal = Exchange.refusal(Line(), Response(400, b"{}", headers=((b"Retry-After", b"1"),)), "id-2").answer
    assert refusal == (
        b"HTTP/1.1 400 Bad Request\r\n" + DATE.encode() + b"Content-Type: application/json\r\n"
        b"X-Request-Id: id-2\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"
    )


def test_a_stream_has_a_head_and_no_answer() -> None:
    line, tape = Line(), Tape()
    exchange = exchange_on(line)
    exchange(streamed(tape))
    assert exchange.answer is None and line.heard == []
    ((head, chunked, _),) = line.streams
    assert chunked and head == (
        f"HTTP/1.1 200 OK\r\n{DATE}"
        "Content-Type: text/event-stream\r\nX-Request-Id: id-1\r\nConnection: keep-alive\r\n"
        "Transfer-Encoding: chunked\r\n\r\n"
    )
    exchange_on(line, "HEAD")(streamed(tape))
    assert len(line.streams) == 1 and len(line.heard) == 1 and tape.heard == ["closed"]


def test_a_large_answer_is_known_when_it_is_compressed() -> None:
    line = Line()
    exchange = exchange_on(line, accept_encoding="gzip")
    body = b"x" * ASIDE_BYTES_MIN
    exchange(Response(200, body))
    assert exchange.answer is None and line.heard == []
    ((work, done),) = line.work
    result: Future[bytes] = Future(loop=asyncio.new_event_loop())
    result.set_result(work())
    done(result)
    result.get_loop().close()
    assert line.heard == [exchange] and exchange.answer is not None
    head, _, packed = exchange.answer.partition(b"\r\n\r\n")
    assert b"Content-Encoding: gzip" in head and gzip.decompress(packed) == body
    exchange_on(line, accept_encoding="gzip")(Response(200, body[1:]))
    assert len(line.work) == 1 and len(line.heard) == 2, "a smaller one is compressed at once"
