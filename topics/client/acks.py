"""Acks of many jobs in few calls: those that are asked for while one is under way go out together with the next."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from topics.client.held import Held
from topics.errors import TopicsError

BATCH_MAX: Final = 1000

Send = Callable[[Sequence[Held]], Awaitable[set[int]]]
"""Acks jobs of one partition; the seqs of those that were not the worker's."""


class Acks:
    def __init__(self, send: Send) -> None:
        self._send = send
        self._waiting: list[tuple[Held, asyncio.Future[bool]]] = []
        self._task: asyncio.Task[None] | None = None

    async def ack(self, held: Held) -> bool:
        """Whether it was this worker's to complete."""
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append((held, future))
        if self._task is None:
            self._task = asyncio.create_task(self._send_all(), name="topics acks")
        return await future

    async def _send_all(self) -> None:
        batch: list[tuple[Held, asyncio.Future[bool]]] = []
        try:
            while self._waiting:
                partition = self._waiting[0][0].partition
                batch = [each for each in self._waiting if each[0].partition == partition][:BATCH_MAX]
                taken = set(map(id, batch))
                self._waiting = [each for each in self._waiting if id(each) not in taken]
                await self._send_batch(batch)
        finally:
            # Cancelled, as happens when the loop ends: nobody may be left waiting.
            for _, future in (*batch, *self._waiting):
                future.cancel()
            self._waiting = []
            self._task = None

    async def _send_batch(self, batch: list[tuple[Held, asyncio.Future[bool]]]) -> None:
        try:
            skipped = await self._send([held for held, _ in batch])
        except TopicsError as error:
            for _, future in batch:
                if not future.done():
                    future.set_exception(error)
            return
        for held, future in batch:
            if not future.done():
                future.set_result(held.seq not in skipped)
