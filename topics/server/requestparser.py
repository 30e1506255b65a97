"""Bytes to requests: one message after the other, each within its limits.

How it works. llhttp (in httptools) parses; its callbacks collect one message at a time, and a whole one goes to `take`.
`feed` raises what is wrong with the bytes, as an error that has a status; nothing can be fed after that. Of a head no
more than the limit is taken in before it is refused, and the same goes for a body, and for trailers and chunk
extensions, which are counted as what comes without progress.

The shortcut. Most clients begin each request on a connection with the same bytes, or with one of two: they take
something and ack it, in turn. The last two heads are remembered with their bytes; a request that begins with one of
them, and is there as a whole, needs no parser: see `take_known`.

An offer to leave HTTP for another protocol never disturbs: clients offer what they do not need (`h2c`), and go on in
HTTP/1.1 when nothing comes of it. The offer of a WebSocket stays among the headers, for the handler of one to take.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final, NoReturn, Protocol

from httptools import HttpParserCallbackError, HttpParserError, HttpParserUpgrade, HttpRequestParser

from topics.errors import HeadersTooLarge, InvalidRequest, PayloadTooLarge, TopicsError
from topics.limits import HEADERS_MAX, KIB
from topics.server.httpoptions import HttpOptions
from topics.server.requesthead import ONCE, RequestHead

REMEMBERED_HEAD_BYTES_MAX: Final = 2 * KIB
FORGETFUL_AFTER: Final = 16
"""So many different heads in a row, and the connection stops remembering them."""

SMALL_PIECE_BYTES: Final = 1 * KIB
"""Smaller pieces of a body are joined as they come."""

WEBSOCKET: Final = "websocket"

_HEAD_END = b"\r\n\r\n"
_NO_CALLBACKS = HttpRequestParser(object())
"""Takes the place of a closed parser's own, whose callbacks would keep its connection alive."""


class Part(Enum):
    """What the next byte belongs to."""

    NOTHING = auto()
    HEAD = auto()
    BODY = auto()


class Sink(Protocol):
    """Where requests go."""

    def began(self, part: Part) -> None:
        """The first byte of a head, or the end of one."""

    def take(self, head: RequestHead, body: bytes) -> None:
        """A whole request."""

    def send_continue(self) -> None:
        """The client waits for a word before it sends the body, and its head is in order."""

    def may_take(self) -> bool:
        """Whether the next request may come now."""

    def put_back(self, data: bytes) -> None:
        """Bytes behind a request that offered an upgrade, while nothing may be taken."""

    def learned(self, head_bytes: bytes, head: RequestHead) -> None:
        """Requests are likely to begin like this from now on."""


