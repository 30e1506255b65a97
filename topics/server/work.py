"""A stream of jobs: one worker's connection to which the engine pushes what it may hold.

    retry: 2000                                         once, at the beginning, and a heartbeat
    id: 7  event: job  data: {"topic":…,"$seq":7,…}     a job, leased to this worker on this connection
    event: error  data: {"code":429,"error":…}          the server is behind: more comes when it has caught up
    event: error  data: {"code":503,"error":…}          any other is the last frame, unless the client goes first
    : hb 1748467205000                                  when nothing else was sent for a while

It stands between the connection (`streaming.py`), whose outlet it is, and the engine (`engine/claiming.py`), which
never lets it hold more than it asked for. What it holds when it is closed, whichever way, others can claim at once.
While the client reads too slowly nothing more is leased to it, and after a while it has to go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from topics.clock import Clock
from topics.engine.claiming import Claiming
from topics.engine.line import Stream as Delivery
from topics.errors import TopicsError
from topics.model import ClaimedJobs
from topics.server.sse import PACED, RETRY_MS, SLOW, STOPPING, error_frame, frame
from topics.server.streaming import Stream

NS_PER_MS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class WorkOrder:
    """What a worker asked for."""

    topic: str
    partition: int
    node: str
    max: int
    lease_ms: int | None
    """None is the queue's own."""
    heartbeat_ms: int


class JobStream:
    """An `Outlet`, from the request to the end of its connection."""

    def __init__(self, claiming: Claiming, order: WorkOrder, clock: Clock, slow_timeout_ms: int) -> None:
        self._claiming = claiming
        self._order = order
        self._clock = clock
        self._slow_timeout_ms = slow_timeout_ms
        self._beginning = b'"topic":"%b",' % order.topic.encode()
        if order.partition:
            self._beginning += b'"partition":%d,' % order.partition
        self._stream: Stream | None = None
        self._delivery: Delivery | None = None
        self._sent_ns = 0

    # ---- the connection's side

    def opened(self, stream: Stream) -> None:
        self._stream = stream
        self._send(b"retry: %d\n\n%b" % (RETRY_MS, self._beat()))
        order = self._order
        try:
            self._delivery = self._claiming.open(
                order.topic,
                order.node,
                order.max,
                order.lease_ms,
                self._deliver,
                self._ended,
                order.partition,
                self._paced,
            )
        except TopicsError as error:
            # It was there when it was asked for, and is not any more.
            self._ended(error)
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
        elif self._clock.ticks_ns() >= self._beat_due_ns():
            self._send(self._beat())
            self._wake()
        else:
            self._wake()

    def stopping(self) -> None:
        self._give_up(STOPPING, "the server is shutting down; connect again")

    def closed(self) -> None:
        delivery, self._delivery = self._delivery, None
        if delivery is not None:
            delivery.close()

    # ---- the engine's side

    def _deliver(self, jobs: ClaimedJobs) -> None:
        self._send(b"".join(map(self._frame, jobs.seqs, jobs.jobs)))

    def _ended(self, error: TopicsError) -> None:
        self._give_up(error.http_status, error.message)

    def _paced(self, retry_after_ms: int) -> None:
        message = "the disk is behind with its work, and nothing is leased until it has caught up"
        self._send(error_frame(PACED, message, retry_after_ms=retry_after_ms))

    # ---- frames

    def _frame(self, seq: int, job: bytes) -> bytes:
        return b"id: %d\n%b" % (seq, frame(b"job", self._beginning + job[1:]))

    def _beat(self) -> bytes:
        return b": hb %d\n\n" % self._clock.now_ms()

    def _send(self, frames: bytes) -> None:
        assert self._stream is not None
        self._stream.send(frames)
        self._sent_ns = self._clock.ticks_ns()

    def _beat_due_ns(self) -> int:
        return self._sent_ns + self._order.heartbeat_ms * NS_PER_MS

    def _wake(self) -> None:
        assert self._stream is not None
        self._stream.wake_at(self._beat_due_ns())

    def _give_up(self, code: int, message: str) -> None:
        assert self._stream is not None
        self._stream.send(error_frame(code, message))
        self._stream.end(close=True)
