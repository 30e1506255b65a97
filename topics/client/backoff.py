"""How long to wait before trying again: longer each time, never the same for two clients, never less than asked for."""

from __future__ import annotations

import random
from typing import Final

from topics.limits import SECOND_MS

FIRST_MS: Final = 50
LONGEST_MS: Final = 5 * SECOND_MS


class Backoff:
    def __init__(self, chance: random.Random | None = None) -> None:
        self._chance = chance or random.Random()
        self._most_ms = FIRST_MS

    def next_s(self, at_least_ms: int = 0) -> float:
        """The next wait in seconds: what the server asked for, and a random part on top that doubles with each try."""
        wait_ms = at_least_ms + self._chance.uniform(0, self._most_ms)
        self._most_ms = min(2 * self._most_ms, LONGEST_MS)
        return wait_ms / SECOND_MS

    def reset(self) -> None:
        """It worked: begin again with short waits."""
        self._most_ms = FIRST_MS
