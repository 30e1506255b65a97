"""Going over all dead letters that are meant, in bounded steps, so that others get their turn in between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec

from topics.core.heapcommands import DeleteDead, ReplayDead
from topics.engine.host import Host
from topics.heapmodel import DeadFilter, DeadStep

STEP_MAX: Final = 256


async def dead_steps(host: Host, step: Callable[[str, int], ReplayDead | DeleteDead], limit: int = 0) -> DeadStep:
    """Step after step until there are no more, or `limit` are done; 0 is all of them. What was done together."""
    done_count = skipped_count = 0
    cursor = ""
    while True:
        most = min(STEP_MAX, limit - done_count) if limit else STEP_MAX
        done = await host.submit_patiently(step(cursor, most))
        assert isinstance(done, DeadStep)
        done_count += done.done_count
        skipped_count += done.skipped_count
        cursor = done.next_cursor
        if not cursor or (limit and done_count >= limit):
            return msgspec.structs.replace(done, done_count=done_count, skipped_count=skipped_count)


async def count_letters(host: Host, topic: str, chosen: DeadFilter, limit: int = 0) -> int:
    """How many are meant, up to `limit`; 0 is all of them."""
    count = 0
    cursor = ""
    while True:
        page = host.engine.heaps.dead_letters(topic, chosen, cursor, STEP_MAX)
        count += len(page.messages)
        cursor = page.next_cursor
        if not cursor or (limit and count >= limit):
            return min(count, limit) if limit else count
        await asyncio.sleep(0)
