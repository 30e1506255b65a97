"""Keeps the leases of jobs or messages that somebody works on: each is extended when a third of its time is over.

One task for all jobs of a worker, which sleeps until the next one is due and takes with it what is due soon, so that
many jobs are one call. What the server cannot extend is lost, and its job is told. A server that is away is asked
again: a lease counts until somebody else has got the job, so a late answer is as good as an early one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Generic, Protocol, TypeVar

from topics.errors import TopicsError
from topics.limits import SECOND_MS

PARTS: Final = 3
"""A lease is extended when one of so many parts of it is over: two tries may fail before it runs out."""
BATCH_MAX: Final = 1000
LOG: Final = logging.getLogger("topics.worker")


class Kept(Protocol):
    """What has a lease: a job of a queue, a message of a heap."""

    partition: int
    lease_ms: int
    expires_s: float
    """By the clock of the event loop."""

    @property
    def over(self) -> bool: ...

    def lose(self) -> None: ...

    def on_over(self, watcher: Callable[[], None]) -> None: ...


K = TypeVar("K", bound=Kept)


class Heartbeat(Generic[K]):
    """`extend` extends leases by so many milliseconds from now; each job is told what came of it."""

    def __init__(
        self, extend: Callable[[Sequence[K], int], Awaitable[None]], may_pass: Callable[[TopicsError], bool]
    ) -> None:
        self._extend = extend
        self._may_pass = may_pass
        self._due_s: dict[K, float] = {}
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._wakes_s = 0.0
        """When the task looks again by itself."""

    def keep(self, held: K) -> None:
        """Extend the lease of this job until it is let go of."""
        if held.over or held in self._due_s:
            return
        due_s = self._due_s[held] = held.expires_s - held.lease_ms / SECOND_MS * (PARTS - 1) / PARTS
        held.on_over(lambda: self.let_go(held))
        if self._task is None:
            self._task = asyncio.create_task(self._beat(), name="topics leases")
        elif due_s < self._wakes_s:
            self._news.set()

    def let_go(self, held: K) -> None:
        if self._due_s.pop(held, None) is not None and not self._due_s:
            self._news.set()

    def __contains__(self, held: K) -> bool:
        return held in self._due_s

    async def _beat(self) -> None:
        try:
            while self._due_s:
                self._news.clear()
                self._wakes_s = min(self._due_s.values())
                pause_s = self._wakes_s - asyncio.get_running_loop().time()
                if pause_s <= 0:
                    await self._extend_due()
                else:
                    await wait_up_to(self._news, pause_s)
        finally:
            self._task = None

    async def _extend_due(self) -> None:
        now_s = asyncio.get_running_loop().time()
        first = min(self._due_s, key=self._due_s.__getitem__)
        lease_ms, part_s = first.lease_ms, first.lease_ms / SECOND_MS / PARTS
        batch = [
            held
            for held, due_s in self._due_s.items()
            if due_s <= now_s + part_s / 2 and (held.lease_ms, held.partition) == (lease_ms, first.partition)
        ][:BATCH_MAX]
        try:
            await self._extend(batch, lease_ms)
        except TopicsError as error:
            if not self._may_pass(error):
                LOG.warning("the leases of %d jobs cannot be kept any more: %s", len(batch), error)
                for held in batch:
                    held.lose()
            part_s /= 2
        due_s = asyncio.get_running_loop().time() + part_s
        self._due_s |= {held: due_s for held in batch if held in self._due_s}


async def wait_up_to(event: asyncio.Event, seconds: float | None) -> bool:
    """Whether it was set in time. Unlike `asyncio.wait_for`, this never loses a cancellation that comes with it."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True
