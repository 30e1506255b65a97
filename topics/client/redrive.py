"""Taking dead letters back: bounded steps, one after the other, no faster than wanted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Final

from topics.client.jobtransport import RedriveRequest
from topics.client.transport import Transport
from topics.errors import InvalidRequest
from topics.limits import REDRIVE_RATE_MAX, REDRIVE_STEP
from topics.model import Redriven

STEPS_PER_SECOND: Final = 10
"""How evenly a rate is spread."""


async def redrive_steps(
    transport: Transport, topic: str, request: RedriveRequest, limit: int | None, rate_per_second: int | None
) -> AsyncIterator[Redriven]:
    """How far it is after each step, as sums from the beginning; the last one is done, or has reached the limit."""
    if limit is not None and limit < 1:
        raise InvalidRequest(f"limit must be 1 or more, not {limit}", field="limit", expected="1 or more")
    if rate_per_second is not None and not 1 <= rate_per_second <= REDRIVE_RATE_MAX:
        expected = f"a whole number from 1 to {REDRIVE_RATE_MAX}"
        message = f"rate_per_second must be {expected}, not {rate_per_second}"
        raise InvalidRequest(message, field="rate_per_second", expected=expected)
    loop = asyncio.get_running_loop()
    begun_s = loop.time()
    moved = skipped = scanned = 0
    head_seq: int | None = None
    step = REDRIVE_STEP if rate_per_second is None else min(REDRIVE_STEP, -(-rate_per_second // STEPS_PER_SECOND))
    while True:
        wanted = step if limit is None else min(step, limit - moved)
        told = await transport.redrive(topic, replace(request, limit=wanted))
        moved, skipped, scanned = moved + told.moved, skipped + told.skipped, scanned + told.scanned
        yield Redriven(
            topic=told.topic,
            partition=told.partition,
            moved=moved,
            skipped=skipped,
            scanned=scanned,
            next_from_seq=told.next_from_seq,
            head_seq=told.head_seq,
            done=told.done,
            dry_run=told.dry_run,
        )
        if told.done or (limit is not None and moved >= limit):
            return
        # What fails again meanwhile is left for another time.
        head_seq = told.head_seq if head_seq is None else head_seq
        before_seq = head_seq + 1 if request.before_seq is None else min(request.before_seq, head_seq + 1)
        request = replace(request, from_seq=told.next_from_seq, before_seq=before_seq)
        if rate_per_second is not None and not request.dry_run:
            await asyncio.sleep(max(0.0, begun_s + moved / rate_per_second - loop.time()))
