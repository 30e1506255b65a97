"""Outlets that write down what they are told, and responses that open them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from topics.server.streaming import Outlet, Stream, StreamResponse, Upgrade

EVENTS = b"text/event-stream"


class Tape:
    """An outlet. `heard` is everything in order; `when` says what to do about it."""

    def __init__(self, when: dict[str, Callable[[Stream], None]] | None = None) -> None:
        self.heard: list[str] = []
        self.data = b""
        self.when = when or {}
        self.stream: Stream | None = None
        self._changed = asyncio.Event()

    @property
    def open(self) -> Stream:
        assert self.stream is not None, "the stream was not opened"
        return self.stream

    async def until(self, what: str, count: int = 1) -> None:
        while self.heard.count(what) < count:
            self._changed.clear()
            await self._changed.wait()

    async def until_data(self, size: int) -> None:
        while len(self.data) < size:
            self._changed.clear()
            await self._changed.wait()

    def _hear(self, what: str) -> None:
        self.heard.append(what)
        self._changed.set()
        if what in self.when:
            self.when[what](self.open)

    def opened(self, stream: Stream) -> None:
        self.stream = stream
        self._hear("opened")

    def filled(self) -> None:
        self._hear("filled")

    def drained(self) -> None:
        self._hear("drained")

    def expired(self) -> None:
        self._hear("expired")

    def stopping(self) -> None:
        self._hear("stopping")

    def closed(self) -> None:
        self._hear("closed")

    def received(self, data: bytes) -> None:
        self.data += data
        self._hear("received")


def streamed(outlet: Outlet, buffer_bytes: int = 1000) -> StreamResponse:
    return StreamResponse(200, content_type=EVENTS, outlet=outlet, buffer_bytes=buffer_bytes)


def upgraded(outlet: Tape) -> Upgrade:
    lines = ((b"Upgrade", b"websocket"), (b"Connection", b"Upgrade"))
    return Upgrade(101, headers=lines, outlet=outlet, buffer_bytes=1000)
