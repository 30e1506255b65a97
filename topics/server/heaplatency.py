"""How long heaps take: an enqueue until it is answered, a pop until it has what was there when it asked.

One call in `SAMPLE` is timed. A pop counts only when there was something to pop: waiting for others to enqueue is no
latency. Topics are bounded; those that come when there are too many are not timed.
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


class HeapLatency:
    def __init__(self, clock: Clock) -> None:
        self._ticks_ns = clock.ticks_ns
        self._enqueue_us: dict[str, Histogram] = {}
        self._pop_us: dict[str, Histogram] = {}
        self._enqueues = self._pops = 0

    def begin(self) -> int:
        """When a call began that is to be timed; 0 for most of them."""
        self._enqueues += 1
        return self._ticks_ns() if self._enqueues % SAMPLE == 1 else 0

    def begin_pop(self, ready_count: Callable[[], int]) -> int:
        """The same for a pop, if there is something to pop."""
        self._pops += 1
        return self._ticks_ns() if self._pops % SAMPLE == 1 and ready_count() else 0

    def enqueued(self, topic: str, began_ns: int) -> None:
        self._add(self._enqueue_us, topic, began_ns)

    def popped(self, topic: str, began_ns: int) -> None:
        self._add(self._pop_us, topic, began_ns)

    def enqueue_ms(self) -> Iterator[tuple[str, Histogram]]:
        return map(_in_ms, self._enqueue_us.items())

    def pop_ms(self) -> Iterator[tuple[str, Histogram]]:
        return map(_in_ms, self._pop_us.items())

    def _add(self, histograms: dict[str, Histogram], topic: str, began_ns: int) -> None:
        if not began_ns:
            return
        found = histograms.get(topic)
        if found is None:
            if len(histograms) >= TOPICS_MAX:
                return
            found = histograms[topic] = Histogram.of(BOUNDS_US)
        found.add((self._ticks_ns() - began_ns) // NS_PER_US)


def _in_ms(item: tuple[str, Histogram]) -> tuple[str, Histogram]:
    topic, found = item
    bounds = tuple(bound // US_PER_MS for bound in found.bounds)
    return topic, Histogram(bounds, list(found.counts), found.total // US_PER_MS)
