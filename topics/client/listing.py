"""The topics of an engine by name, one page after the other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from topics.client.transport import Transport
from topics.model import TopicState

TOPICS_PAGE: Final = 100
"""Topics asked for at once."""


async def every_topic(transport: Transport, prefix: str) -> AsyncIterator[TopicState]:
    """The topics whose names begin with `prefix`, as they are now: the state of each one's partition 0."""
    after = ""
    while True:
        found = await transport.topics(prefix=prefix, after=after, limit=TOPICS_PAGE)
        for state in found:
            yield state
        if len(found) < TOPICS_PAGE:
            return
        after = found[-1].topic
