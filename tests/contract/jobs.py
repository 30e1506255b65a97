"""Queues for the contract's tests."""

from __future__ import annotations

import topics
from topics import QueueState


async def counts(queue: topics.Queue) -> tuple[int, int, int]:
    """Jobs that are ready, in flight and delayed."""
    state = (await queue.state()).queue
    assert isinstance(state, QueueState)
    return state.ready, state.in_flight, state.delayed


async def filled(client: topics.Client, count: int, **config: int) -> topics.Queue:
    queue = client.queue("jobs")
    await queue.create(**config)
    if count:
        await queue.put_many({"data": number} for number in range(1, count + 1))
    return queue
