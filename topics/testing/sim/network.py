"""The network between clients and the server: bytes that come late, in pieces, twice, or not at all.

A `Link` is one connection. What the client sends reaches the server's protocol after a delay, in pieces; what the
server writes reaches the client the same way, in order. A link can be cut at any byte in either direction. When
the server's process dies, its links are cut.

Slow clients read slowly: the transport tells the protocol when too much waits, as a socket's would.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from topics.testing.sim.loop import SimLoop
from topics.testing.sim.machine import Machine
from topics.testing.sim.timeline import Timeline


@dataclass(slots=True)
class Weather:
    """How bad the network is. `calm` is what it is at the end, when everybody gets what there is."""

    delay_ms: float = 1.0
    cut: float = 0.0
    """How likely a request or its answer is cut somewhere."""
    twice: float = 0.0
    """How likely a request comes a second time, later, over another connection."""
    late: float = 0.0
    """How likely one is held up for seconds."""
    pieces: float = 0.2
    """How likely bytes come in several pieces."""


CALM = Weather(pieces=0.0)


class Transport(asyncio.Transport):
    """The server's end of a link."""

    def __init__(self, link: Link) -> None:
        super().__init__()
        self._link = link
        self._high = 64 << 10
        self._paused = False
        self._closing = False
        self._ended = False
        self.waiting_bytes = 0

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("10.0.0.1", 5000) if name == "peername" else default

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = 64 << 10 if high is None else high

    def get_write_buffer_size(self) -> int:
        return self.waiting_bytes

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._closing or self._ended:
            return
        self.waiting_bytes += len(data)
        self._link.written(bytes(data))
        if self.waiting_bytes > self._high and not self._paused:
            self._paused = True
            self._link.protocol.pause_writing()

    def taken(self, count: int) -> None:
        """The client has read so much."""
        self.waiting_bytes -= count
        if self._paused and self.waiting_bytes <= self._high // 4:
            self._paused = False
            self._link.protocol.resume_writing()
        if self._closing and not self.waiting_bytes:
            self._link.end()

    def write_eof(self) -> None:
        self._ended = True
        self._link.written(None)

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            self._link.written(None)
            if not self.waiting_bytes:
                self._link.end()

    def abort(self) -> None:
        self._closing = True
        self._link.end()

    def pause_reading(self) -> None:
        self._link.hold(True)

    def resume_reading(self) -> None:
        self._link.hold(False)


class Link:
    """One connection. `receive` gets what the server sent, and None when it is over."""

    def __init__(
        self, network: Network, loop: SimLoop, protocol: asyncio.Protocol, receive: Callable[[bytes | None], None]
    ) -> None:
        self._network = network
        self._timeline = network.timeline
        self._loop = loop
        self.protocol = protocol
        self._receive = receive
        self.transport = Transport(self)
        self.is_cut = False
        self._is_lost = False
        self._held: list[bytes] | None = None
        self._sent_until_ns = 0
        self._written_until_ns = 0
        self.cut_after: int | None = None
        """Bytes from the server, after which the link breaks."""
        self.slow_ms = 0.0
        """How long the client takes to read what comes at once."""
        self._passed = 0
        self.written_bytes = 0
        """What the server has written, whether it has come or not."""
        self.on_written: Callable[[], None] = lambda: None
        loop.call_soon(protocol.connection_made, self.transport)

    # ---- from the client

    def send(self, data: bytes, delay_ms: float = 0.0) -> None:
        chance, weather = self._network.chance, self._network.weather
        at_ns = max(self._sent_until_ns, self._timeline.now_ns + int(delay_ms * 1_000_000))
        pieces = [data]
        if len(data) > 1 and chance.random() < weather.pieces:
            at = chance.randrange(1, len(data))
            pieces = [data[:at], data[at:]]
        for piece in pieces:
            at_ns += int(chance.random() * weather.delay_ms * 1_000_000)
            self._timeline.at(at_ns, partial(self._arrive, piece))
        self._sent_until_ns = at_ns

    def deliver(self, data: bytes) -> None:
        """Have bytes reach the server now, in one piece, behind those that were delivered before."""
        self._arrive(data)

    @property
    def is_held(self) -> bool:
        """Whether the server does not read."""
        return self._held is not None

    def _arrive(self, piece: bytes) -> None:
        if self.is_cut or self._is_lost or self._loop.ended:
            return
        if self._held is not None:
            self._held.append(piece)
        else:
            self._loop.call_soon(self._deliver, piece)

    def _deliver(self, piece: bytes) -> None:
        if not self.is_cut and not self._is_lost:
            self.protocol.data_received(piece)

    def hold(self, held: bool) -> None:
        """The server does not read for now."""
        if held:
            self._held = self._held if self._held is not None else []
        elif self._held is not None:
            pieces, self._held = self._held, None
            for piece in pieces:
                self._loop.call_soon(self._deliver, piece)

    # ---- from the server

    def written(self, data: bytes | None) -> None:
        if data is not None:
            self.written_bytes += len(data)
            self.on_written()
        at_ns = max(self._written_until_ns, self._timeline.now_ns)
        at_ns += int((self._network.chance.random() * self._network.weather.delay_ms + self.slow_ms) * 1_000_000)
        self._written_until_ns = at_ns
        self._timeline.at(at_ns, lambda: self._come(data))

    def _come(self, data: bytes | None) -> None:
        if self.is_cut:
            return
        if data is None:
            self._receive(None)
            return
        if self.cut_after is not None and self._passed + len(data) > self.cut_after:
            data = data[: self.cut_after - self._passed]
            if data:
                self._receive(data)
            self.cut()
            return
        self._passed += len(data)
        self._receive(data)
        if not self._loop.ended and not self._is_lost:
            self._loop.call_soon(self.transport.taken, len(data))

    # ---- the end

    def cut(self) -> None:
        """The network fails here, or the client goes: both sides find out."""
        if self.is_cut:
            return
        self.is_cut = True
        self._network.forget(self)
        self._receive(None)
        if not self._loop.ended:
            self._loop.call_soon(self._lose)

    def end(self) -> None:
        """The server is done with it."""
        if not self._loop.ended:
            self._loop.call_soon(self._lose)

    def _lose(self) -> None:
        if not self._is_lost:
            self._is_lost = True
            self._network.forget(self)
            self.protocol.connection_lost(None)


class Network:
    def __init__(self, timeline: Timeline, machine: Machine, chance: random.Random) -> None:
        self.timeline = timeline
        self.chance = chance
        self.weather = CALM
        self._machine = machine
        self._links: list[Link] = []
        self.on_death: Callable[[], None] = lambda: None
        """Called when the server's process is gone, and all its links with it."""
        machine.on_death = self._server_died

    def connect(self, receive: Callable[[bytes | None], None]) -> Link | None:
        """A connection to the server; None when nobody listens."""
        listener, loop = self._machine.listener, self._machine.loop
        if listener is None or loop is None:
            return None
        link = Link(self, loop, listener.factory(), receive)
        self._links.append(link)
        return link

    def forget(self, link: Link) -> None:
        if link in self._links:
            self._links.remove(link)

    def _server_died(self) -> None:
        links, self._links = self._links, []
        for link in links:
            link.cut()
        self.on_death()
