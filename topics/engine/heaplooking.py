"""Looking at heaps: messages in order, numbers, dead letters. Nothing here changes what anybody gets."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Final

from topics.core import heapletters, heappriorities, heapview
from topics.core.heapplace import find_part, find_topic, parse_id
from topics.core.heappriorities import Waiting
from topics.core.machine import Machine
from topics.core.registry import Topic
from topics.errors import MessageNotFound, TopicsError
from topics.heapmodel import (
    EVERY_LETTER,
    DeadFilter,
    DeadMessage,
    DeadPage,
    HeapInfo,
    HeapStats,
    PeekedMessages,
)
from topics.limits import HEAP_PEEK_DEFAULT, REDRIVE_SCANNED_MAX
from topics.model import TopicType

LETTERS_LOOKED_AT_MAX: Final = 16 * REDRIVE_SCANNED_MAX
"""Dead letters among which one is looked for by its id."""


class HeapLooking:
    def __init__(
        self, machine: Machine, stopped: Callable[[int], TopicsError | None], now_ms: Callable[[], int]
    ) -> None:
        """`stopped` says why a log takes no facts any more, if it does not."""
        self._machine = machine
        self._stopped = stopped
        self._now_ms = now_ms

    def peek(
        self, topic: str, partition: int | None = None, limit: int = HEAP_PEEK_DEFAULT, include_dlq: bool = False
    ) -> PeekedMessages:
        return heapview.peek(self._machine, topic, partition, limit, include_dlq, self._now_ms())

    def info(self, topic: str) -> HeapInfo:
        found = find_topic(self._machine, topic)
        return heapview.info(found, self._stats(found, None))

    def list(self, prefix: str = "", after: str = "", limit: int = 100) -> builtins.list[HeapInfo]:
        """Heaps in order of their names, behind `after`."""
        found: builtins.list[HeapInfo] = []
        while len(found) < limit:
            page = self._machine.topics.page(after, prefix, limit)
            if not page:
                break
            heaps = [topic for topic in page if topic.config.type is TopicType.HEAP]
            found += [heapview.info(topic, self._stats(topic, None)) for topic in heaps[: limit - len(found)]]
            after = page[-1].name
        return found

    def stats(self, topic: str, partition: int | None = None) -> HeapStats:
        return self._stats(find_topic(self._machine, topic), partition)

    def totals(self) -> HeapStats:
        """All heaps together, without their partitions."""
        heaps = [topic for topic in self._machine.topics if topic.config.type is TopicType.HEAP]
        return heapview.together([self._stats(topic, None) for topic in heaps])

    def _stats(self, topic: Topic, partition: int | None) -> HeapStats:
        stopped = frozenset(at for at, log_id in enumerate(topic.log_ids()) if self._stopped(log_id) is not None)
        return heapview.stats(self._machine, topic, partition, stopped, self._now_ms())

    def waiting(self, topic: str, partition: int) -> Waiting:
        """How the priorities of what waits in a partition are spread."""
        found = find_topic(self._machine, topic)
        self._machine.check_partition(found.name, found.config, partition)
        return heappriorities.waiting(find_part(self._machine, found, partition, self._now_ms()))

    def dead_letters(
        self, topic: str, chosen: DeadFilter = EVERY_LETTER, cursor: str = "", limit: int = HEAP_PEEK_DEFAULT
    ) -> DeadPage:
        return heapletters.page(self._machine, topic, chosen, cursor, limit, self._now_ms())

    def dead_letter(self, topic: str, message_id: str) -> DeadMessage:
        """The dead letter of a message, by the id it had in its heap."""
        parse_id(message_id)
        cursor = ""
        for _ in range(LETTERS_LOOKED_AT_MAX // REDRIVE_SCANNED_MAX):
            page = self.dead_letters(topic, DeadFilter(message_ids=(message_id,)), cursor, 1)
            if page.messages:
                return page.messages[0]
            cursor = page.next_cursor
            if not cursor:
                break
        raise MessageNotFound(
            f'no dead letter of topic "{topic}" was message {message_id}', topic=topic, message_id=message_id
        )
