"""One HTTP/1.1 connection to a server: one request at a time, its answer whole or in parts.

How it works. `exchange` writes a request and waits for the whole answer; `stream` waits for the head only and hands out
the body as it comes, with the socket left unread while nobody takes the parts. A connection that is not left exactly
between two answers is of no use any more: when a call is cancelled, times out or fails in the middle, or when the
server says something nobody asked for, the connection is cut and `usable` is False for good. Of a call whose answer
matters even when it is cancelled, only the sending side ends: that tells the server, and what is on its way comes.

Silence is what the timer watches: each byte that comes starts it again, `deadline` ends the call in any case. There is
one timer a call, and it is moved when it fires, not with each byte.
"""

from __future__ import annotations

import asyncio
import socket
import zlib
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Final, NamedTuple, cast

import httptools

from topics.errors import ConnectionFailed, ShuttingDown, TimedOut, TopicsError
from topics.limits import BODY_BYTES_MAX, KIB

UNREAD_BYTES_MAX: Final = 256 * KIB
"""Parts of a stream that wait for their reader, before the socket is left unread."""

LINGER_S_MAX: Final = 5.0
"""How long the answer to a call that was cancelled may take."""

_GZIP_WBITS = 16 + zlib.MAX_WBITS
_INTERIM_MAX = 200
_NO_BODY = (204, 304)
_END = b""


class Answer(NamedTuple):
    """Header names are lower case. The body is decompressed; of a stream it is empty."""

    status: int
    headers: dict[str, str]
    body: bytes


Abandoned = Callable[[Answer], None]
"""Gets the answer to a call that was cancelled while it was on its way."""


