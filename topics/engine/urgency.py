"""The line of feeds that have news, the most urgent first.

Urgency is the effective priority of a feed's topic (`core/priority.py`), with the time that the feed has waited for a
batch. It is computed when the feed joins the line and again by `age`, not at each look, so the line is a list for each
value that occurs and a heap of these values. Feeds of equal urgency keep the order in which they joined.

A feed that has waited for as long as age counts comes before all others: age is worth less than the whole range of
priorities, so age alone would let the lowest starve.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final

from topics.core import priority

if TYPE_CHECKING:
    from topics.engine.feed import Feed

OVERDUE: Final = -(1 << 20)
"""Before every priority: a lower value is served sooner."""


class UrgencyLine:
    def __init__(self) -> None:
        self._feeds: dict[int, deque[Feed]] = {}
        self.values: list[int] = []
        """The urgencies that occur, as a heap; empty when nothing is in line."""

    def __iter__(self) -> Iterator[Feed]:
        return (feed for feeds in self._feeds.values() for feed in feeds)

    def join(self, feeds: Sequence[Feed], now_ms: int) -> None:
        lines = self._feeds
        known: dict[int, int] = {}
        for feed in feeds:
            topic = feed.topic
            config = topic.config
            if config.priority is None and config.auto_priority and topic.last_read_ts and feed.waiting_ms == now_ms:
                # Many topics that come at once were read at the same time.
                value = known.get(topic.last_read_ts, 1)
                if value > 0:
                    value = known[topic.last_read_ts] = urgency(feed, now_ms)
            else:
                value = urgency(feed, now_ms)
            line = lines.get(value)
            if line is None:
                line = lines[value] = deque()
                heappush(self.values, value)
            line.append(feed)

    def pop(self) -> Feed:
        """The most urgent feed; there is one."""
        value = self.values[0]
        line = self._feeds[value]
        feed = line.popleft()
        if not line:
            del self._feeds[value]
            heappop(self.values)
        return feed

    def age(self, now_ms: int) -> None:
        """Compute each urgency again."""
        feeds = [feed for value in sorted(self._feeds) for feed in self._feeds[value]]
        self._feeds.clear()
        self.values.clear()
        self.join(feeds, now_ms)


def urgency(feed: Feed, now_ms: int) -> int:
    """The lower, the sooner a feed is served."""
    topic = feed.topic
    config = topic.config
    waited_ms = now_ms - feed.waiting_ms
    if waited_ms >= priority.AGE_CAP_MS:
        return OVERDUE
    since_ms = feed.waiting_ms if waited_ms else None
    return -priority.effective(config.priority, config.auto_priority, now_ms, topic.last_read_ts, since_ms)
