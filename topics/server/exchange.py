"""One request and its answer: the `Reply` that a dispatch is given, and the bytes that come of it.

An answer that takes long to compress is compressed on a thread, and known when that is done. A stream has no answer at
all: its head goes to the connection, which opens the stream when it is its turn.
"""

from __future__ import annotations

from asyncio import Future
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Protocol

from topics.server.attachment import close_quietly
from topics.server.encoding import ASIDE_BYTES_MIN, gzip
from topics.server.heading import Heading
from topics.server.message import JSON, Request, Response
from topics.server.requesthead import RequestHead
from topics.server.streaming import StreamResponse

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

_STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}
_BODILESS = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)


class Answered(Protocol):
    """What an exchange tells its connection."""

    gzip_bytes_min: int
    heading: Heading

    def answered(self, exchange: Exchange) -> None: ...

    def closes_after(self, exchange: Exchange) -> bool:
        """Decides whether the connection ends with this answer."""

    def begin_stream(self, exchange: Exchange, head: bytes, chunked: bool, response: StreamResponse) -> None:
        """Open a stream when all before it is answered."""

    def aside(self, work: Callable[[], bytes], done: Callable[[Future[bytes]], None]) -> None:
        """Do what would hold up the loop on a thread, and tell the loop."""


class Exchange:
    """Callable with the response, once. `answer` is what goes over the wire, None while it is not known."""

    __slots__ = ("_connection", "answer", "head", "request")

    def __init__(self, connection: Answered, head: RequestHead | None, request: Request | None) -> None:
        self._connection = connection
        self.head = head
        self.request = request
        """Like the head, None when there is nothing to dispatch: the answer is known from the start."""
        self.answer: bytes | None = None

    def __call__(self, response: Response) -> None:
        assert self.answer is None, "a request is answered once"
        connection = self._connection
        head = self.head
        request = self.request
        assert head is not None and request is not None
        if (
            response.status == 200
            and response.content_type is JSON
            and not response.headers
            and not head.answer_headers
            and not head.head_only
            and not head.gzip_answer
            and head.version == "1.1"
            and not connection.closes_after(self)
        ):
            body = response.body
            self.answer = connection.heading.ok_json % (request.request_id.encode(), len(body), body)
        elif isinstance(response, StreamResponse):
            self._stream(response, head, request.request_id)
            return
        elif head.gzip_answer and not response.encoded and len(response.body) >= ASIDE_BYTES_MIN:
            connection.aside(partial(gzip, response.body), partial(self._compressed, response))
            return
        else:
            self.answer = self._render(response, head, request.request_id)
        connection.answered(self)

    def abandon(self) -> None:
        """The client may not be there for its answer."""
        request = self.request
        if self.answer is None and request is not None and request.on_gone is not None:
            request.on_gone()

    @classmethod
    def known(cls, connection: Answered, answer: bytes) -> Exchange:
        """An answer without a request: an interim one, or a refusal."""
        exchange = cls(connection, None, None)
        exchange.answer = answer
        return exchange

    @classmethod
    def refusal(cls, connection: Answered, response: Response, request_id: str) -> Exchange:
        headers = [(b"Content-Type", response.content_type), (b"X-Request-Id", request_id.encode()), *response.headers]
        headers.append((b"Connection", b"close"))
        date_line = connection.heading.date_line
        return cls.known(connection, _render_parts(response.status, date_line, headers, b"", response.body, False))

    def _compressed(self, response: Response, done: Future[bytes]) -> None:
        head, request = self.head, self.request
        assert head is not None and request is not None
        self.answer = self._render(response, head, request.request_id, done.result())
        self._connection.answered(self)

    def _stream(self, response: StreamResponse, head: RequestHead, request_id: str) -> None:
        connection = self._connection
        lines = [(b"X-Request-Id", request_id.encode()), *response.headers]
        chunked = head.version == "1.1" and response.status != HTTPStatus.SWITCHING_PROTOCOLS
        if response.status != HTTPStatus.SWITCHING_PROTOCOLS:
            closes = connection.closes_after(self) or not (chunked or head.head_only)
            lines.insert(0, (b"Content-Type", response.content_type))
            lines.append((b"Connection", b"close" if closes else b"keep-alive"))
        if chunked:
            lines.append((b"Transfer-Encoding", b"chunked"))
        date_line = connection.heading.date_line
        rendered = _render_head(response.status, date_line, lines, head.answer_headers) + b"\r\n"
        if head.head_only:
            close_quietly(response)
            self.answer = rendered
            connection.answered(self)
        else:
            connection.begin_stream(self, rendered, chunked, response)

    def _render(self, response: Response, head: RequestHead, request_id: str, packed: bytes | None = None) -> bytes:
        body = response.body
        lines = [(b"X-Request-Id", request_id.encode()), *response.headers]
        if response.status not in _BODILESS:
            lines.insert(0, (b"Content-Type", response.content_type))
        if head.gzip_answer and not response.encoded and len(body) >= self._connection.gzip_bytes_min:
            body = gzip(body) if packed is None else packed
            lines += [(b"Content-Encoding", b"gzip"), (b"Vary", b"Accept-Encoding")]
        if self._connection.closes_after(self):
            lines.append((b"Connection", b"close"))
        elif head.version == "1.0":
            lines.append((b"Connection", b"keep-alive"))
        date_line = self._connection.heading.date_line
        return _render_parts(response.status, date_line, lines, head.answer_headers, body, head.head_only)


def _render_head(status: int, date_line: bytes, headers: list[tuple[bytes, bytes]], more_headers: bytes) -> bytes:
    lines = (b"%b: %b\r\n" % header for header in headers)
    return b"".join([_STATUS_LINES[status], date_line, *lines, more_headers])


def _render_parts(
    status: int,
    date_line: bytes,
    headers: list[tuple[bytes, bytes]],
    more_headers: bytes,
    body: bytes,
    head_only: bool,
) -> bytes:
    # A 204 must not have the header; all others do, so that nobody has to wait for the end of the connection.
    length = b"\r\n" if status == HTTPStatus.NO_CONTENT else b"Content-Length: %d\r\n\r\n" % len(body)
    shown = b"" if head_only or status in _BODILESS else body
    return b"".join([_render_head(status, date_line, headers, more_headers), length, shown])
