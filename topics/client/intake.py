"""Jobs for one worker, as many at a time as it can take.

The worker takes the next job when it has room for one. What is claimed beyond that, up to the worker's room, waits here
with its lease kept. A job leaves room for another one when it is settled or lost, or when its lease has run out without
anybody keeping it. A server that is away is waited for, once it was there.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Final

from topics.client.backoff import Backoff
from topics.client.heartbeat import Heartbeat, wait_up_to
from topics.client.held import Held
from topics.errors import TopicsError
from topics.limits import CLAIM_WAIT_MS_MAX

Claim = Callable[[int, int], Coroutine[Any, Any, list[Held]]]
"""So many jobs at most, waiting so many milliseconds for the first."""
Release = Callable[[Sequence[Held]], Awaitable[None]]

LOG: Final = logging.getLogger("topics.worker")
WAIT_MS: Final = CLAIM_WAIT_MS_MAX


class Intake:
    def __init__(
        self,
        claim: Claim,
        release: Release,
        heartbeat: Heartbeat[Held],
        may_pass: Callable[[TopicsError], bool],
        concurrency: int,
        until_empty: bool,
    ) -> None:
        self._claim = claim
        self._release = release
        self._heartbeat = heartbeat
        self._may_pass = may_pass
        self._concurrency = concurrency
        self._until_empty = until_empty
        self._here: deque[Held] = deque()
        """Claimed, and not asked for yet."""
        self._out: set[Held] = set()
        self._room = asyncio.Event()
        self._claiming: asyncio.Task[list[Held]] | None = None
        self._stopped = False

    def stop(self) -> None:
        """No more jobs: whoever waits for one is told so at once."""
        self._stopped = True
        self._room.set()
        if self._claiming is not None:
            self._claiming.cancel()

    async def next(self) -> Held | None:
        """The next job; None when there will be no more."""
        while not self._stopped:
            self._forget_expired()
            room = self._concurrency - len(self._out)
            if room <= 0:
                await self._wait_for_room()
                continue
            if self._here:
                held = self._here.popleft()
                self._heartbeat.let_go(held)
                if not held.lost:
                    self._out.add(held)
                    held.on_over(partial(self._back, held))
                    return held
                continue
            if await self._claim_some(room):
                continue
            if self._until_empty:
                if not self._out:
                    return None
                await self._wait_for_room()
        return None

    async def close(self) -> None:
        """Give back what was claimed and not asked for."""
        self.stop()
        here, self._here = [held for held in self._here if not held.lost], deque()
        for held in here:
            self._heartbeat.let_go(held)
        if not here:
            return
        try:
            await self._release(here)
        except TopicsError as error:
            # Nobody can be told just now: they come back when their leases run out.
            if not self._may_pass(error):
                raise

    def _back(self, held: Held) -> None:
        self._out.discard(held)
        self._room.set()

    def _forget_expired(self) -> None:
        now_s = asyncio.get_running_loop().time()
        self._out -= {held for held in self._out if held.expires_s <= now_s and held not in self._heartbeat}

    async def _wait_for_room(self) -> None:
        """Until a job ends, or the lease of one that nobody keeps does."""
        self._room.clear()
        ends = [held.expires_s for held in self._out if held not in self._heartbeat]
        pause_s = max(0.0, min(ends) - asyncio.get_running_loop().time()) if ends else None
        await wait_up_to(self._room, pause_s)

    async def _claim_some(self, room: int) -> bool:
        """Whether there was anything."""
        backoff = Backoff()
        away = False
        while not self._stopped:
            self._claiming = asyncio.create_task(self._claim(room, 0 if self._until_empty else WAIT_MS))
            try:
                claimed = await self._claiming
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if self._stopped and task is not None and not task.cancelling():
                    return False
                raise
            except TopicsError as error:
                if not self._may_pass(error):
                    raise
                if not away:
                    away = True
                    LOG.warning("no jobs can be claimed, trying again: %s", error)
                await self._pause(backoff.next_s())
                continue
            finally:
                self._claiming = None
            if away:
                LOG.warning("jobs can be claimed again")
            for held in claimed:
                self._heartbeat.keep(held)
            self._here.extend(claimed)
            return bool(claimed)
        return False

    async def _pause(self, seconds: float) -> None:
        """Wait before the next try; a stop ends it."""
        self._room.clear()
        while not self._stopped and await wait_up_to(self._room, seconds):
            self._room.clear()
