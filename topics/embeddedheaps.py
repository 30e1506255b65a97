"""The verbs of heaps on the engine in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from topics.argumenttypes import checked
from topics.client.heaptransport import HeapStream, NackRequest, PopRequest
from topics.client.outage import Outage
from topics.client.polledstream import PolledStream
from topics.core.commands import Command, Configure, Drop
from topics.core.heapcommands import (
    AckMessages,
    CancelMessage,
    DeleteDead,
    ExtendLeases,
    MakeHeap,
    MoveToDlq,
    NackMessages,
    Popper,
    PurgeHeap,
    ReplayDead,
    Reprioritize,
)
from topics.engine.deadsteps import dead_steps
from topics.engine.heaping import Heaping
from topics.engine.host import Host
from topics.errors import Throttled, TopicsError
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
    PoppedMessages,
    Purged,
    Reprioritized,
)
from topics.model import Configured, Dropped

T = TypeVar("T")


@checked
class EmbeddedHeaps:
    """A `HeapTransport` without a wire."""

    def __init__(self, open_host: Callable[[], Host]) -> None:
        self._open_host = open_host

    def may_pass(self, error: TopicsError) -> bool:
        return isinstance(error, Throttled) and "retry_after_ms" in error.detail

    def outage(self) -> Outage:
        return Outage(self.may_pass)

    async def close(self) -> None:
        """The host is closed by whoever opened it."""

    async def _submit(self, command: Command, kind: type[T]) -> T:
        reply = await self._open_host().submit_patiently(command)
        assert isinstance(reply, kind)
        return reply

    async def _read(self, topic: str) -> Heaping:
        """The heaps, when this one and its dead letters have what is on its way to them."""
        host = self._open_host()
        await host.freshened(*host.with_letters(topic))
        return host.engine.heaps

    # ---- heaps

    async def make_heap(self, topic: str, fields: Mapping[str, object]) -> HeapInfo:
        await self._submit(MakeHeap(topic, fields), HeapInfo)
        return self._open_host().engine.heaps.info(topic)

    async def change_heap(self, topic: str, fields: Mapping[str, object]) -> HeapInfo:
        heaps = self._open_host().engine.heaps
        heaps.info(topic)
        await self._submit(Configure(topic, fields, True), Configured)
        return heaps.info(topic)

    async def heap_info(self, topic: str) -> HeapInfo:
        return (await self._read(topic)).info(topic)

    async def heap_infos(self, *, prefix: str, after: str, limit: int) -> list[HeapInfo]:
        host = self._open_host()
        await host.freshened(*host.fed())
        return host.engine.heaps.list(prefix, after, limit)

    async def drop_heap(self, topic: str) -> None:
        self._open_host().engine.heaps.info(topic)
        await self._submit(Drop(topic), Dropped)

    async def purge_heap(self, topic: str, partition: int | None) -> Purged:
        return await self._submit(PurgeHeap(topic, partition), Purged)

    # ---- messages

    async def enqueue(self, messages: Sequence[tuple[str, NewMessage]], transaction_id: str) -> EnqueuedBatch:
        host = self._open_host()
        reply = await host.answer(host.engine.heaps.enqueue_batch(messages, transaction_id))
        assert isinstance(reply, EnqueuedBatch)
        return reply

    async def pop(self, topic: str, request: PopRequest) -> PoppedMessages:
        popper = Popper(request.consumer, request.max, request.visibility_ms)
        return await self._open_host().pop(topic, popper, request.wait_ms, request.partitions)

    def stream(self, topic: str, request: PopRequest) -> HeapStream:
        return PolledStream(self, topic, request)

    async def ack(self, topic: str, leases: Sequence[LeaseRef]) -> AckedMessages:
        return await self._submit(AckMessages(topic, leases, False), AckedMessages)

    async def nack(self, topic: str, request: NackRequest) -> NackedMessages:
        command = NackMessages(topic, request.leases, request.backoff_ms, request.reason, request.undelivered, False)
        return await self._submit(command, NackedMessages)

    async def extend(self, topic: str, leases: Sequence[LeaseRef], extension_ms: int) -> ExtendedLeases:
        return await self._submit(ExtendLeases(topic, leases, extension_ms, False), ExtendedLeases)

    async def peek(self, topic: str, *, partition: int | None, limit: int, include_dlq: bool) -> PeekedMessages:
        return (await self._read(topic)).peek(topic, partition, limit, include_dlq)

    async def reprioritize(self, topic: str, message_id: str, priority: int) -> Reprioritized:
        return await self._submit(Reprioritize(topic, message_id, priority), Reprioritized)

    async def cancel(self, topic: str, message_id: str) -> Cancelled:
        return await self._submit(CancelMessage(topic, message_id), Cancelled)

    async def move_to_dlq(self, topic: str, message_id: str, reason: str) -> MovedToDlq:
        return await self._submit(MoveToDlq(topic, message_id, reason), MovedToDlq)

    # ---- dead letters

    async def dead_letters(self, topic: str, chosen: DeadFilter, *, cursor: str, limit: int) -> DeadPage:
        return (await self._read(topic)).dead_letters(topic, chosen, cursor, limit)

    async def dead_letter(self, topic: str, message_id: str) -> DeadMessage:
        return (await self._read(topic)).dead_letter(topic, message_id)

    async def replay_dead(self, topic: str, chosen: DeadFilter, limit: int) -> DeadStep:
        host = self._open_host()
        await host.freshened(*host.with_letters(topic))
        return await dead_steps(host, lambda cursor, most: ReplayDead(topic, chosen, cursor, most), limit)

    async def delete_dead(self, topic: str, chosen: DeadFilter, limit: int) -> DeadStep:
        host = self._open_host()
        await host.freshened(*host.with_letters(topic))
        return await dead_steps(host, lambda cursor, most: DeleteDead(topic, chosen, cursor, most), limit)
