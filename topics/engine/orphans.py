"""Streams of jobs whose queue was deleted, for as long as it takes to see what becomes of its name.

Whoever deletes a queue often makes a topic of that name right away. A worker is to know the difference between a queue
that is gone and a topic that is no queue any more, so its stream ends when a topic of that name is made, or after a
while in any case.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from topics.engine.line import Stream
from topics.errors import NotAQueue, TopicNotFound, TopicsError
from topics.model import TopicType

GRACE_MS: Final = 500


class Orphans:
    def __init__(self) -> None:
        self._streams: dict[str, tuple[int, list[Stream]]] = {}
        """By the name of the queue: until when they wait, and who; those that wait longest first."""

    def add(self, topic: str, streams: Iterable[Stream], now_ms: int) -> None:
        left = [stream for stream in streams if stream.is_open]
        if left:
            _, before = self._streams.pop(topic, (0, []))
            self._streams[topic] = now_ms + GRACE_MS, before + left

    def made(self, topic: str, kind: TopicType) -> None:
        """There is a topic of that name again."""
        _, streams = self._streams.pop(topic, (0, []))
        if kind is TopicType.QUEUE:
            _end(streams, TopicNotFound(f'queue "{topic}" was deleted, and there is a new one', topic=topic))
        else:
            message = f'topic "{topic}" was made anew as a {kind.value}, which has no jobs'
            _end(streams, NotAQueue(message, topic=topic, type=kind.value))

    def tick(self, now_ms: int) -> None:
        for topic, (until_ms, streams) in list(self._streams.items()):
            if until_ms > now_ms:
                return
            del self._streams[topic]
            _end(streams, TopicNotFound(f'topic "{topic}" was deleted', topic=topic))

    def next_deadline_ms(self) -> int | None:
        return next((until_ms for until_ms, _ in self._streams.values()), None)


def _end(streams: Iterable[Stream], error: TopicsError) -> None:
    for stream in streams:
        stream.end(error)
