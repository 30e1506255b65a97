"""Claims from all partitions of a queue: from each in turn, and while none has anything, waiting at all of them.

What waits asks for one job each, so that a worker is handed at most one more from each partition than it has room for
when several have news at the same moment.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from topics.client.held import Held

ClaimFrom = Callable[[int, int, int], Coroutine[Any, Any, list[Held]]]
"""So many jobs at most, waiting so many milliseconds for the first, from this partition."""


class Rotation:
    def __init__(self, claim: ClaimFrom, partition_count: int) -> None:
        self._claim = claim
        self._partition_count = partition_count
        self._next = 0

    async def claim(self, most: int, wait_ms: int) -> list[Held]:
        if self._partition_count == 1:
            return await self._claim(most, wait_ms, 0)
        for _ in range(self._partition_count):
            partition = self._next
            self._next = (partition + 1) % self._partition_count
            if found := await self._claim(most, 0, partition):
                return found
        return await self._wait(wait_ms) if wait_ms else []

    async def _wait(self, wait_ms: int) -> list[Held]:
        waiting = [
            asyncio.create_task(self._claim(1, wait_ms, partition)) for partition in range(self._partition_count)
        ]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()
            results = await asyncio.gather(*waiting, return_exceptions=True)
        found = [held for result in results if isinstance(result, list) for held in result]
        errors = [error for error in results if isinstance(error, Exception)]
        if errors and not found:
            raise errors[0]
        return found
