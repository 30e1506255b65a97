"""How long heaps take: an enqueue until it is answered, a pop until it has what was there when it asked.

Of each heap, the first call and then one in `SAMPLE` is timed. A pop counts only when there was something to pop:
waiting for others to enqueue is no latency. Topics are bounded; those that come when there are too many are not timed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from topics.clock import Clock
from topics.storage.walmetrics import Histogram

SAMPLE: Final = 16
TOPICS_MAX: Final = 1000
BOUNDS_US: Final = tuple(ms * 1000 for ms in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000))
NS_PER_US: Final = 1000
US_PER_MS: Final = 1000


class _Timed:
    """The calls of one kind for one heap."""

    __slots__ = ("calls", "took_us")

    def __init__(self) -> None:
        self.calls = 1
        self.took_us = Histogram.of(BOUNDS_US)


class HeapLatency:
    def __init__(self, clock: Clock) -> None:
        self._ticks_ns = clock.ticks_ns
        self._enqueues: dict[str, _Timed] = {}
        self._pops: dict[str, _Timed] = {}

    def begin(self, topic: str) -> int:
        """When a call began that is to be timed; 0 for most of them."""
        return self._ticks_ns() if self._is_timed(self._enqueues, topic) else 0

    def begin_pop(self, topic: str, ready_count: Callable[[], int]) -> int:
        """The same for a pop, if there is something to pop."""
        return self._ticks_ns() if self._is_timed(self._pops, topic) and ready_count() else 0

    def enqueued(self, topic: str, began_ns: int) -> None:
        self._add(self._enqueues, topic, began_ns)

    def popped(self, topic: str, began_ns: int) -> None:
        self._add(self._pops, topic, began_ns)

    def enqueue_ms(self) -> Iterator[tuple[str, Histogram]]:
        return map(_in_ms, self._enqueues.items())

    def pop_ms(self) -> Iterator[tuple[str, Histogram]]:
        return map(_in_ms, self._pops.items())

    def _is_timed(self, heaps: dict[str, _Timed], topic: str) -> bool:
        """Whether to time this call. A heap is counted from its first answer on, so that calls for heaps that do not
        exist take no place."""
        found = heaps.get(topic)
        if found is None:
            return len(heaps) < TOPICS_MAX
        found.calls += 1
        return found.calls % SAMPLE == 1

    def _add(self, heaps: dict[str, _Timed], topic: str, began_ns: int) -> None:
        if not began_ns:
            return
        found = heaps.get(topic)
        if found is None:
            if len(heaps) >= TOPICS_MAX:
                return
            found = heaps[topic] = _Timed()
        found.took_us.add((self._ticks_ns() - began_ns) // NS_PER_US)


def _in_ms(item: tuple[str, _Timed]) -> tuple[str, Histogram]:
    topic, found = item[0], item[1].took_us
    bounds = tuple(bound // US_PER_MS for bound in found.bounds)
    return topic, Histogram(bounds, list(found.counts), found.total // US_PER_MS)
