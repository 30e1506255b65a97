"""When something is due: seqs by the millisecond from which they count, in time and memory that batches share.

All that becomes due at the same time lies in one array, so a batch of a thousand costs eight thousand bytes and one
step of the heap. Nothing is ever taken out before its time: whoever schedules anew leaves the old entry behind, and
whoever is handed a due seq asks whether it still means what it meant. `count` says how much lies here, dead or not, so
that the owner can make the schedule anew when most of it is dead.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush


class Schedule:
    __slots__ = ("_due_times", "_seqs", "count")

    def __init__(self) -> None:
        self.count = 0
        self._due_times: list[int] = []
        self._seqs: dict[int, array[int]] = {}

    def add(self, due_ms: int, seqs: Iterable[int]) -> None:
        held = self._seqs.get(due_ms)
        if held is None:
            held = self._seqs[due_ms] = array("Q")
            heappush(self._due_times, due_ms)
        before = len(held)
        held.extend(seqs)
        self.count += len(held) - before

    def next_ms(self) -> int | None:
        """When something may be due next."""
        return self._due_times[0] if self._due_times else None

    def take_due(self, now_ms: int) -> Iterator[tuple[int, array[int]]]:
        """What is due by now, oldest first: the time, and the seqs that were scheduled for it."""
        while self._due_times and self._due_times[0] <= now_ms:
            due_ms = heappop(self._due_times)
            seqs = self._seqs.pop(due_ms)
            self.count -= len(seqs)
            yield due_ms, seqs
