"""The head of a request, checked: what is asked for, and how the rest of the message is framed.

A parser has split the bytes already. Here is refused what two readers could take for two different messages, because
that is how a request is smuggled past a proxy: framing given twice, transfer codings that we do not undo.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from topics.errors import ExpectationFailed, InvalidRequest, PayloadTooLarge
from topics.server.encoding import accepts_gzip, is_gzip
from topics.server.httpoptions import HttpOptions
from topics.server.intake.order import Order
from topics.server.target import authority_in, parse_target

ONCE: Final = frozenset({"host", "content-length", "transfer-encoding", "content-encoding", "expect"})
"""Headers that a request may have once at most."""

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:/+=-]{1,128}")


class RequestHead:
    """Shared by all requests of a connection that begin with the same bytes; never changed."""

    __slots__ = (
        "answer_headers",
        "awaits_continue",
        "body_bytes",
        "chunked",
        "gzip_answer",
        "gzip_body",
        "head_only",
        "headers",
        "keep_alive",
        "method",
        "order",
        "path",
        "preflight",
        "query",
        "request_id",
        "version",
    )

    def __init__(
        self,
        method: str,
        target: bytes,
        version: str,
        headers: Mapping[str, str],
        keep_alive: bool,
        options: HttpOptions,
    ) -> None:
        self.headers = headers
        self.version = version
        self.keep_alive = keep_alive
        self._check_framing(options.body_bytes_max)
        if method == "CONNECT":
            raise InvalidRequest("CONNECT is not offered: this is no proxy", expected="GET, POST, PUT, PATCH or DELETE")
        self.path, self.query = parse_target(target)
        self.method = method
        self._check_sender(target, options)
        self.order: Order | None = None
        """Which requests of the connection may begin before this one is answered, once somebody has asked."""
        self.head_only = method == "HEAD"
        """A HEAD is answered as a GET whose body stays here."""
        self.gzip_body = is_gzip(headers.get("content-encoding", ""))
        self.gzip_answer = accepts_gzip(headers.get("accept-encoding", ""))
        self.preflight = options.cors.is_preflight(method, headers)
        self.answer_headers = options.cors.headers(headers)
        """Lines that every answer to this head has."""
        given = headers.get("x-request-id", "")
        self.request_id = given if _REQUEST_ID.fullmatch(given) else ""
        """What the client calls the request; empty when it does not, or in a way we would not repeat."""

    @property
    def repeatable(self) -> bool:
        """Whether the same bytes always begin the same kind of message, whose body has a known length."""
        return self.keep_alive and not self.chunked and not self.awaits_continue and "upgrade" not in self.headers

    def _check_sender(self, target: bytes, options: HttpOptions) -> None:
        """Refuse what a web page of another site sends. No body is taken then, and no head like it is remembered."""
        if options.hosts is not None:
            options.hosts.check(self.headers.get("host"), authority_in(target))
        if options.pages is not None:
            options.pages.check_method(self.method, self.headers)

    def _check_framing(self, body_bytes_max: int) -> None:
        headers = self.headers
        if self.version not in ("1.1", "1.0"):
            raise InvalidRequest(f"HTTP/{self.version} is not spoken here", expected="HTTP/1.1 or HTTP/1.0")
        if self.version == "1.1" and "host" not in headers:
            raise InvalidRequest("the Host header is missing", expected="Host, once")
        coding = headers.get("transfer-encoding")
        self.chunked = coding is not None
        if coding is not None and (coding.lower() != "chunked" or self.version == "1.0"):
            raise InvalidRequest(
                f"Transfer-Encoding {coding!r} in HTTP/{self.version} is not understood", expected="chunked in HTTP/1.1"
            )
        length = headers.get("content-length", "0")
        if len(length) > len(str(body_bytes_max)) or int(length) > body_bytes_max:
            raise PayloadTooLarge(
                f"the body has {length[:32]} bytes, at most {body_bytes_max} are allowed", max_bytes=body_bytes_max
            )
        self.body_bytes = int(length)
        """What Content-Length says; nought for a chunked body."""
        self.awaits_continue = False
        expectation = headers.get("expect")
        if expectation is not None and self.version == "1.1":
            if expectation.lower() != "100-continue":
                raise ExpectationFailed(f"Expect: {expectation[:64]} cannot be met", expected="100-continue")
            self.awaits_continue = self.chunked or self.body_bytes > 0
