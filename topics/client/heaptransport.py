"""How a client reaches the heaps of an engine: their verbs, and the stream that messages come on.

In process it is `topics/embeddedheaps.py`, over HTTP `remoteheaps.py`, over gRPC `grpc/heaps.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from topics.client.outage import Outage
from topics.errors import TopicsError
from topics.heapmodel import (
    AckedMessages,
    Cancelled,
    DeadFilter,
    DeadMessage,
    DeadPage,
    DeadStep,
    EnqueuedBatch,
    ExtendedLeases,
    HeapInfo,
    LeaseRef,
    MovedToDlq,
    NackedMessages,
    NewMessage,
    PeekedMessages,
    PoppedMessage,
    PoppedMessages,
    Purged,
    Reprioritized,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PopRequest:
    """Messages for one consumer. A lease of None is as long as the heap says; no partitions are all of them."""

    consumer: str
    max: int = 1
    wait_ms: int = 0
    visibility_ms: int | None = None
    partitions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NackRequest:
    """Messages that were not done."""

    leases: Sequence[LeaseRef]
    backoff_ms: int | None = None
    reason: str = ""
    undelivered: bool = False


class Settler(Protocol):
    """What becomes of messages of one heap."""

    async def ack(self, leases: Sequence[LeaseRef]) -> AckedMessages: ...

    async def nack(self, request: NackRequest) -> NackedMessages: ...

    async def extend(self, leases: Sequence[LeaseRef], extension_ms: int) -> ExtendedLeases: ...


Arrived = Callable[[Sequence[PoppedMessage]], None]


class HeapStream(Settler, Protocol):
    """Messages as they come, one for each credit, and what becomes of them."""

    async def open(self, arrived: Arrived) -> int:
        """Begin; how long each lease lasts, in milliseconds. `arrived` is told what comes, when it comes."""

    @property
    def is_over(self) -> bool:
        """Whether it has ended, and with it the leases of all that came on it."""

    def grant(self, credits: int) -> None: ...

    async def receive(self) -> None:
        """Returns when more has arrived. What raises has ended the stream."""

    async def close(self) -> None:
        """What was received and not settled is for others at once, and no attempt counts."""


class HeapTransport(Protocol):
    def may_pass(self, error: TopicsError) -> bool: ...

    def outage(self) -> Outage: ...

    async def make_heap(self, topic: str, fields: Mapping[str, object]) -> HeapInfo:
        """`fields` are those of a topic's config."""

    async def change_heap(self, topic: str, fields: Mapping[str, object]) -> HeapInfo: ...

    async def heap_info(self, topic: str) -> HeapInfo: ...

    async def heap_infos(self, *, prefix: str, after: str, limit: int) -> list[HeapInfo]:
        """Heaps in order of their names, behind `after`."""

    async def drop_heap(self, topic: str) -> None: ...

    async def purge_heap(self, topic: str, partition: int | None) -> Purged: ...

    async def enqueue(self, messages: Sequence[tuple[str, NewMessage]], transaction_id: str) -> EnqueuedBatch:
        """All or none. Repeated with the same `transaction_id` it is answered as the first time."""

    async def pop(self, topic: str, request: PopRequest) -> PoppedMessages:
        """Waits up to `wait_ms` for the first; whoever is cancelled meanwhile leaves none leased."""

    def stream(self, topic: str, request: PopRequest) -> HeapStream: ...

    async def ack(self, topic: str, leases: Sequence[LeaseRef]) -> AckedMessages: ...

    async def nack(self, topic: str, request: NackRequest) -> NackedMessages: ...

    async def extend(self, topic: str, leases: Sequence[LeaseRef], extension_ms: int) -> ExtendedLeases: ...

    async def peek(self, topic: str, *, partition: int | None, limit: int, include_dlq: bool) -> PeekedMessages: ...

    async def reprioritize(self, topic: str, message_id: str, priority: int) -> Reprioritized: ...

    async def cancel(self, topic: str, message_id: str) -> Cancelled: ...

    async def move_to_dlq(self, topic: str, message_id: str, reason: str) -> MovedToDlq: ...

    async def dead_letters(self, topic: str, chosen: DeadFilter, *, cursor: str, limit: int) -> DeadPage: ...

    async def dead_letter(self, topic: str, message_id: str) -> DeadMessage: ...

    async def replay_dead(self, topic: str, chosen: DeadFilter, limit: int) -> DeadStep:
        """All that are meant, or `limit` of them; 0 is no limit."""

    async def delete_dead(self, topic: str, chosen: DeadFilter, limit: int) -> DeadStep: ...

    async def close(self) -> None: ...
