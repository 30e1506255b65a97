"""The verbs of heaps over HTTP: `/v1`.

An enqueue names its messages by producer and sequence, or its transaction, so that it may be sent again. Acks, nacks
and extends name their leases. A pop is not tried again when its answer is lost: it may have leased messages, which come
back when their leases run out. When nobody waits for its answer any more, what was on its way is given back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec

from topics.client import heapvalues
from topics.client.body import plain_body
from topics.client.caller import Caller, may_pass
from topics.client.connection import Answer
from topics.client.heaptransport import HeapStream, NackRequest, PopRequest
from topics.client.outage import OnOutage, Outage
from topics.client.polledstream import PolledStream
from topics.client.remoteanswer import decoded, topic_path
from topics.errors import ConfirmationNeeded, TopicExists, TopicsError
from topics.heapmodel import (
    AckedMessages,
    Cancelled,
    DeadFilter,
    DeadMessage,
    DeadPage,
    DeadStep,
    Enqueued,
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
from topics.model import Configured
from topics.wire.cursor import encode_cursor
from topics.wire.duration import seconds

GIVE_BACK_S_MAX: Final = 2.0
"""How long a client that is closed waits for the server to take messages back."""


class _Acked(msgspec.Struct):
    acked: int
    refused: list[heapvalues.Refused]


class _Nacked(msgspec.Struct):
    nacked: int
    dead_lettered: int
    refused: list[heapvalues.Refused]


class _Extended(msgspec.Struct):
    extended: int
    lease_deadline: datetime
    refused: list[heapvalues.Refused]


class _Purged(msgspec.Struct):
    purged: int


class _Counted(msgspec.Struct):
    count: int
    skipped: int


class _Priority(msgspec.Struct):
    old_priority: int


class _Moved(msgspec.Struct):
    dlq_topic: str


class _Listed(msgspec.Struct):
    heaps: list[heapvalues.Info]


class RemoteHeaps:
    """A `HeapTransport`."""

    def __init__(self, caller: Caller, on_outage: OnOutage) -> None:
        self._caller = caller
        self._on_outage = on_outage
        self._giving_back: set[asyncio.Future[None]] = set()

    def may_pass(self, error: TopicsError) -> bool:
        return self._caller.is_open and may_pass(error)

    def outage(self) -> Outage:
        return Outage(self.may_pass, lambda: self._caller.reached, self._on_outage)

    # ---- heaps

    async def make_heap(self, topic: str, fields: Mapping[str, object]) -> HeapInfo:
        # A heap is a topic, whose config has more than `/v1` can say.
        body, path = plain_body({**fields, "type": "heap"}), topic_path(topic, if_missing="true")
        found = decoded(await self._caller.call("PUT", path, body, repeatable=False), Configured)
        if not found.created:
            message = f'topic "{topic}" already exists as a {found.config.type.value}; change its config, or choose '
            raise TopicExists(message + "another name", topic=topic)
        return await self.heap_info(topic)

    async def change_heap(self, topic: str, fields: Mapping[str, object]) -> HeapInfo:
        await self.heap_info(topic)
        await self._caller.call("PATCH", topic_path(topic), plain_body(fields), repeatable=True)
        return await self.heap_info(topic)

    async def heap_info(self, topic: str) -> HeapInfo:
        answer = await self._caller.call("GET", _heap_path(topic), repeatable=True)
        return heapvalues.heap_info(decoded(answer, heapvalues.Info))

    async def heap_infos(self, *, prefix: str, after: str, limit: int) -> list[HeapInfo]:
        query = {"page_size": str(limit), "prefix": prefix}
        if after:
            query["page_token"] = encode_cursor(after)
        answer = await self._caller.call("GET", f"/v1/heaps?{urlencode(query)}", repeatable=True)
        return [heapvalues.heap_info(info) for info in decoded(answer, _Listed).heaps]

    async def drop_heap(self, topic: str) -> None:
        await self._confirmed("DELETE", _heap_path(topic), {})

    async def purge_heap(self, topic: str, partition: int | None) -> Purged:
        body = {} if partition is None else {"partition_id": partition}
        answer = await self._confirmed("POST", f"{_heap_path(topic)}/purge", body)
        return Purged(topic=topic, purged=decoded(answer, _Purged).purged)

    async def _confirmed(self, method: str, path: str, fields: Mapping[str, Any]) -> Answer:
        """Ask for the token, and do it: whoever calls a method that destroys has made up their mind."""
        body = msgspec.json.encode(fields) if fields else b""
        try:
            return await self._caller.call(method, f"{path}?force=true", body, repeatable=True)
        except ConfirmationNeeded as needed:
            query = urlencode({"force": "true", "confirmation_token": needed.detail["confirmation_token"]})
        return await self._caller.call(method, f"{path}?{query}", body, repeatable=False)

    # ---- messages

    async def enqueue(self, messages: Sequence[tuple[str, NewMessage]], transaction_id: str) -> EnqueuedBatch:
        once = bool(transaction_id) or all(message.sequence is not None for _, message in messages)
        if len(messages) == 1 and not transaction_id:
            answer = await self._post("/v1/enqueue", heapvalues.message_fields(*messages[0]), repeatable=once)
            return EnqueuedBatch(messages=(_enqueued(decoded(answer, heapvalues.EnqueuedItem)),))
        told = [heapvalues.message_fields(*each) for each in messages]
        body = {"messages": told, "transaction_id": transaction_id}
        found = decoded(await self._post("/v1/enqueue/batch", body, repeatable=once), heapvalues.EnqueuedItems)
        return EnqueuedBatch(messages=tuple(map(_enqueued, found.responses)), transaction_id=found.transaction_id)

    async def pop(self, topic: str, request: PopRequest) -> PoppedMessages:
        wait_ms = min(request.wait_ms, CLAIM_WAIT_MS_MAX)
        fields: dict[str, Any] = {"topic": topic, "max": request.max, "consumer": request.consumer}
        if wait_ms:
            fields["wait_time"] = seconds(wait_ms)
        if request.visibility_ms is not None:
            fields["visibility_timeout"] = seconds(request.visibility_ms)
        if request.partitions:
            fields["partition_ids"] = list(request.partitions)
        answer = await self._caller.call(
            "POST",
            "/v1/pop",
            msgspec.json.encode(fields),
            repeatable=False,
            wait_ms=wait_ms,
            abandoned=lambda answer: self._give_back(topic, answer),
        )
        return _popped(topic, answer)

    def stream(self, topic: str, request: PopRequest) -> HeapStream:
        return PolledStream(self, topic, request)

    def _give_back(self, topic: str, answer: Answer) -> None:
        """Messages came for somebody who does not wait for them any more."""
        if answer.status != 200 or not (messages := _popped(topic, answer).messages):
            return
        leases = [LeaseRef(message.lease_token, message.message_id) for message in messages]
        task = asyncio.ensure_future(self._release(topic, leases))
        self._giving_back.add(task)
        task.add_done_callback(self._giving_back.discard)

    async def _release(self, topic: str, leases: Sequence[LeaseRef]) -> None:
        # When nobody can be told they come back when their leases run out.
        with suppress(TopicsError):
            await self.nack(topic, NackRequest(leases=leases, undelivered=True))

    async def close(self) -> None:
        """Returns when all that came too late is given back, or cannot be."""
        if self._giving_back:
            await asyncio.wait(self._giving_back, timeout=GIVE_BACK_S_MAX)

    async def ack(self, topic: str, leases: Sequence[LeaseRef]) -> AckedMessages:
        answer = await self._post("/v1/ack", heapvalues.lease_fields(topic, leases), repeatable=True)
        done = decoded(answer, _Acked)
        return AckedMessages(topic=topic, acked=done.acked, lost=heapvalues.lost(done.refused))

    async def nack(self, topic: str, request: NackRequest) -> NackedMessages:
        fields = heapvalues.lease_fields(topic, request.leases)
        if request.backoff_ms is not None:
            fields["backoff_override"] = seconds(request.backoff_ms)
        if request.reason:
            fields["reason"] = request.reason
        if request.undelivered:
            fields["undelivered"] = True
        done = decoded(await self._post("/v1/nack", fields, repeatable=True), _Nacked)
        return NackedMessages(
            topic=topic,
            nacked=done.nacked,
            dead_lettered=done.dead_lettered,
            lost=heapvalues.lost(done.refused),
        )

    async def extend(self, topic: str, leases: Sequence[LeaseRef], extension_ms: int) -> ExtendedLeases:
        fields = heapvalues.lease_fields(topic, leases) | {"extension": seconds(extension_ms)}
        done = decoded(await self._post("/v1/extend", fields, repeatable=True), _Extended)
        return ExtendedLeases(
            topic=topic,
            extended=done.extended,
            lease_deadline_ms=heapvalues.milliseconds(done.lease_deadline),
            lost=heapvalues.lost(done.refused),
        )

    async def peek(self, topic: str, *, partition: int | None, limit: int, include_dlq: bool) -> PeekedMessages:
        query = {"topic": topic, "limit": str(limit), "include_dlq": "true" if include_dlq else "false"}
        if partition is not None:
            query["partition_id"] = str(partition)
        answer = await self._caller.call("GET", f"/v1/peek?{urlencode(query)}", repeatable=True)
        found = decoded(answer, heapvalues.Peeked)
        return PeekedMessages(topic=topic, messages=tuple(map(heapvalues.peeked, found.items)), has_more=found.has_more)

    async def reprioritize(self, topic: str, message_id: str, priority: int) -> Reprioritized:
        fields = {"message_id": message_id, "priority": priority}
        # Not repeatable: the second answer would have the priority that the first has given it.
        answer = await self._post(f"{_heap_path(topic)}/reprioritize", fields, repeatable=False)
        old = decoded(answer, _Priority).old_priority
        return Reprioritized(topic=topic, message_id=message_id, priority=priority, previous_priority=old)

    async def cancel(self, topic: str, message_id: str) -> Cancelled:
        await self._post(f"{_heap_path(topic)}/cancel", {"message_id": message_id}, repeatable=False)
        return Cancelled(topic=topic, message_id=message_id)

    async def move_to_dlq(self, topic: str, message_id: str, reason: str) -> MovedToDlq:
        fields = {"message_id": message_id, "reason": reason}
        answer = await self._post(f"{_heap_path(topic)}/move_to_dlq", fields, repeatable=False)
        return MovedToDlq(topic=topic, message_id=message_id, dlq_topic=decoded(answer, _Moved).dlq_topic)

    # ---- dead letters

    async def dead_letters(self, topic: str, chosen: DeadFilter, *, cursor: str, limit: int) -> DeadPage:
        query = heapvalues.filter_fields(msgspec.structs.replace(chosen, message_ids=()), limit)
        if cursor:
            query["page_token"] = cursor
        path = f"{_heap_path(topic)}/dlq?{urlencode(query)}"
        found = decoded(await self._caller.call("GET", path, repeatable=True), heapvalues.DeadList)
        return DeadPage(
            topic=topic,
            dlq_topic=found.dlq_topic,
            messages=tuple(map(heapvalues.dead, found.items)),
            next_cursor=found.next_page_token,
        )

    async def dead_letter(self, topic: str, message_id: str) -> DeadMessage:
        path = f"{_heap_path(topic)}/dlq/{quote(message_id, safe='')}"
        answer = await self._caller.call("GET", path, repeatable=True)
        return heapvalues.dead(decoded(answer, heapvalues.DeadShown).item)

    async def replay_dead(self, topic: str, chosen: DeadFilter, limit: int) -> DeadStep:
        path = f"{_heap_path(topic)}/dlq/replay"
        answer = await self._post(path, heapvalues.filter_fields(chosen, limit), repeatable=False)
        return _stepped(topic, answer)

    async def delete_dead(self, topic: str, chosen: DeadFilter, limit: int) -> DeadStep:
        fields = heapvalues.filter_fields(chosen, limit)
        return _stepped(topic, await self._confirmed("POST", f"{_heap_path(topic)}/dlq/delete", fields))

    async def _post(self, path: str, fields: Mapping[str, Any], *, repeatable: bool) -> Answer:
        return await self._caller.call("POST", path, msgspec.json.encode(fields), repeatable=repeatable)


def _heap_path(topic: str) -> str:
    return f"/v1/heaps/{quote(topic, safe='')}"


def _enqueued(item: heapvalues.EnqueuedItem) -> Enqueued:
    return Enqueued(message_id=item.message_id, partition=item.partition_id, duplicate=item.duplicate)


def _popped(topic: str, answer: Answer) -> PoppedMessages:
    found = decoded(answer, heapvalues.Popped)
    return PoppedMessages(topic=topic, messages=tuple(map(heapvalues.popped, found.items)))


def _stepped(topic: str, answer: Answer) -> DeadStep:
    found = decoded(answer, _Counted)
    return DeadStep(topic=topic, done_count=found.count, skipped_count=found.skipped)
