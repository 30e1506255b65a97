"""A stream of a group: one consumer's connection to which the engine pushes batches that it may hold.

    retry: 2000                                              once, at the beginning, and a heartbeat
    id: 7  event: batch  data: {"topic":…,"records":[…],…}   records, claimed by this consumer on this connection
    event: error  data: {"code":503,"error":…}               the last frame, unless the client goes first
    : hb 1748467205000                                       when nothing else was sent for a while

How it is kept, slowed down and ended is in `push.py`; who gets which records in `engine/grouping.py`.
"""

from __future__ import annotations

from typing import Final

import msgspec

from topics.clock import Clock
from topics.core.groupcommands import Consume
from topics.engine.grouping import Grouping
from topics.engine.groupline import Stream as Delivery
from topics.groupmodel import GroupBatch
from topics.server.push import Push
from topics.server.sse import frame

_BATCH: Final = (
    b'"topic":"%b",%b"group":"%b","records":[%b],"count":%d,"first_seq":%d,"last_seq":%d,"claim_id":"%b",'
    b'"deadline":%d,"visibility_ms":%d,"deliveries":%d,"committed_seq":%d,"head_seq":%d,"lag":%d,"tombstone":%b}'
)


class GroupPush(Push):
    def __init__(
        self,
        groups: Grouping,
        command: Consume,
        claims_max: int,
        heartbeat_ms: int,
        clock: Clock,
        slow_timeout_ms: int,
    ) -> None:
        super().__init__(heartbeat_ms, clock, slow_timeout_ms)
        self._groups = groups
        self._command = command
        self._claims_max = claims_max

    def open(self) -> Delivery:
        return self._groups.open(self._command, self._claims_max, self._deliver, self.ended)

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
            batch.visibility_ms,
            batch.deliveries,
            batch.committed_seq,
            batch.head_seq,
            batch.lag,
            b"null" if batch.tombstone is None else msgspec.json.encode(batch.tombstone),
        )
        self.send(b"id: %d\n%b" % (batch.last_seq, frame(b"batch", text)))
