"""The verbs of heaps over gRPC: `topics.v1.Heaps`, and `disheap.v1.Disheap` for the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from topics.client.caller import may_pass
from topics.client.grpc import values
from topics.client.grpc.endpoints import Endpoints
from topics.client.grpc.fitting import fitting, whole_ms
from topics.client.grpc.heapfields import sayable
from topics.client.grpc.stream import WorkStream
from topics.client.heaptransport import HeapStream, NackRequest, PopRequest
from topics.client.outage import OnOutage, Outage
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
    PoppedMessages,
    Purged,
    Reprioritized,
)
from topics.limits import CLAIM_WAIT_MS_MAX
from topics.proto import messages as proto
from topics.wire.cursor import encode_cursor


class GrpcHeaps:
    """A `HeapTransport`."""

    def __init__(self, endpoints: Endpoints, on_outage: OnOutage) -> None:
        self._endpoints = endpoints
        self._on_outage = on_outage

    def may_pass(self, error: TopicsError) -> bool:
        return not self._endpoints.closed and may_pass(error)

    def outage(self) -> Outage:
        # A stream is opened in one try, so the tries are made there.
        endpoints = self._endpoints
        return Outage(self.may_pass, lambda: endpoints.reached, self._on_outage, attempts_max=endpoints.attempts_max)

    async def close(self) -> None:
        await self._endpoints.close()

    # ---- heaps

    async def make_heap(self, topic: str, fields: Mapping[str, object]) -> HeapInfo:
        await self._call("Disheap.MakeHeap", values.make_request(topic, sayable(topic, fields)), repeatable=False)
        return await self.heap_info(topic)

    async def change_heap(self, topic: str, fields: Mapping[str, object]) -> HeapInfo:
        request = values.change_request(topic, sayable(topic, fields))
        await self._call("Disheap.UpdateHeapConfig", request, repeatable=True)
        return await self.heap_info(topic)

    async def heap_info(self, topic: str) -> HeapInfo:
        return values.heap_info(
            await self._call("Heaps.GetHeap", fitting(proto.GetHeapReq, topic=topic), repeatable=True)
        )

    async def heap_infos(self, *, prefix: str, after: str, limit: int) -> list[HeapInfo]:
        token = encode_cursor(after) if after else ""
        request = fitting(proto.FindHeapsReq, prefix=prefix, page_size=limit, page_token=token)
        found = await self._call("Heaps.ListHeaps", request, repeatable=True)
        return [values.heap_info(heap) for heap in found.heaps]

    async def drop_heap(self, topic: str) -> None:
        request = fitting(proto.DeleteHeapReq, topic=topic, force=True)
        await self._call("Disheap.DeleteHeap", request, repeatable=False)

    async def purge_heap(self, topic: str, partition: int | None) -> Purged:
        request = fitting(proto.PurgeReq, topic=topic, partition_id=partition, force=True)
        return Purged(topic=topic, purged=(await self._call("Heaps.PurgeHeap", request, repeatable=False)).count)

    # ---- messages

    async def enqueue(self, messages: Sequence[tuple[str, NewMessage]], transaction_id: str) -> EnqueuedBatch:
        once = bool(transaction_id) or all(message.sequence is not None for _, message in messages)
        several = bool(transaction_id)
        made = [
            values.new_message(*each, f"messages[{place}]." if several else "") for place, each in enumerate(messages)
        ]
        request = fitting(proto.EnqueueManyReq, messages=made, transaction_id=transaction_id or None)
        return values.enqueued_batch(await self._call("Heaps.EnqueueMany", request, repeatable=once))

    async def pop(self, topic: str, request: PopRequest) -> PoppedMessages:
        wait_ms = min(whole_ms("wait_ms", request.wait_ms), CLAIM_WAIT_MS_MAX)
        asked = fitting(
            proto.PopReq,
            topic=topic,
            max=request.max,
            wait_time=values.duration("wait_ms", wait_ms),
            partition_ids=request.partitions,
            visibility_timeout=values.visibility(request),
        )
        found = await self._endpoints.call(
            "Heaps.Pop", asked, repeatable=False, wait_ms=wait_ms, consumer=request.consumer
        )
        return PoppedMessages(topic=topic, messages=tuple(map(values.popped, found.items)))

    def stream(self, topic: str, request: PopRequest) -> HeapStream:
        return WorkStream(self._endpoints, topic, request)

    async def ack(self, topic: str, leases: Sequence[LeaseRef]) -> AckedMessages:
        done = await self._settle(topic, values.settle_acks(leases))
        return AckedMessages(topic=topic, acked=done.acked, lost=values.lost(done.refused))

    async def nack(self, topic: str, request: NackRequest) -> NackedMessages:
        done = await self._settle(topic, values.settle_nacks(request))
        lost = values.lost(done.refused)
        return NackedMessages(topic=topic, nacked=done.nacked, dead_lettered=done.dead_lettered, lost=lost)

    async def extend(self, topic: str, leases: Sequence[LeaseRef], extension_ms: int) -> ExtendedLeases:
        done = await self._settle(topic, values.settle_extensions(leases, extension_ms))
        return ExtendedLeases(
            topic=topic,
            extended=done.extended,
            lease_deadline_ms=values.milliseconds(done.lease_deadline),
            lost=values.lost(done.refused),
        )

    async def _settle(self, topic: str, settle: Any) -> Any:
        request = fitting(proto.SettleReq, topic=topic, settle=settle)
        return await self._call("Heaps.SettleMany", request, repeatable=True)

    async def peek(self, topic: str, *, partition: int | None, limit: int, include_dlq: bool) -> PeekedMessages:
        request = fitting(proto.PeekReq, topic=topic, partition_id=partition, limit=limit, include_dlq=include_dlq)
        found = await self._call("Heaps.Peek", request, repeatable=True)
        messages = tuple(map(values.peeked, found.items))
        return PeekedMessages(topic=topic, messages=messages, has_more=found.has_more)

    async def reprioritize(self, topic: str, message_id: str, priority: int) -> Reprioritized:
        request = fitting(proto.ReprioritizeReq, topic=topic, message_id=message_id, priority=priority)
        # Not repeatable: the second answer would have the priority that the first has given it.
        old = (await self._call("Heaps.Reprioritize", request, repeatable=False)).old_priority
        return Reprioritized(topic=topic, message_id=message_id, priority=priority, previous_priority=old)

    async def cancel(self, topic: str, message_id: str) -> Cancelled:
        request = fitting(proto.CancelReq, topic=topic, message_id=message_id)
        await self._call("Heaps.Cancel", request, repeatable=False)
        return Cancelled(topic=topic, message_id=message_id)

    async def move_to_dlq(self, topic: str, message_id: str, reason: str) -> MovedToDlq:
        request = fitting(proto.MoveToDlqReq, topic=topic, message_id=message_id, reason=reason)
        await self._call("Disheap.MoveToDLQ", request, repeatable=False)
        dlq_topic = (await self.heap_info(topic)).config.dlq_topic or ""
        return MovedToDlq(topic=topic, message_id=message_id, dlq_topic=dlq_topic)

    # ---- dead letters

    async def dead_letters(self, topic: str, chosen: DeadFilter, *, cursor: str, limit: int) -> DeadPage:
        request = fitting(
            proto.ListDeadLettersReq, topic=topic, filter=values.dead_filter(chosen), limit=limit, page_token=cursor
        )
        found = await self._call("Heaps.ListDeadLetters", request, repeatable=True)
        return DeadPage(
            topic=topic,
            dlq_topic=found.dlq_topic,
            messages=tuple(map(values.dead_message, found.items)),
            next_cursor=found.next_page_token,
        )

    async def dead_letter(self, topic: str, message_id: str) -> DeadMessage:
        request = fitting(proto.PeekDeadLetterReq, topic=topic, message_id=message_id)
        return values.dead_message(await self._call("Heaps.PeekDeadLetter", request, repeatable=True))

    async def replay_dead(self, topic: str, chosen: DeadFilter, limit: int) -> DeadStep:
        return await self._step("Heaps.ReplayDeadLetters", topic, chosen, limit)

    async def delete_dead(self, topic: str, chosen: DeadFilter, limit: int) -> DeadStep:
        return await self._step("Heaps.DeleteDeadLetters", topic, chosen, limit)

    async def _step(self, name: str, topic: str, chosen: DeadFilter, limit: int) -> DeadStep:
        request = fitting(
            proto.DeadLettersReq, topic=topic, filter=values.dead_filter(chosen), force=True, limit=limit or None
        )
        done = await self._call(name, request, repeatable=False)
        return DeadStep(topic=topic, done_count=done.count, skipped_count=done.skipped)

    async def _call(self, name: str, request: Any, *, repeatable: bool) -> Any:
        return await self._endpoints.call(name, request, repeatable=repeatable)
