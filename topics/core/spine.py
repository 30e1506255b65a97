"""Which partition has the best message: a small heap over what each partition has shown of itself.

A partition shows its best messages, its *candidates*, and the spine takes the best of all that are shown. When the last
candidate of a partition is taken, the partition shows more. Where partitions are on other machines, showing costs a
message, so a partition shows F candidates at a time and does not tell of each better one that comes:

    F = ceil(K / P)     K is the heap's `top_k_bound`, P the number of its partitions
    a partition tells at once when nothing of what it showed is left, and when F better ones have come since it showed

Then what the spine takes is within the best K of all that is there. Say it takes x. A message that is better than x is
not among those shown, since x is the best of these. It was not there when its partition last showed either: then it
would have been shown, or be worse than a candidate that is still shown and so worse than x. So it came since, and of
these each partition has at most F - 1. All in all P (F - 1) <= K - 1 messages are better than x.

With F = 1 each partition tells of everything and the order is exact, also when K < P. On one machine, where looking at
a partition costs nothing, that is how it is used (`core/pop.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import NamedTuple


class Candidate(NamedTuple):
    """A message as it is compared: rank, then time, then anything."""

    rank: int
    ts: int
    partition: int
    seq: int


def fan_out(top_k_bound: int, partitions: int) -> int:
    """How many candidates a partition shows at a time."""
    return -(-top_k_bound // partitions)


class Spine:
    """The side that takes."""

    def __init__(self) -> None:
        self._best: list[Candidate] = []
        self._shown: dict[int, set[Candidate]] = {}

    def show(self, partition: int, candidates: Sequence[Candidate]) -> None:
        """All that a partition shows from now on, in place of what it showed before."""
        self._shown[partition] = set(candidates)
        for candidate in candidates:
            heappush(self._best, candidate)

    def take(self) -> Candidate | None:
        """The best of all that is shown, which is not any more; None when there is nothing."""
        while self._best:
            candidate = heappop(self._best)
            shown = self._shown[candidate.partition]
            if candidate in shown:
                shown.remove(candidate)
                return candidate
        return None


class Exposure:
    """The side that shows: what a partition has told the spine, and what it has not."""

    def __init__(self, fan_out: int) -> None:
        self._fan_out = fan_out
        self._worst: Candidate | None = None
        self._left = 0
        self._untold = 0

    def shown(self, candidates: Sequence[Candidate]) -> None:
        """It has shown these, its best ones in order, as many as the fan-out or all it has."""
        self._left = len(candidates)
        self._worst = candidates[-1] if len(candidates) == self._fan_out else None
        self._untold = 0

    def took(self) -> bool:
        """One of the candidates was taken; whether it has to show again."""
        self._left -= 1
        return self._left <= 0

    def came(self, candidate: Candidate) -> bool:
        """A message came, or came back; whether it has to show again."""
        if self._worst is None or candidate < self._worst:
            self._untold += 1
        return self._left <= 0 or self._untold >= self._fan_out
