"""One heap, as a program uses it: messages are enqueued with a priority and popped best first."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from platform import node as host_name
from secrets import token_hex
from typing import Any, Final, Literal, TypedDict, Unpack

from topics import jsontext
from topics.client import spans
from topics.client.fields import check_config
from topics.client.heapconsumer import HeapConsumer
from topics.client.heaptransport import HeapTransport, NackRequest, PopRequest
from topics.client.heldmessage import HeldMessage
from topics.client.message import Message
from topics.client.messagehands import Calls, MessageHands
from topics.client.sequence import Sequence as Numbers
from topics.errors import InvalidRequest
from topics.heapmodel import (
    AckedMessages,
    Cancelled,
    DeadFilter,
    DeadMessage,
    DeadStep,
    Enqueued,
    EnqueuedBatch,
    ExtendedLeases,
    HeapInfo,
    HeapStats,
    LeaseRef,
    MovedToDlq,
    NackedMessages,
    NewMessage,
    PeekedMessages,
    Purged,
    Reprioritized,
)
from topics.limits import CLAIM_MAX_DEFAULT, HEAP_PEEK_DEFAULT
from topics.model import Durability

DEAD_PAGE: Final = 100


class HeapFields(TypedDict, total=False):
    """The config of a heap; docs/HEAPS.md explains each."""

    mode: str
    partitions: int
    replication_factor: int
    top_k_bound: int
    retention_ms: int
    lease_ms: int
    max_retries: int
    max_payload_bytes: int
    compression: bool
    dead_letter: str | None
    dead_letter_ttl_ms: int
    durability: Durability | Literal["ephemeral", "memory", "disk", "fsync"]


class MessageFields(TypedDict, total=False):
    """One message of `enqueue_many`."""

    payload: Any
    priority: int
    key: str | None
    partition: int | None
    delay_ms: int
    max_retries: int | None
    meta: Mapping[str, str] | None


class Heap:
    """A heap by its name. Making this object touches nothing.

    `consumer` is the name that shows who has a message, `producer` the name that what is enqueued here is numbered
    under; both are made up when there are none.
    """

    def __init__(self, transport: HeapTransport, name: str, consumer: str = "", producer: str = "") -> None:
        self._transport = transport
        self._name = name
        self._consumer = consumer or f"{(host_name() or 'consumer')[:64]}-{token_hex(6)}"
        self._numbers = Numbers(producer)
        self._lease_ms: int | None = None

    def __repr__(self) -> str:
        return f"<Heap {self._name}>"

    @property
    def name(self) -> str:
        """The name, which is that of the topic it is."""
        return self._name

    @property
    def consumer(self) -> str:
        """Who has what is popped through this object."""
        return self._consumer

    # ---- the heap itself

    async def create(self, **config: Unpack[HeapFields]) -> HeapInfo:
        """Make the heap; `TopicExists` when there is a topic of that name.

            await jobs.create(mode="max", partitions=4, max_retries=5)

        In mode `min`, the default, the lowest priority is the best, in mode `max` the highest.
        """
        return await self._transport.make_heap(self._name, check_config(config))

    async def configure(self, **config: Unpack[HeapFields]) -> HeapInfo:
        """Change what is named of its config; `mode` and `partitions` are for ever."""
        return await self._transport.change_heap(self._name, check_config(config))

    async def info(self) -> HeapInfo:
        """Its config and its numbers."""
        return await self._transport.heap_info(self._name)

    async def stats(self) -> HeapStats:
        """Its numbers: what waits, is leased, delayed and dead, and what happened since it was made."""
        return (await self.info()).stats or HeapStats()

    async def purge(self, *, partition: int | None = None) -> Purged:
        """Delete all its messages, or those of one partition, leased ones included. There is no way back."""
        return await self._transport.purge_heap(self._name, partition)

    async def drop(self) -> None:
        """Delete it, with all its messages; dead letters stay in their topic. There is no way back."""
        await self._transport.drop_heap(self._name)

    # ---- messages in

    async def enqueue(
        self,
        payload: Any,
        *,
        priority: int = 0,
        key: str | None = None,
        partition: int | None = None,
        delay_ms: int = 0,
        max_retries: int | None = None,
        meta: Mapping[str, str] | None = None,
        sequence: int | None = None,
    ) -> Enqueued:
        """Enqueue one message; the answer comes when it is as safe as the heap's durability class says.

            await jobs.enqueue({"send": "welcome"}, priority=5)
            await jobs.enqueue(b"any bytes", delay_ms=60_000)

        Bytes are kept as they are, everything else is JSON. `key` chooses the partition, else it may be any. It is
        numbered, so that it is enqueued once even if it has to be sent again; `sequence` is a number of your own, for
        messages that this program may enqueue a second time. Do not mix the two under one producer.
        """
        message: MessageFields = {
            "payload": payload,
            "priority": priority,
            "key": key,
            "partition": partition,
            "delay_ms": delay_ms,
            "max_retries": max_retries,
            "meta": meta,
        }
        with spans.producing(self._name, 1) as span:
            number = self._numbers.next() if sequence is None else sequence
            made = self._new(message, span.meta, number, "")
            done = await self._transport.enqueue([(self._name, made)], "")
            span.done(done)
        return done.messages[0]

    async def enqueue_many(
        self, messages: Iterable[MessageFields], *, transaction_id: str | None = None
    ) -> EnqueuedBatch:
        """Enqueue several messages, all or none; where each is, in order.

            await jobs.enqueue_many([{"payload": {"n": n}, "priority": n} for n in range(100)])

        Repeated with the same `transaction_id` it is answered as the first time; one is made up when there is none.
        """
        given = list(messages)
        with spans.producing(self._name, len(given)) as span:
            made = [
                (self._name, self._new(message, span.meta, None, f"messages[{index}]."))
                for index, message in enumerate(given)
            ]
            done = await self._transport.enqueue(made, transaction_id or f"{self._numbers.producer_id}-{token_hex(8)}")
            span.done(done)
        return done

    def _new(self, message: MessageFields, trace: Mapping[str, str], number: int | None, field: str) -> NewMessage:
        unknown = sorted(message.keys() - MessageFields.__annotations__.keys())
        if unknown:
            expected = ", ".join(sorted(MessageFields.__annotations__))
            raise InvalidRequest(f"{field or 'a message'} has no field {unknown[0]}", field=field, expected=expected)
        payload = message.get("payload", b"")
        is_bytes = isinstance(payload, bytes | bytearray | memoryview)
        meta = {**trace, **(message.get("meta") or {})}
        return NewMessage(
            payload=bytes(payload) if is_bytes else jsontext.encode(payload, f"{field}payload"),
            is_json=not is_bytes,
            priority=message.get("priority", 0),
            partition_key=message.get("key"),
            partition=message.get("partition"),
            producer_id=None if number is None else self._numbers.producer_id,
            epoch=0 if number is None else self._numbers.epoch,
            sequence=number,
            max_retries=message.get("max_retries"),
            delay_ms=message.get("delay_ms", 0),
            meta=meta or None,
        )

    # ---- messages out

    async def pop(
        self, *, prefetch: int = 1, visibility_ms: int | None = None, partitions: Sequence[int] = ()
    ) -> AsyncIterator[Message]:
        """Messages as they come, best first and without end, at most `prefetch` of them not settled at a time.

            async for message in jobs.pop(prefetch=10):
                async with message:
                    print(message.data)

        Inside `async with message` its lease is extended as long as need be. At the end of the block it is acked; when
        the block raises, it is given back and comes again after a while. With `prefetch` above 1 what comes next is
        here already, and may not be the best any more. When the server goes away, it waits for it and goes on; one that
        was never there is `ConnectionFailed`.
        """
        request = self._request(prefetch, visibility_ms, partitions, "prefetch")
        transport = self._transport
        consumer = HeapConsumer(
            lambda: transport.stream(self._name, request), transport.may_pass, transport.outage(), prefetch
        )
        async with aclosing(consumer.messages()) as messages:
            async for message in messages:
                yield message

    async def take(
        self, max: int = 1, *, wait_ms: int = 0, visibility_ms: int | None = None, partitions: Sequence[int] = ()
    ) -> list[Message]:
        """Up to `max` messages, best first, leased for `visibility_ms`, or for as long as the heap says.

            for message in await jobs.take(10, wait_ms=5000):
                async with message:
                    print(message.data)

        With none there it waits up to `wait_ms`, at most half a minute.
        """
        request = replace(self._request(max, visibility_ms, partitions, "max"), max=max, wait_ms=wait_ms)
        lease_ms = visibility_ms or await self._own_lease_ms()
        popped = await self._transport.pop(self._name, request)
        hands = MessageHands(Calls(self._transport, self._name), self._transport.may_pass)
        return [Message(hands, HeldMessage(message, lease_ms)) for message in popped.messages]

    async def ack(self, tokens: Sequence[str]) -> AckedMessages:
        """Complete messages by their lease tokens, wherever they were popped."""
        return await self._transport.ack(self._name, [LeaseRef(token) for token in tokens])

    async def nack(self, tokens: Sequence[str], *, backoff_ms: int | None = None, reason: str = "") -> NackedMessages:
        """Give messages back by their lease tokens; they rest for `backoff_ms`, or longer with each attempt, or die."""
        request = NackRequest(leases=[LeaseRef(token) for token in tokens], backoff_ms=backoff_ms, reason=reason)
        return await self._transport.nack(self._name, request)

    async def extend(self, tokens: Sequence[str], ms: int) -> ExtendedLeases:
        """Keep messages for `ms` from now, by their lease tokens."""
        return await self._transport.extend(self._name, [LeaseRef(token) for token in tokens], ms)

    async def peek(
        self, limit: int = HEAP_PEEK_DEFAULT, *, partition: int | None = None, include_dlq: bool = False
    ) -> PeekedMessages:
        """Look at messages without taking them: ready ones best first, then the others."""
        return await self._transport.peek(self._name, partition=partition, limit=limit, include_dlq=include_dlq)

    def _request(self, most: int, visibility_ms: int | None, partitions: Sequence[int], field: str) -> PopRequest:
        if not isinstance(most, int) or isinstance(most, bool) or not 1 <= most <= CLAIM_MAX_DEFAULT:
            expected = f"a whole number from 1 to {CLAIM_MAX_DEFAULT}"
            raise InvalidRequest(f"{field} must be {expected}, not {most!r}", field=field, expected=expected)
        return PopRequest(consumer=self._consumer, visibility_ms=visibility_ms, partitions=tuple(partitions))

    async def _own_lease_ms(self) -> int:
        """How long the heap leases its messages, asked for once."""
        if self._lease_ms is None:
            self._lease_ms = (await self.info()).config.visibility_timeout_ms
        return self._lease_ms

    # ---- single messages

    async def reprioritize(self, message_id: str, priority: int) -> Reprioritized:
        """Give a message that nobody has another priority."""
        return await self._transport.reprioritize(self._name, message_id, priority)

    async def cancel(self, message_id: str) -> Cancelled:
        """Take back a message that nobody has."""
        return await self._transport.cancel(self._name, message_id)

    async def move_to_dlq(self, message_id: str, *, reason: str = "") -> MovedToDlq:
        """Give a message up: it goes to the dead letters."""
        return await self._transport.move_to_dlq(self._name, message_id, reason)

    # ---- dead letters

    async def dead_letters(self, *, reason: str | None = None) -> AsyncIterator[DeadMessage]:
        """Its dead letters, oldest first; those with a reason, or one that begins like it when it ends in `*`."""
        cursor = ""
        while True:
            chosen = DeadFilter(reason=reason)
            page = await self._transport.dead_letters(self._name, chosen, cursor=cursor, limit=DEAD_PAGE)
            for message in page.messages:
                yield message
            cursor = page.next_cursor
            if not cursor:
                return

    async def dead_letter(self, message_id: str) -> DeadMessage:
        """One dead letter, by the id it had as a message."""
        return await self._transport.dead_letter(self._name, message_id)

    async def replay(self, message_ids: Sequence[str] = (), *, reason: str | None = None, limit: int = 0) -> DeadStep:
        """Take dead letters back, with no attempt counted: those named, those with a reason, or all of them."""
        chosen = DeadFilter(message_ids=tuple(message_ids), reason=reason)
        return await self._transport.replay_dead(self._name, chosen, limit)

    async def delete_dead(
        self, message_ids: Sequence[str] = (), *, reason: str | None = None, limit: int = 0
    ) -> DeadStep:
        """Delete dead letters: those named, those with a reason, or all of them. There is no way back."""
        chosen = DeadFilter(message_ids=tuple(message_ids), reason=reason)
        return await self._transport.delete_dead(self._name, chosen, limit)
