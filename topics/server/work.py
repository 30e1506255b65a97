"""A stream of jobs: one worker's connection to which the engine pushes what it may hold.

    retry: 2000                                         once, at the beginning, and a heartbeat
    id: 7  event: job  data: {"topic":…,"$seq":7,…}     a job, leased to this worker on this connection
    event: error  data: {"code":429,"error":…}          the server is behind: more comes when it has caught up
    event: error  data: {"code":503,"error":…}          any other is the last frame, unless the client goes first
    : hb 1748467205000                                  when nothing else was sent for a while

How it is kept, slowed down and ended is in `push.py`; who gets which jobs in `engine/claiming.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from topics.clock import Clock
from topics.engine.claiming import Claiming
from topics.engine.line import Stream as Delivery
from topics.model import ClaimedJobs
from topics.server.push import Push
from topics.server.sse import PACED, error_frame, frame


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


class JobStream(Push):
    def __init__(self, claiming: Claiming, order: WorkOrder, clock: Clock, slow_timeout_ms: int) -> None:
        super().__init__(order.heartbeat_ms, clock, slow_timeout_ms)
        self._claiming = claiming
        self._order = order
        self._beginning = b'"topic":"%b",' % order.topic.encode()
        if order.partition:
            self._beginning += b'"partition":%d,' % order.partition

    def open(self) -> Delivery:
        order = self._order
        return self._claiming.open(
            order.topic,
            order.node,
            order.max,
            order.lease_ms,
            self._deliver,
            self.ended,
            order.partition,
            self._paced,
        )

    def _deliver(self, jobs: ClaimedJobs) -> None:
        self.send(b"".join(map(self._frame, jobs.seqs, jobs.jobs)))

    def _paced(self, retry_after_ms: int) -> None:
        message = "the disk is behind with its work, and nothing is leased until it has caught up"
        self.send(error_frame(PACED, message, retry_after_ms=retry_after_ms))

    def _frame(self, seq: int, job: bytes) -> bytes:
        return b"id: %d\n%b" % (seq, frame(b"job", self._beginning + job[1:]))
