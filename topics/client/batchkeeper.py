"""Keeps a batch of a group for whoever works on it: its claim is extended when a third of its time is over.

A server that is away is asked again: a claim counts until somebody else has got the records, so a late answer is as
good as an early one. When there is nothing left to keep, because the batch was acked, given back or handed on, it ends.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final, Protocol

from topics.errors import TopicsError
from topics.groupmodel import ExtendedGroup, GroupBatch
from topics.limits import SECOND_MS

PARTS: Final = 3
"""A claim is extended when one of so many parts of it is over: two tries may fail before it runs out."""
LOG: Final = logging.getLogger("topics.group")


class Extend(Protocol):
    async def __call__(self, batch: GroupBatch, *, visibility_ms: int) -> ExtendedGroup: ...


@asynccontextmanager
async def kept(
    batch: GroupBatch | None, extend: Extend, may_pass: Callable[[TopicsError], bool]
) -> AsyncIterator[None]:
    """Within this block the batch stays its consumer's; None keeps nothing."""
    if batch is None:
        yield
        return
    task = asyncio.create_task(_keep(batch, extend, may_pass), name="topics claim")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _keep(batch: GroupBatch, extend: Extend, may_pass: Callable[[TopicsError], bool]) -> None:
    part_s = batch.visibility_ms / SECOND_MS / PARTS
    pause_s = part_s
    while True:
        await asyncio.sleep(pause_s)
        try:
            answer = await extend(batch, visibility_ms=batch.visibility_ms)
        except TopicsError as error:
            if not may_pass(error):
                LOG.warning("records %d to %d cannot be kept: %s", batch.first_seq, batch.last_seq, error)
                return
            pause_s = part_s / 2
            continue
        if not answer.deadline:
            return
        pause_s = part_s
