"""How long a job that failed waits for its next try: longer with each delivery, and never the same for two jobs."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Final

from topics.errors import InvalidRequest
from topics.limits import NACK_DELAY_MS_MAX, SECOND_MS

FIRST_MS: Final = 1 * SECOND_MS
MOST_MS: Final = 300 * SECOND_MS
_DOUBLINGS_MAX: Final = 32
"""Beyond, the most is reached whatever the first was."""


@dataclass(frozen=True, slots=True)
class Retry:
    """A random time up to `first_ms`, doubled with each delivery up to `most_ms`."""

    first_ms: int = FIRST_MS
    most_ms: int = MOST_MS
    chance: random.Random = field(default_factory=random.Random)

    def __post_init__(self) -> None:
        for name, value in (("retry_ms", self.first_ms), ("retry_ms_max", self.most_ms)):
            if not isinstance(value, int) or not 0 <= value <= NACK_DELAY_MS_MAX:
                expected = f"a whole number from 0 to {NACK_DELAY_MS_MAX}"
                raise InvalidRequest(f"{name} must be {expected}, not {value!r}", field=name, expected=expected)

    def delay_ms(self, deliveries: int) -> int:
        """Of a job that has been delivered so often."""
        doubled_ms = self.first_ms * 2 ** min(deliveries - 1, _DOUBLINGS_MAX)
        return int(self.chance.uniform(0, min(doubled_ms, self.most_ms)))