class Connection(asyncio.Protocol):
    def __init__(self, name: str) -> None:
        self._name = name
        """Of the server, for errors."""
        self._loop = asyncio.get_running_loop()
        self._lost: asyncio.Future[None] = self._loop.create_future()
        self._transport: asyncio.Transport | None = None
        self.usable = True
        self.lingers = False
        """Whether its caller is gone, and only the rest of the answer is waited for."""
        self.used = False
        """Whether a request went over it before the one under way."""
        self.idle_since_s = 0.0
        self.answer_begun = False
        """Whether a byte of the answer under way has come."""
        self._waiter: asyncio.Future[Answer] | None = None
        self._streams = False
        self._heard_s = 0.0
        self._forget_answer()
        self._complete = True

    def _forget_answer(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._headers: dict[str, str] = {}
        self._head_complete = False
        self._complete = False
        self._ends_with_connection = False
        self._parts: deque[bytes] = deque()
        self._part_bytes = 0
        self._paused = False
        self._reader: asyncio.Future[None] | None = None
        self._failure: TopicsError | None = None
        self._unheard: Answer | None = None
        """An answer that came in the moment in which its caller was cancelled."""

    # ---- what a caller does

    async def exchange(
        self, message: bytes, silence_s: float, deadline_s: float, abandoned: Abandoned | None = None
    ) -> Answer:
        """Send a request and wait for its whole answer; one that comes although this was cancelled is `abandoned`."""
        return await self._ask(message, silence_s, deadline_s, abandoned)

    async def stream(self, message: bytes, silence_s: float, deadline_s: float) -> Answer:
        """Send a request and wait for the head of its answer; `parts` then gives the body."""
        self._streams = True
        return await self._ask(message, silence_s, deadline_s)

    async def parts(self, silence_s: float) -> AsyncIterator[bytes]:
        """The body of a streamed answer as it comes; raises when it breaks off, or nothing comes for so long."""
        try:
            while True:
                if not self._parts:
                    if self._failure is not None:
                        raise self._failure
                    await self._more(silence_s)
                    continue
                part = self._parts.popleft()
                self._part_bytes -= len(part)
                if self._paused and self._part_bytes <= UNREAD_BYTES_MAX // 2 and self._transport is not None:
                    self._paused = False
                    self._transport.resume_reading()
                if part == _END:
                    return
                yield part
        finally:
            self.cut()

    async def _more(self, silence_s: float) -> None:
        self._reader = self._loop.create_future()
        try:
            async with asyncio.timeout(silence_s):
                await self._reader
        except TimeoutError:
            raise TimedOut(f"{self._name} was silent for {silence_s:g} s", sent=True) from None
        finally:
            self._reader = None

    async def _ask(
        self, message: bytes, silence_s: float, deadline_s: float, abandoned: Abandoned | None = None
    ) -> Answer:
        assert self.usable and self._waiter is None and self._transport is not None
        self._forget_answer()
        self.answer_begun = False
        waiter: asyncio.Future[Answer] = self._loop.create_future()
        self._waiter = waiter
        self._heard_s = self._loop.time()
        self._watch(silence_s, deadline_s)
        answered = False
        try:
            self._transport.write(message)
            answer = await waiter
            answered = True
            return answer
        except asyncio.CancelledError:
            if abandoned is not None:
                come = self._come(waiter)
                answered = come is not None
                if come is not None:
                    abandoned(come)
                else:
                    self._linger(abandoned)
            raise
        finally:
            self._timer.cancel()
            if not self.lingers:
                self._waiter = None
            self.used = True
            if not self.lingers and (not answered or not (self.usable or self._streams)):
                self.cut()

    def _come(self, waiter: asyncio.Future[Answer]) -> Answer | None:
        """The answer that a cancelled caller did not get any more, if there is one."""
        if waiter.cancelled():
            return self._unheard
        return waiter.result() if waiter.done() and waiter.exception() is None else None

    def _linger(self, abandoned: Abandoned) -> None:
        """Tell the server that nobody waits for its answer, and hear out what it has sent by then."""
        assert self._transport is not None
        if not self.usable or not self._transport.can_write_eof():
            return
        self.usable = False
        self.lingers = True
        waiter = self._waiter = self._loop.create_future()
        timer = self._loop.call_later(LINGER_S_MAX, self.cut)

        def heard(waiter: asyncio.Future[Answer]) -> None:
            timer.cancel()
            self.cut()
            if not waiter.cancelled() and waiter.exception() is None:
                abandoned(waiter.result())

        waiter.add_done_callback(heard)
        self._transport.write_eof()

    def _watch(self, silence_s: float, deadline_s: float) -> None:
        at_s = min(self._heard_s + silence_s, deadline_s)
        self._timer = self._loop.call_at(at_s, self._time_over, silence_s, deadline_s)

    def _time_over(self, silence_s: float, deadline_s: float) -> None:
        now_s = self._loop.time()
        if now_s < min(self._heard_s + silence_s, deadline_s):
            self._watch(silence_s, deadline_s)
            return
        what = "has not answered in time" if now_s >= deadline_s else f"was silent for {silence_s:g} s"
        self._fail(TimedOut(f"{self._name} {what}; whether the request was carried out is not known", sent=True))

    def cut(self) -> None:
        """End the connection at once, whatever is under way."""
        assert self._transport is not None, "nobody has a connection before it is made"
        self.usable = False
        self._transport.abort()

    def on_lost(self, callback: Callable[[], None]) -> None:
        """Called when the socket is gone."""
        self._lost.add_done_callback(lambda lost: callback())

    async def closed(self) -> None:
        """Returns when the socket is gone."""
        await asyncio.shield(self._lost)

    def refuse(self) -> None:
        """End it because the client is closed: who waits for an answer is told so."""
        self._fail(ShuttingDown("the client was closed while the server had not answered yet", sent=True))
        self.cut()

    # ---- what the transport says

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # A transport of uvloop can all that one of asyncio can, and does not inherit from it.
        self._transport = cast(asyncio.Transport, transport)
        connected = transport.get_extra_info("socket")
        if connected is not None and connected.family in (socket.AF_INET, socket.AF_INET6):
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def connection_lost(self, exc: Exception | None) -> None:
        self.usable = False
        if self._head_complete and self._ends_with_connection and exc is None:
            self.on_message_complete()
        reason = f": {exc}" if exc is not None else ""
        place = "in the middle of an answer" if self.answer_begun else "before it answered"
        self._fail(ConnectionFailed(f"the connection to {self._name} ended {place}{reason}", sent=True))
        self._lost.set_result(None)

    def data_received(self, data: bytes) -> None:
        if self._complete:
            # Between two answers there is nothing to say: most likely the server gives the connection up.
            self.cut()
            return
        self._heard_s = self._loop.time()
        self.answer_begun = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(ConnectionFailed(f"what answers at {self._name} does not speak HTTP: {error}", sent=True))
            self.cut()
        except httptools.HttpParserUpgrade:
            self._fail(ConnectionFailed(f"{self._name} leaves HTTP for what nobody asked for", sent=True))
            self.cut()

    # ---- what the parser says

    def on_message_begin(self) -> None:
        if self._complete:
            # Another answer in the same breath as the one that was asked for.
            self.usable = False

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._complete:
            # Of what nobody asked for; the answer before it has its headers from here.
            return
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < _INTERIM_MAX:
            return
        self._head_complete = True
        framed = "content-length" in self._headers or "transfer-encoding" in self._headers
        self._ends_with_connection = not framed and status not in _NO_BODY
        if self._streams and self._waiter is not None and status == 200:
            self._resolve(Answer(status, self._headers, b""))

    def on_body(self, body: bytes) -> None:
        self._parts.append(body)
        self._part_bytes += len(body)
        if self._streams:
            self._wake()
            if self._part_bytes > UNREAD_BYTES_MAX and not self._paused and self._transport is not None:
                self._paused = True
                self._transport.pause_reading()
        elif self._part_bytes > BODY_BYTES_MAX:
            self._fail(
                ConnectionFailed(f"{self._name} sends more than {BODY_BYTES_MAX} bytes in one answer", sent=True)
            )
            self.cut()

    def on_message_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < _INTERIM_MAX:
            self._headers = {}
            return
        if self._complete:
            return
        self._complete = True
        if not self._parser.should_keep_alive():
            self.usable = False
        if self._waiter is None:
            self._parts.append(_END)
            self._wake()
            return
        try:
            body = b"".join(self._parts)
            if self._headers.get("content-encoding") == "gzip":
                body = _gunzip(body, self._name)
        except TopicsError as error:
            self._fail(error)
            return
        self._resolve(Answer(status, self._headers, body))

    def _resolve(self, answer: Answer) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(answer)
        else:
            self._unheard = answer
        if self._streams:
            self._waiter = None

    def _fail(self, error: TopicsError) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)
        if self._streams and self._failure is None:
            self._failure = error
            self._wake()

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)


def _gunzip(body: bytes, name: str) -> bytes:
    member = zlib.decompressobj(_GZIP_WBITS)
    try:
        plain = member.decompress(body, BODY_BYTES_MAX)
    except zlib.error as error:
        raise ConnectionFailed(f"an answer of {name} is not gzip, as it says: {error}", sent=True) from None
    if not member.eof:
        raise ConnectionFailed(f"the gzip answer of {name} is not whole, or too large", sent=True)
    return plain
