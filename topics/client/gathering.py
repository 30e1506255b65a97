"""Several streams as one, and ahead of their reader: what a fast source gives waits, up to a bound, for a slow reader.

Each source has a task that takes from it and puts into one bounded queue. While the queue is full no source is asked
for more. The first error of a source ends the whole stream; so does the end of all sources. `aclose` ends all.

This is an object and not an async generator, as are the sources: a loop that ends closes all generators at once, and
one that is about to close another gets in the way of that.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Generic, Self, TypeVar

from topics.client.transport import Stream

T = TypeVar("T")


class _Ended:
    """What a task puts into the queue last."""

    def __init__(self, error: Exception | None) -> None:
        self.error = error


class Gathering(Generic[T]):
    def __init__(self, ahead_max: int, *sources: Stream[T]) -> None:
        """`ahead_max` is how many items wait for their reader at most. Nothing begins before the first is asked for."""
        self._queue: asyncio.Queue[T | _Ended] = asyncio.Queue(ahead_max)
        self._sources = list(sources)
        self._pumps: set[asyncio.Task[None]] = set()
        self._live_count = 0

    def add(self, source: Stream[T]) -> None:
        """Take from another source, from now on."""
        self._live_count += 1
        self._pumps.add(asyncio.create_task(self._pump(source)))

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        while self._sources:
            self.add(self._sources.pop(0))
        while self._live_count:
            item = await self._queue.get()
            if not isinstance(item, _Ended):
                return item
            self._live_count -= 1
            if item.error is not None:
                raise item.error
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """End all sources; returns when they have."""
        pumps, self._pumps = self._pumps, set()
        self._live_count = 0
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)

    async def _pump(self, source: Stream[T]) -> None:
        error: Exception | None = None
        try:
            async with aclosing(source):
                async for item in source:
                    await self._queue.put(item)
        except Exception as failure:
            error = failure
        await self._queue.put(_Ended(error))
