"""Producers: records handed over one by one, written in batches, each exactly once and in order.

    async with client.topic("orders").producer() as producer:
        for order in orders:
            await producer.send(order, tag=order["id"])

`send` returns as soon as the record is in the buffer, and waits while that is full. What it gives back can be awaited
for the record's seq. Leaving the block delivers everything; what could not be delivered, and nobody had looked at, is
raised there. How batches are made and repeated is in `lane.py`.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from topics import jsontext
from topics.client.delivery import Delivery
from topics.client.lane import Entry, Lane
from topics.client.payload import prepared
from topics.client.produceroptions import ProducerFields, ProducerOptions
from topics.client.room import Room
from topics.client.transport import Transport
from topics.clock import SystemClock
from topics.errors import InvalidRequest, ShuttingDown, TopicNotFound
from topics.producermodel import ONE_OFF_MARK
from topics.wire.routing import partition_of

UNSEEN_FAILURES_MAX: Final = 1000
"""Failed deliveries that are remembered for the next flush."""
ID_BYTES: Final = 16


class Producer:
    """Writes to any topic of a client, in batches, exactly once and in order within each partition."""

    def __init__(self, transport: Transport, on_closed: Callable[[Producer], None], options: ProducerFields) -> None:
        self._transport = transport
        self._on_closed = on_closed
        # Without a name nobody uses the id again after this process, so the server need not remember it for good.
        own_id = f"{ONE_OFF_MARK}{secrets.token_urlsafe(ID_BYTES)}"
        # The time is an epoch that grows from one life of a named producer to the next.
        named: dict[str, Any] = {"id": own_id, "epoch": SystemClock().now_ms(), **options}
        self._options = ProducerOptions(**named)
        self._room = Room(self._options.buffer_bytes_max)
        self._lanes: dict[tuple[str, int], Lane] = {}
        self._partition_counts: dict[str, int] = {}
        self._counting = asyncio.Lock()
        self._failed: list[Delivery] = []
        self._failed_count = 0
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def send(
        self,
        topic: str,
        data: Any,
        *,
        tag: str | None = None,
        node: str | None = None,
        meta: Mapping[str, str] | None = None,
        content_type: str | None = None,
        partition: int | None = None,
        key: str | None = None,
    ) -> Delivery:
        """Hand a record over. Returns when it is in the buffer; await what it returns to know where it went.

        `data` is any JSON value, or bytes. `key` picks the partition by hash, `partition` by number. Records of one
        partition arrive in the order of their sends.
        """
        record, size_bytes = _encoded(
            {"data": data, "tag": tag, "node": node, "meta": meta, "content_type": content_type}
        )
        if self._closed:
            raise ShuttingDown("the producer is closed")
        number = await self._partition(topic, partition, key)
        await self._room.take(size_bytes)
        if self._closed:
            self._room.give(size_bytes)
            raise ShuttingDown("the producer was closed while the record waited for room")
        delivery = Delivery()
        self._lane(topic, number).put(Entry(record, size_bytes, asyncio.get_running_loop().time(), delivery))
        return delivery

    async def flush(self) -> None:
        """Returns when all that was sent before is delivered; raises when something was not, and nobody has looked."""
        await asyncio.gather(*(lane.flush() for lane in list(self._lanes.values())))
        failed, self._failed = self._failed, []
        count, self._failed_count = self._failed_count, 0
        unseen = next((delivery.error for delivery in failed if not delivery.looked_at), None)
        if unseen is not None:
            unseen.add_note(f"{count} records of this producer were not delivered since its last flush")
            raise unseen

    async def close(self) -> None:
        """Deliver everything, and end. Leaving `async with` does it."""
        self._closed = True
        try:
            await self.flush()
        finally:
            self._on_closed(self)
            for lane in list(self._lanes.values()):
                await lane.stop()

    def _lane(self, topic: str, partition: int) -> Lane:
        lane = self._lanes.get((topic, partition))
        if lane is None:
            lane = Lane(self._transport, topic, partition, self._options, self._settled)
            self._lanes[topic, partition] = lane
        return lane

    def _settled(self, entry: Entry) -> None:
        self._room.give(entry.size_bytes)
        if entry.delivery.error is not None:
            self._failed_count += 1
            if len(self._failed) < UNSEEN_FAILURES_MAX:
                self._failed.append(entry.delivery)

    async def _partition(self, topic: str, partition: int | None, key: str | None) -> int:
        if key is None:
            return partition or 0
        if partition is not None:
            message = "partition and key both choose the partition: give one of them"
            raise InvalidRequest(message, field="key", expected="partition or key")
        async with self._counting:
            count = self._partition_counts.get(topic) or await self._partition_count(topic)
            self._partition_counts[topic] = count
        return partition_of(key, count)

    async def _partition_count(self, topic: str) -> int:
        try:
            return (await self._transport.state(topic, partition=0, touch=False)).partitions
        except TopicNotFound:
            # It is made with the first batch, as its config says.
            count = (self._options.config or {}).get("partitions", 1)
            return count if isinstance(count, int) and count > 0 else 1


class TopicProducer:
    """Writes to one topic in batches, exactly once and in order within each partition."""

    def __init__(self, producer: Producer, topic: str) -> None:
        self._producer = producer
        self._topic = topic

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def send(
        self,
        data: Any,
        *,
        tag: str | None = None,
        node: str | None = None,
        meta: Mapping[str, str] | None = None,
        content_type: str | None = None,
        partition: int | None = None,
        key: str | None = None,
    ) -> Delivery:
        """Hand a record over. Returns when it is in the buffer; await what it returns to know where it went.

        `data` is any JSON value, or bytes. `key` picks the partition by hash, `partition` by number. Records of one
        partition arrive in the order of their sends.
        """
        return await self._producer.send(
            self._topic,
            data,
            tag=tag,
            node=node,
            meta=meta,
            content_type=content_type,
            partition=partition,
            key=key,
        )

    async def flush(self) -> None:
        """Returns when all that was sent before is delivered; raises when something was not, and nobody has looked."""
        await self._producer.flush()

    async def close(self) -> None:
        """Deliver everything, and end. Leaving `async with` does it."""
        await self._producer.close()


def _encoded(fields: Mapping[str, Any]) -> tuple[Mapping[str, Any], int]:
    """A record with its data as text, and about how many bytes it takes; what is no JSON is refused here."""
    given: Any = [{name: value for name, value in fields.items() if value is not None or name == "data"}]
    record = dict(prepared(given)[0])
    text = jsontext.encode(record["data"], "data")
    rest = {name: value for name, value in record.items() if name != "data"}
    size_bytes = len(text) + len(jsontext.encode(rest, "record"))
    return {**rest, "data": msgspec.Raw(text)}, size_bytes
