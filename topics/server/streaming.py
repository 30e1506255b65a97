"""Streams: answers that are not whole from the start, and connections that have left HTTP.

How it works. A handler that wants to stream gives its `reply` a `StreamResponse` with an `Outlet`, its own object that
feeds the stream. The connection writes the head once all answers before it are written, makes a `Stream` and hands it
to `Outlet.opened`. From then on the outlet writes when it likes, and the connection tells it what happens:

    opened(stream)  the head is written: write
    filled          more than `buffer_bytes` wait for the client: write no more (nothing breaks if you do)
    drained         most of it has been read: write on
    expired         the time given to `Stream.wake_at` has come
    stopping        the server drains: say good-bye and `end`
    closed          it is over, whichever way: the client closed, reset or ended its side, `end`, `abort`, the time of
                    the drain was up, or the stream was never opened because the connection was gone before, or asked
                    for the head only. Exactly once for each `StreamResponse` that was replied, and always last.

Framing. To HTTP/1.1 an answer is sent in chunks: a client can then tell the end of the stream from the loss of the
connection, which the end of a connection alone would not say, and the connection can be used again. A chunk is cut once
for everybody who gets the same bytes (`chunk`), so that it costs nothing a stream. To HTTP/1.0 the same bytes are sent
bare, and the connection ends with them. So what is shared is written like this:

    shared = chunk(payload)
    for stream in streams:
        stream.write(shared if stream.chunked else payload)

and what is one stream's own with `send(payload)`. `write` is the transport's own method, so there is no call between.

An `Upgrade` is a stream whose connection leaves HTTP: nothing is chunked, and what the client sends goes to
`Duplex.received` as it comes, until the end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from topics.limits import KIB
from topics.server.message import Response

STREAM_BUFFER_BYTES: Final = 256 * KIB
"""What may wait for a client before its stream is full, unless the response says otherwise."""

_LAST_CHUNK = b"0\r\n\r\n"


class Outlet(Protocol):
    """What feeds a stream. All is called on the loop; see the head of this file."""

    def opened(self, stream: Stream) -> None: ...

    def filled(self) -> None: ...

    def drained(self) -> None: ...

    def expired(self) -> None: ...

    def stopping(self) -> None: ...

    def closed(self) -> None: ...


class Duplex(Outlet, Protocol):
    """An outlet that the client talks to."""

    def received(self, data: bytes) -> None: ...


class Carrier(Protocol):
    """The connection under a stream."""

    deadline_ns: int

    def end_stream(self, close: bool) -> None: ...

    def abort(self) -> None: ...


@dataclass(slots=True, kw_only=True)
class StreamResponse(Response):
    """A head, and who writes what follows. `body` stays empty."""

    outlet: Outlet
    buffer_bytes: int = STREAM_BUFFER_BYTES
    release: Callable[[], None] | None = None
    """Called right after `closed`: gives the connection's slot back, see `quota.py`."""
    stream: Stream | None = None
    """There from the moment it is opened."""
    is_closed: bool = False

    def close(self) -> None:
        """The one end of every stream."""
        assert not self.is_closed, "a stream is closed once"
        self.is_closed = True
        try:
            self.outlet.closed()
        finally:
            if self.release is not None:
                self.release()


@dataclass(slots=True, kw_only=True)
class Upgrade(StreamResponse):
    """A 101, behind which the connection is the outlet's."""

    outlet: Duplex


class Stream:
    """Made by the connection. After the end all of it is harmless and does nothing."""

    __slots__ = ("_carrier", "_transport", "chunked", "ended", "full", "write")

    def __init__(self, transport: asyncio.Transport, carrier: Carrier, chunked: bool) -> None:
        self._transport = transport
        self._carrier = carrier
        self.chunked = chunked
        """Whether what is written must be a `chunk`."""
        self.full = False
        """Whether too much waits for the client."""
        self.ended = False
        self.write: Callable[[bytes], None] = transport.write
        """Bytes as they go over the wire. Ask for it each time: it changes with the end."""

    def send(self, payload: bytes) -> None:
        """Write what is this stream's alone."""
        self.write(chunk(payload) if self.chunked else payload)

    @property
    def unsent_bytes(self) -> int:
        """What is written and not yet handed to the operating system."""
        return 0 if self.ended else self._transport.get_write_buffer_size()

    def wake_at(self, deadline_ns: int) -> None:
        """Have `expired` called once the clock's ticks are there, to within a second; it replaces the last one."""
        if not self.ended:
            self._carrier.deadline_ns = deadline_ns

    def end(self, close: bool = False) -> None:
        """The whole answer is written; `closed` is called before this returns. With `close` the connection ends too, as
        soon as the client has read what is written or has had its time."""
        if not self.ended:
            if self.chunked:
                self.write(_LAST_CHUNK)
            self._carrier.end_stream(close)

    def pause_reading(self) -> None:
        """Let the client wait with what it sends; only a `Duplex` has a use for it. Its going away is not seen then."""
        if not self.ended:
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if not self.ended:
            self._transport.resume_reading()

    def abort(self) -> None:
        """Drop the connection, and what is written with it; `closed` follows soon."""
        if not self.ended:
            self._carrier.abort()

    def detach(self) -> None:
        """For the connection: nothing goes through any more."""
        self.ended = True
        self.full = False
        self.write = _nowhere


def chunk(payload: bytes) -> bytes:
    """A payload as one chunk. It must not be empty: that would be the end."""
    return b"%x\r\n%b\r\n" % (len(payload), payload)


def _nowhere(data: bytes) -> None:
    """Where writes to an ended stream go."""
