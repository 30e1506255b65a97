"""One request and its answer: the `Reply` that a dispatch is given, and the bytes that come of it."""

from __future__ import annotations

from http import HTTPStatus
from typing import Protocol

import msgspec

from topics.errors import TopicsError
from topics.server.encoding import gzip
from topics.server.message import JSON, Request, Response
from topics.server.requesthead import RequestHead

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

_STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}
OK_JSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Request-Id: %b\r\nContent-Length: %d\r\n\r\n%b"
_BODILESS = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)


class Answered(Protocol):
    """What an exchange tells its connection."""

    gzip_bytes_min: int

    def answered(self, exchange: Exchange) -> None: ...

    def closes_after(self, exchange: Exchange) -> bool:
        """Decides whether the connection ends with this answer."""


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
            self.answer = OK_JSON % (request.request_id.encode(), len(body), body)
        else:
            self.answer = self._render(response, head, request.request_id)
        connection.answered(self)

    @classmethod
    def known(cls, connection: Answered, answer: bytes) -> Exchange:
        """An answer without a request: an interim one, or a refusal."""
        exchange = cls(connection, None, None)
        exchange.answer = answer
        return exchange

    @classmethod
    def refusal(cls, connection: Answered, error: TopicsError, request_id: str) -> Exchange:
        headers = [(b"Content-Type", JSON), (b"X-Request-Id", request_id.encode()), (b"Connection", b"close")]
        return cls.known(connection, _render_parts(error.http_status, headers, b"", error_body(error), False))

    def _render(self, response: Response, head: RequestHead, request_id: str) -> bytes:
        body = response.body
        lines = [(b"X-Request-Id", request_id.encode()), *response.headers]
        if response.status not in _BODILESS:
            lines.insert(0, (b"Content-Type", response.content_type))
        if head.gzip_answer and len(body) >= self._connection.gzip_bytes_min:
            body = gzip(body)
            lines += [(b"Content-Encoding", b"gzip"), (b"Vary", b"Accept-Encoding")]
        if self._connection.closes_after(self):
            lines.append((b"Connection", b"close"))
        elif head.version == "1.0":
            lines.append((b"Connection", b"keep-alive"))
        return _render_parts(response.status, lines, head.answer_headers, body, head.head_only)


def error_body(error: TopicsError) -> bytes:
    """The envelope that every refusal has."""
    content: dict[str, object] = {"code": error.code, "message": error.message}
    if error.detail:
        content["detail"] = error.detail
    return msgspec.json.encode({"error": content})


def _render_parts(
    status: int, headers: list[tuple[bytes, bytes]], more_headers: bytes, body: bytes, head_only: bool
) -> bytes:
    parts = [_STATUS_LINES[status]]
    parts += [b"%b: %b\r\n" % header for header in headers]
    parts.append(more_headers)
    # A 204 must not have the header; all others do, so that nobody has to wait for the end of the connection.
    parts.append(b"\r\n" if status == HTTPStatus.NO_CONTENT else b"Content-Length: %d\r\n\r\n" % len(body))
    if not head_only and status not in _BODILESS:
        parts.append(body)
    return b"".join(parts)
