"""Topics with all of their partitions, each asked for by itself. Somebody may drop a topic between two of them."""

from __future__ import annotations

from collections.abc import AsyncIterator

from topics.client import Client, Queue, Topic
from topics.errors import InvalidRequest, TopicNotFound
from topics.model import TopicState, TopicType


async def partitions_of(topic: Topic | Queue, first: TopicState) -> list[TopicState]:
    """All partitions of one, of which the first is known."""
    others = [await topic.state(partition=number, touch=False) for number in range(1, first.partitions)]
    return [first, *others]


async def every_topic(
    client: Client, prefix: str = "", only: TopicType | None = None
) -> AsyncIterator[list[TopicState]]:
    """The partitions of each topic, in order of the names, or of those of one type. What is gone is left out."""
    async for first in client.topics(prefix):
        if only is None or first.type is only:
            states = await _now(client.topic(first.topic), first)
            if states and only in (None, states[0].type):
                yield states


async def _now(topic: Topic, first: TopicState) -> list[TopicState]:
    """The partitions of a topic that was there a moment ago; none when it is not any more."""
    try:
        try:
            return await partitions_of(topic, first)
        except InvalidRequest:
            again = await topic.state(touch=False)
            if again.partitions >= first.partitions:
                raise
            # Dropped, and made again with fewer of them.
            return await _now(topic, again)
    except TopicNotFound:
        return []
