"""A stream of a group: one consumer's connection to which the engine pushes batches that it may hold.

    retry: 2000                                              once, at the beginning, and a heartbeat
    id: 7  event: batch  data: {"topic":…,"records":[…],…}   records, claimed by this consumer on this connection
    event: error  data: {"code":503,"error":…}               the last frame, unless the client goes first
    : hb 1748467205000                                       when nothing else was sent for a while

It stands between the connection (`streaming.py`), whose outlet it is, and the engine (`engine/grouping.py`), which
never lets it hold more claims than it asked for. What it holds when it is closed, whichever way, others can have at
once. While the client reads too slowly nothing more is handed to it, and after a while it has to go.
"""

from __future__ import annotations

from typing import Final

import msgspec

from topics.clock import Clock
from topics.core.groupcommands import Consume
from topics.engine.grouping import Grouping
from topics.engine.groupline import Stream as Delivery
from topics.errors import TopicsError
from topics.groupmodel import GroupBatch
from topics.server.sse import RETRY_MS, SLOW, STOPPING, error_frame, frame
from topics.server.streaming import Stream

NS_PER_MS: Final = 1_000_000
_BATCH: Final = (
    b'"topic":"%b",%b"group":"%b","records":[%b],"count":%d,"first_seq":%d,"last_seq":%d,"claim_id":"%b",'
    b'"deadline":%d,"deliveries":%d,"committed_seq":%d,"head_seq":%d,"lag":%d,"tombstone":%b}'
)


class GroupPush:
    """An `Outlet`, from the request to the end of its connection."""

    def __init__(
        self,
        groups: Grouping,
        command: Consume,
        claims_max: int,
        heartbeat_ms: int,
        clock: Clock,
        slow_timeout_ms: int,
    ) -> None:
        self._groups = groups
        self._command = command
        self._claims_max = claims_max
        self._heartbeat_ms = heartbeat_ms
        self._clock = clock
        self._slow_timeout_ms = slow_timeout_ms
        self._stream: Stream | None = None
        self._delivery: Delivery | None = None
        self._sent_ns = 0

    # ---- the connection's side

    def opened(self, stream: Stream) -> None:
        self._stream = stream
        self._send(b"retry: %d\n\n%b" % (RETRY_MS, self._beat()))
        try:
            self._delivery = self._groups.open(self._command, self._claims_max, self._deliver, self._ended)
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

    def _deliver(self, batch: GroupBatch) -> None:
        text = _BATCH % (
            batch.topic.encode(),
            b'"partition":%d,' % batch.partition if batch.partition else b"",
            batch.group.encode(),
            batch.body,
            batch.count,
            batch.first_seq,
            batch.last_seq,
            batch.claim_id.encode(),
            batch.deadline,
            batch.deliveries,
            batch.committed_seq,
            batch.head_seq,
            batch.lag,
            b"null" if batch.tombstone is None else msgspec.json.encode(batch.tombstone),
        )
        self._send(b"id: %d\n%b" % (batch.last_seq, frame(b"batch", text)))

    def _ended(self, error: TopicsError) -> None:
        self._give_up(error.http_status, error.message)

    # ---- frames

    def _beat(self) -> bytes:
        return b": hb %d\n\n" % self._clock.now_ms()

    def _send(self, frames: bytes) -> None:
        assert self._stream is not None
        self._stream.send(frames)
        self._sent_ns = self._clock.ticks_ns()

    def _beat_due_ns(self) -> int:
        return self._sent_ns + self._heartbeat_ms * NS_PER_MS

    def _wake(self) -> None:
        assert self._stream is not None
        self._stream.wake_at(self._beat_due_ns())

    def _give_up(self, code: int, message: str) -> None:
        assert self._stream is not None
        self._stream.send(error_frame(code, message))
        self._stream.end(close=True)
