"""Enqueues messages, each once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Self

import topics
from disheap.durations import Seconds, milliseconds


class Producer:
    """Numbers what it enqueues, so that a message that has to be sent again is there once."""

    def __init__(self, client: topics.Client, producer_id: str = "") -> None:
        self._client = client
        self._producer_id = producer_id
        self._heaps: dict[str, topics.Heap] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Everything that was awaited is done."""

    async def enqueue(
        self,
        topic: str,
        payload: bytes,
        priority: int = 0,
        *,
        partition_key: str | None = None,
        max_retries: int | None = None,
        delay: Seconds = 0.0,
        sequence: int | None = None,
    ) -> topics.Enqueued:
        """Enqueue one message; nobody gets it before `delay` is over."""
        return await self._heap(topic).enqueue(
            payload,
            priority=priority,
            key=partition_key,
            max_retries=max_retries,
            delay_ms=milliseconds(delay),
            sequence=sequence,
        )

    async def enqueue_batch(
        self, topic: str, messages: Iterable[Mapping[str, Any]], transaction_id: str | None = None
    ) -> topics.EnqueuedBatch:
        """Enqueue several, all or none: mappings with `payload`, and if wanted the keywords of `enqueue`."""
        return await self._heap(topic).enqueue_many(map(_fields, messages), transaction_id=transaction_id)

    def _heap(self, topic: str) -> topics.Heap:
        found = self._heaps.get(topic)
        if found is None:
            found = self._heaps[topic] = self._client.heap(topic, producer=self._producer_id)
        return found


def _fields(message: Mapping[str, Any]) -> Any:
    """By our names; what neither knows is refused by name."""
    fields = dict(message)
    if "partition_key" in fields:
        fields["key"] = fields.pop("partition_key")
    if "delay" in fields:
        fields["delay_ms"] = milliseconds(fields.pop("delay"))
    return fields