class RequestParser:
    def __init__(self, options: HttpOptions, sink: Sink) -> None:
        self._options = options
        self._sink = sink
        self._parser = HttpRequestParser(self)
        self.part = Part.NOTHING
        self.body_bytes = 0
        self._url = b""
        self._headers: dict[str, str] = {}
        self._head: RequestHead | None = None
        self._body: list[bytes | bytearray] = []
        self._body_bytes_max = options.body_bytes_max
        self._pieces = 0
        """Headers and pieces of bodies since somebody last asked."""
        self._fed_bytes = 0
        """Of the head that is coming, in whole slices."""
        self._progressed = False
        """Whether what was fed last began a message or brought a piece of a body."""
        self._overhead_bytes = 0
        """Fed since there was progress."""
        self._head_split = False
        """Whether the head came in pieces, so that it may be larger than what is fed at once."""
        self._refusal: TopicsError | None = None
        self._upgrade_offered = False
        self._websocket_offer = ""
        # The bytes hold the client's key. A keyed digest in their place would take longer than all the rest of
        # `take_known`, and the headers, which every handler needs, hold the key as well; neither is ever shown.
        self._known_bytes = b""
        self._known_head: RequestHead | None = None
        self._other_bytes = b""
        self._other_head: RequestHead | None = None
        self._head_count = 0
        self._misses = 0

    @property
    def head(self) -> RequestHead | None:
        """Of the request whose body is coming."""
        return self._head if self.part is Part.BODY else None

    @property
    def held_bytes(self) -> int:
        """What is held of a request that has not come whole."""
        if self.part is Part.NOTHING:
            return 0
        return self.body_bytes if self.part is Part.BODY else self._fed_bytes

    @property
    def body_left_bytes(self) -> int:
        """What is still to come of a body whose length is known."""
        head = self.head
        return 0 if head is None or head.chunked else head.body_bytes - self.body_bytes

    def take_pieces(self) -> int:
        """How many headers and pieces of bodies there were since the last call."""
        pieces, self._pieces = self._pieces, 0
        return pieces

    def bound_body(self, body_bytes_max: int) -> None:
        """Let the body that is coming have no more bytes than this; raises when it has."""
        self._body_bytes_max = body_bytes_max
        head = self.head
        if head is not None and max(head.body_bytes, self.body_bytes) > body_bytes_max:
            raise self._body_too_large()

    def close(self) -> None:
        """Let go of everything."""
        self._parser = _NO_CALLBACKS
        self._headers = {}
        self._body = []
        self.body_bytes = 0
        self._head = None
        self._known_bytes = self._other_bytes = b""
        self._known_head = self._other_head = None
        self.part = Part.NOTHING

    # ---- input

    def take_known(self, data: bytes) -> int:
        """Takes the requests that `data` begins with, as far as their heads are remembered ones and they are whole.
        Returns how many bytes they had."""
        if self.part is not Part.NOTHING:
            return 0
        sink = self._sink
        at = 0
        while self._is_next(data, at) and (head := self._known_head) is not None:
            body_at = at + len(self._known_bytes)
            end = body_at + head.body_bytes
            if end > len(data) or not sink.may_take():
                break
            sink.take(head, data[body_at:end])
            at = end
            self._misses = 0
        return at

    def _is_next(self, data: bytes, at: int) -> bool:
        """Whether a request with a remembered head is next; that head is then `_known_head`."""
        if data.startswith(self._known_bytes, at):
            return True
        if self._other_head is None or not data.startswith(self._other_bytes, at):
            return False
        self._known_bytes, self._other_bytes = self._other_bytes, self._known_bytes
        self._known_head, self._other_head = self._other_head, self._known_head
        return True

    def learn(self, data: bytes) -> int:
        """Feeds one head by itself if `data` begins with a whole one, and remembers it. Returns how many bytes it had.

        It is remembered only if its bytes are one head and nothing else, by our own reading and by the parser's.
        """
        if self.part is not Part.NOTHING or self._misses >= FORGETFUL_AFTER:
            return 0
        self._misses += 1
        end = data.find(_HEAD_END, 1, REMEMBERED_HEAD_BYTES_MAX) + len(_HEAD_END)
        if end < len(_HEAD_END) or end > self._options.header_bytes_max:
            return 0
        known = data[:end]
        head_count = self._head_count
        self.feed(known)
        head = self._head
        line_count = known.count(b"\r\n")
        if (
            head is not None
            and head.repeatable
            and self._head_count == head_count + 1
            and not self._body
            and not known.startswith(b"\r")
            and known.count(b"\n") == known.count(b"\r") == line_count
        ):
            self._other_bytes, self._other_head = self._known_bytes, self._known_head
            self._known_bytes, self._known_head = known, head
            self._sink.learned(known, head)
        return end

    def feed(self, data: bytes | memoryview) -> None:
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade as upgrade:
            self._take_in_http()
            rest = data[upgrade.args[0] :]
            if self._sink.may_take():
                self.feed(rest)
            else:
                self._sink.put_back(bytes(rest))
            return
        except HttpParserError as error:
            self._failed(error)
            return
        self._head_split = self.part is Part.HEAD
        self._fed_bytes += len(data)
        if self._progressed:
            self._progressed = False
            self._overhead_bytes = 0
        elif self.part is not Part.NOTHING:
            self._overhead_bytes += len(data)
            if self._overhead_bytes > self._options.header_bytes_max:
                raise self._headers_too_large()

    def _failed(self, error: HttpParserError) -> None:
        if self._refusal is not None:
            raise self._refusal from None
        if isinstance(error, HttpParserCallbackError):
            raise error
        head = self._head
        if self.part is Part.NOTHING and head is not None and not head.keep_alive:
            # What follows the last request of a connection is nobody's.
            return
        raise InvalidRequest(f"the request is not valid HTTP: {error}", expected="HTTP/1.1") from None

    def _take_in_http(self) -> None:
        """The offer ended the parser's interest, so a new one gets the same head without it."""
        self._upgrade_offered = False
        method, version = self._parser.get_method(), self._parser.get_http_version()
        offer = self._headers["upgrade"]
        self._websocket_offer = offer if WEBSOCKET in offer.lower() and version == "1.1" else ""
        lines = [b"%b %b HTTP/%b" % (method, self._url, version.encode())]
        lines += [f"{name}: {value}".encode("latin-1") for name, value in self._headers.items() if name != "upgrade"]
        self._parser = HttpRequestParser(self)
        self.feed(b"\r\n".join(lines) + _HEAD_END)

    # ---- what httptools calls

    def on_message_begin(self) -> None:
        self.part = Part.HEAD
        self.body_bytes = 0
        self._url = b""
        self._headers = {}
        self._body = []
        self._body_bytes_max = self._options.body_bytes_max
        self._fed_bytes = 0
        self._overhead_bytes = 0
        self._head_split = False
        self._progressed = True
        self._sink.began(Part.HEAD)

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._pieces += 1
        key = name.decode("latin-1").lower()
        if key not in self._headers:
            if len(self._headers) >= HEADERS_MAX:
                self._fail(HeadersTooLarge(f"the request has more than {HEADERS_MAX} headers", max=HEADERS_MAX))
            self._headers[key] = value.decode("latin-1").strip()
        elif key in ONCE:
            self._fail(InvalidRequest(f"the header {key} is given twice", field=key, expected="once"))

    def on_headers_complete(self) -> None:
        headers, parser, options = self._headers, self._parser, self._options
        if self._head_split:
            head_bytes = len(self._url) + sum(len(name) + len(value) + 4 for name, value in headers.items())
            if head_bytes > options.header_bytes_max:
                self._fail(self._headers_too_large())
        if "upgrade" in headers and parser.should_upgrade():
            self._upgrade_offered = True
            return
        if self._websocket_offer:
            headers["upgrade"], self._websocket_offer = self._websocket_offer, ""
        try:
            head = RequestHead(
                parser.get_method().decode(),
                self._url,
                parser.get_http_version(),
                headers,
                parser.should_keep_alive(),
                options,
            )
        except TopicsError as error:
            self._fail(error)
        self._head = head
        self._head_count += 1
        self.part = Part.BODY
        # Trailers come as headers too, and nobody reads them.
        self._headers = {}
        self._overhead_bytes = 0
        self._sink.began(Part.BODY)
        if head.awaits_continue:
            self._sink.send_continue()

    def on_body(self, piece: bytes) -> None:
        self._pieces += 1
        body = self._body
        if not body or len(piece) >= SMALL_PIECE_BYTES:
            body.append(piece)
        else:
            # Pieces of one byte each would take forty times their bytes in the list.
            last = body[-1]
            if not isinstance(last, bytearray):
                last = bytearray()
                body.append(last)
            last += piece
        self.body_bytes += len(piece)
        self._progressed = True
        if self.body_bytes > self._body_bytes_max:
            self._fail(self._body_too_large())

    def on_message_complete(self) -> None:
        if self._upgrade_offered:
            return
        head = self._head
        assert head is not None
        self.part = Part.NOTHING
        body, self._body = self._body, []
        first = body[0] if len(body) == 1 else None
        self._sink.take(head, first if isinstance(first, bytes) else b"".join(body))

    def _fail(self, error: TopicsError) -> NoReturn:
        """Stops the parser. It wraps what its callbacks raise, so the reason is kept beside it."""
        self._refusal = error
        raise error

    def _body_too_large(self) -> PayloadTooLarge:
        most = self._body_bytes_max
        return PayloadTooLarge(f"the body has more than {most} bytes", max_bytes=most)

    def _headers_too_large(self) -> HeadersTooLarge:
        most = self._options.header_bytes_max
        return HeadersTooLarge(f"the headers have more than {most} bytes", max_bytes=most)
