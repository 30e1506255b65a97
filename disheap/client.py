"""A client of one or more servers, over gRPC."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from types import TracebackType
from typing import Self

import topics
from disheap.consumer import Consumer
from disheap.durations import Seconds, milliseconds
from disheap.message import Message
from disheap.producer import Producer
from topics.client.heap import HeapFields

ENDPOINT = "localhost:4001"


class DisheapClient:
    """Use it in `async with`. A call that one endpoint does not answer goes to the next."""

    def __init__(
        self,
        endpoints: str | Sequence[str] = ENDPOINT,
        api_key: str | None = None,
        tls: bytes | bool | None = None,
        *,
        timeout: Seconds = 30.0,
    ) -> None:
        """`tls` are the certificates (PEM) that the servers' are signed by, or true for those of the system."""
        given = endpoints.split(",") if isinstance(endpoints, str) else list(endpoints)
        if tls is True:
            given = [f"grpcs://{endpoint.strip()}" for endpoint in given]
        self._client = topics.connect(
            key=api_key,
            grpc=given,
            grpc_ca=tls if isinstance(tls, bytes) else None,
            timeout_ms=milliseconds(timeout),
        )

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._client.close()

    # ---- messages

    def producer(self, producer_id: str = "") -> Producer:
        """Enqueues messages, each once. With a `producer_id` an earlier run of the same one is fenced off."""
        return Producer(self._client, producer_id)

    def consumer(
        self,
        topic: str,
        prefetch: int = 1,
        visibility: Seconds | None = None,
        partition_ids: Sequence[int] = (),
    ) -> Consumer:
        """Takes messages of one heap, at most `prefetch` of them not settled at a time."""
        return Consumer(self._client.heap(topic), prefetch, visibility, partition_ids)

    async def pop_stream(
        self, topic: str, prefetch: int = 1, visibility: Seconds | None = None
    ) -> AsyncIterator[Message]:
        """Messages of a heap as they come, without end."""
        async with self.consumer(topic, prefetch, visibility) as consumer:
            async for message in consumer.pop_stream():
                yield message

    # ---- heaps

    async def make_heap(
        self,
        topic: str,
        mode: str = "MIN",
        partitions: int = 1,
        replication_factor: int = 2,
        top_k_bound: int = 100,
        *,
        retention_time: Seconds | None = None,
        visibility_timeout: Seconds = 300.0,
        max_retries: int = 3,
        max_payload_bytes: int | None = None,
        dlq_enabled: bool = True,
    ) -> topics.HeapInfo:
        fields: HeapFields = {
            "mode": mode.lower(),
            "partitions": partitions,
            "replication_factor": replication_factor,
            "top_k_bound": top_k_bound,
            "lease_ms": milliseconds(visibility_timeout),
            "max_retries": max_retries,
        }
        if retention_time is not None:
            fields["retention_ms"] = milliseconds(retention_time)
        if max_payload_bytes is not None:
            fields["max_payload_bytes"] = max_payload_bytes
        if not dlq_enabled:
            fields["dead_letter"] = None
        return await self._client.heap(topic).create(**fields)

    async def delete_heap(self, topic: str) -> None:
        await self._client.heap(topic).drop()

    async def list_heaps(self) -> list[topics.HeapInfo]:
        return [info async for info in self._client.heaps()]

    async def stats(self, topic: str) -> topics.HeapStats:
        return await self._client.heap(topic).stats()

    async def purge(self, topic: str, partition_id: int | None = None) -> topics.Purged:
        return await self._client.heap(topic).purge(partition=partition_id)

    async def peek(
        self, topic: str, limit: int = 10, partition_id: int | None = None, include_dlq: bool = False
    ) -> topics.PeekedMessages:
        return await self._client.heap(topic).peek(limit, partition=partition_id, include_dlq=include_dlq)

    async def move_to_dlq(self, topic: str, message_id: str, reason: str = "") -> topics.MovedToDlq:
        return await self._client.heap(topic).move_to_dlq(message_id, reason=reason)

    # ---- dead letters

    async def dead_letters(self, topic: str) -> list[topics.DeadMessage]:
        return [message async for message in self._client.heap(topic).dead_letters()]

    async def replay(self, topic: str, message_ids: Sequence[str] = ()) -> topics.DeadStep:
        return await self._client.heap(topic).replay(message_ids)
