"""Which queues have jobs out, so that counting those of all queues takes no look at every topic."""

from __future__ import annotations

from collections.abc import Callable

from topics.core.heap import Heap
from topics.core.leases import LEASED, LEAVING
from topics.core.log import Log
from topics.core.machine import Machine
from topics.model import TopicType


class Leasing:
    def __init__(self, machine: Machine, now_ms: Callable[[], int]) -> None:
        self._machine = machine
        self._now_ms = now_ms
        self._busy: set[int] = set()
        """All logs with a job out, and some that had one lately."""

    def note(self, log: Log) -> None:
        """Something about a queue changed."""
        if log.queue is not None and log.queue.is_touched and len(log.queue.leases) and not isinstance(log.queue, Heap):
            self._busy.add(log.log_id)

    def resume(self) -> None:
        """After a recovery: what was out is out."""
        for topic in self._machine.topics:
            if topic.config.type is TopicType.QUEUE:
                for log_id in topic.log_ids():
                    self.note(self._machine.logs[log_id])

    def in_flight_count(self) -> int:
        """Jobs that somebody has, in all queues."""
        now_ms = self._now_ms()
        total = 0
        idle = []
        for log_id in self._busy:
            log = self._machine.logs.get(log_id)
            if log is None or log.queue is None or not len(log.queue.leases):
                idle.append(log_id)
                continue
            log.queue.leases.expire(now_ms)
            total += log.queue.leases.counts[LEASED] + log.queue.leases.counts[LEAVING]
        self._busy.difference_update(idle)
        return total
