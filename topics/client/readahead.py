"""A stream ahead of its reader: what a fast source gives waits, up to a bound, for a slow reader.

A task takes from the source and puts into a bounded queue; while that is full the source is not asked for more. An
error of the source comes behind what came before it. `aclose` ends both.

This is an object and not an async generator, as is the source: a loop that ends closes all generators at once, and one
that is about to close another gets in the way of that.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Generic, Self, TypeVar

from topics.client.transport import Stream

T = TypeVar("T")


class _Ended:
    """What the task puts into the queue last."""

    def __init__(self, error: Exception) -> None:
        self.error = error


class ReadAhead(Generic[T]):
    def __init__(self, ahead_max: int, source: Stream[T]) -> None:
        """`ahead_max` is how many items wait for their reader at most. Nothing begins before the first is asked for."""
        self._queue: asyncio.Queue[T | _Ended] = asyncio.Queue(ahead_max)
        self._source = source
        self._pump: asyncio.Task[None] | None = None
        self._end: Exception | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        if self._end is not None:
            raise self._end
        if self._pump is None:
            self._pump = asyncio.create_task(self._take_all())
        item = await self._queue.get()
        if isinstance(item, _Ended):
            self._end = item.error
            raise item.error
        return item

    async def aclose(self) -> None:
        """End the source; returns when it has."""
        self._end = StopAsyncIteration()
        if self._pump is not None:
            self._pump.cancel()
            await asyncio.gather(self._pump, return_exceptions=True)

    async def _take_all(self) -> None:
        end: Exception = StopAsyncIteration()
        try:
            async with aclosing(self._source):
                async for item in self._source:
                    await self._queue.put(item)
        except Exception as error:
            end = error
        await self._queue.put(_Ended(end))
