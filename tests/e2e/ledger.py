"""What a process that was killed had said, and what is to be found in its directory because of that."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

Say = Callable[[str, int], None]
"""A word and a number, on their way to whoever kills us."""
Stored = dict[str, list[int]]
"""A ledger as JSON has it."""


class Ledger:
    """What was said: in each lane, by word, the numbers."""

    def __init__(self, stored: Stored | None = None) -> None:
        self._said: dict[tuple[str, str], set[int]] = defaultdict(set)
        for name, numbers in (stored or {}).items():
            lane, _, word = name.partition(" ")
            self._said[lane, word].update(numbers)

    def take(self, lane: str, word: str, number: int) -> None:
        self._said[lane, word].add(number)

    def of(self, lane: str, word: str) -> set[int]:
        return self._said[lane, word]

    def stored(self) -> Stored:
        return {f"{lane} {word}": sorted(numbers) for (lane, word), numbers in self._said.items()}
