"""Acks of many messages in few calls: those that are asked for while one is under way go out together with the next."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from topics.client.parts import in_parts
from topics.errors import TopicsError
from topics.heapmodel import AckedMessages, LeaseRef

BATCH_MAX: Final = 1000


class MessageAcks:
    def __init__(self, send: Callable[[Sequence[LeaseRef]], Awaitable[AckedMessages]]) -> None:
        self._send = send
        self._waiting: list[tuple[LeaseRef, asyncio.Future[bool]]] = []
        self._task: asyncio.Task[None] | None = None

    async def ack(self, lease: LeaseRef) -> bool:
        """Whether the lease was still there."""
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append((lease, future))
        if self._task is None:
            self._task = asyncio.create_task(self._send_all(), name="topics acks")
        return await future

    async def _send_all(self) -> None:
        batch: list[tuple[LeaseRef, asyncio.Future[bool]]] = []
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:BATCH_MAX], self._waiting[BATCH_MAX:]
                await self._send_batch(batch)
        finally:
            # Cancelled, as happens when the loop ends: nobody may be left waiting.
            for _, future in (*batch, *self._waiting):
                future.cancel()
            self._waiting = []
            self._task = None

    async def _send_batch(self, batch: list[tuple[LeaseRef, asyncio.Future[bool]]]) -> None:
        try:
            await in_parts(batch, self._send_part)
        except TopicsError as error:
            for _, future in batch:
                if not future.done():
                    future.set_exception(error)

    async def _send_part(self, part: Sequence[tuple[LeaseRef, asyncio.Future[bool]]]) -> None:
        done = await self._send([lease for lease, _ in part])
        lost = {lease.place for lease in done.lost}
        for place, (_, future) in enumerate(part):
            if not future.done():
                future.set_result(place not in lost)
