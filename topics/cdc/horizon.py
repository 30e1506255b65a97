"""Up to which id an outbox of PostgreSQL may be read: the ids of transactions that are still open are above.

An id is given when a row is written and seen when its transaction commits, so a lower one may come after a higher one.
A mark is the highest id given so far, and a transaction id that is above those of all who can have got it or a lower
one. When every transaction below that one has ended, all ids up to the mark are there or never will be.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple


class Mark(NamedTuple):
    id: int
    transaction: int


class Horizon:
    def __init__(self) -> None:
        self.settled = 0
        """All ids up to this one are there or never will be."""
        self._marks: deque[Mark] = deque()

    @property
    def noted(self) -> int:
        """The highest id that has a mark, or needs none."""
        return self._marks[-1].id if self._marks else self.settled

    def note(self, mark: Mark) -> None:
        """To be called with marks in the order they were taken."""
        self._marks.append(mark)

    def ended(self, oldest_running: int) -> int:
        """All transactions below this one have ended; the highest id that may be read now."""
        while self._marks and self._marks[0].transaction <= oldest_running:
            self.settled = max(self.settled, self._marks.popleft().id)
        return self.settled
