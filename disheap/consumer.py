"""Takes messages of one heap, best first."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self

import topics
from disheap.durations import Seconds, optional_ms
from disheap.errors import DisheapError
from disheap.message import Message


class Consumer:
    """Has one stream, on which credits are refilled as messages are settled."""

    def __init__(
        self,
        heap: topics.Heap,
        prefetch: int,
        visibility: Seconds | None,
        partition_ids: Sequence[int],
    ) -> None:
        self._heap = heap
        self._prefetch = prefetch
        self._visibility_ms = optional_ms(visibility)
        self._partition_ids = partition_ids
        self._messages: AsyncIterator[topics.Message] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """What was delivered and not settled goes back at once, and no attempt counts."""
        messages, self._messages = self._messages, None
        if messages is not None:
            close = getattr(messages, "aclose", None)
            assert close is not None, "a generator"
            await close()

    async def pop_stream(self) -> AsyncIterator[Message]:
        """Messages as they come, without end."""
        while True:
            yield await self.next()

    async def next(self) -> Message:
        """The next message; waits for it. After an error the next call begins anew."""
        if self._messages is None:
            self._messages = self._heap.pop(
                prefetch=self._prefetch, visibility_ms=self._visibility_ms, partitions=self._partition_ids
            )
        try:
            return Message(await anext(self._messages))
        except DisheapError:
            self._messages = None
            raise

    @asynccontextmanager
    async def item(self) -> AsyncIterator[Message]:
        """The next message, for the length of a block: kept meanwhile, acked at its end, given back if it raises."""
        async with await self.next() as message:
            yield message
