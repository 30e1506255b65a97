"""What the engine pushes over one connection: the part that jobs of a queue and batches of a group have in common.

It stands between the connection (`streaming.py`), whose outlet it is, and a delivery of the engine, which never lets it
hold more than it asked for. What it holds when it is closed, whichever way, others can have at once. While the client
reads too slowly nothing more is handed to it, and after a while it has to go. A heartbeat goes out when nothing else
was sent for a while.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final, Protocol

from topics.clock import Clock
from topics.errors import TopicsError
from topics.server.sse import RETRY_MS, SLOW, STOPPING, error_frame
from topics.server.streaming import Stream

NS_PER_MS: Final = 1_000_000


class Delivery(Protocol):
    """What the engine hands out to one stream."""

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def close(self) -> None: ...


class Push(ABC):
    """An `Outlet`, from the request to the end of its connection."""

    def __init__(self, heartbeat_ms: int, clock: Clock, slow_timeout_ms: int) -> None:
        self._heartbeat_ms = heartbeat_ms
        self._clock = clock
        self._slow_timeout_ms = slow_timeout_ms
        self._stream: Stream | None = None
        self._delivery: Delivery | None = None
        self._sent_ns = 0

    @abstractmethod
    def open(self) -> Delivery:
        """Begin with the engine. What is pushed from then on goes to `send`, and its end to `ended`."""

    # ---- the connection's side

    def opened(self, stream: Stream) -> None:
        self._stream = stream
        self.send(b"retry: %d\n\n%b" % (RETRY_MS, self._beat()))
        try:
            self._delivery = self.open()
        except TopicsError as error:
            # It was there when it was asked for, and is not any more.
            self.ended(error)
            return
        if stream.full:
            self.filled()
        else:
            self._wake()

    def filled(self) -> None:
        if self._stream is not None and self._delivery is not None:
            self._delivery.pause()
            self._stream.wake_at(self._clock.ticks_ns() + self._slow_timeout_ms * NS_PER_MS)

    def drained(self) -> None:
        if self._delivery is not None:
            self._delivery.resume()
            self._wake()

    def expired(self) -> None:
        assert self._stream is not None
        if self._stream.full:
            self._give_up(SLOW, f"nothing was read for {self._slow_timeout_ms} ms; connect again")
            return
        if self._clock.ticks_ns() >= self._beat_due_ns():
            self.send(self._beat())
        self._wake()

    def stopping(self) -> None:
        self._give_up(STOPPING, "the server is shutting down; connect again")

    def closed(self) -> None:
        delivery, self._delivery = self._delivery, None
        if delivery is not None:
            delivery.close()

    # ---- the engine's side

    def send(self, frames: bytes) -> None:
        assert self._stream is not None
        self._stream.send(frames)
        self._sent_ns = self._clock.ticks_ns()

    def ended(self, error: TopicsError) -> None:
        self._give_up(error.http_status, error.message)

    # ---- frames

    def _beat(self) -> bytes:
        return b": hb %d\n\n" % self._clock.now_ms()

    def _beat_due_ns(self) -> int:
        return self._sent_ns + self._heartbeat_ms * NS_PER_MS

    def _wake(self) -> None:
        assert self._stream is not None
        self._stream.wake_at(self._beat_due_ns())

    def _give_up(self, code: int, message: str) -> None:
        assert self._stream is not None
        self._stream.send(error_frame(code, message))
        self._stream.end(close=True)
