"""A disk on which the files of one part of the log are slow, from the beginning of a life until it is healed.

Unlike a moment of slowness it lets much happen between what a quick part has stored and what a slow one has: batches
overlap, copies wait for their sources, and readers look at both sides meanwhile.
"""

from __future__ import annotations

import random
from typing import Final

from topics.testing.sim.calls import Notebook
from topics.testing.sim.machine import SHARDS, Machine

SHARE: Final = 0.3
"""In how many lives."""
SLOW_MS: Final = (25.0, 80.0, 250.0)


class SlowShard:
    def __init__(self, machine: Machine, notes: Notebook, chance: random.Random) -> None:
        self._machine = machine
        self._notes = notes
        self.slow_ms = chance.choice(SLOW_MS) if chance.random() < SHARE else 0.0
        """How much longer each round of the log takes in that part; 0 in a life without one."""
        self.shard = chance.randrange(SHARDS)

    def begin(self) -> None:
        if self.slow_ms:
            self._notes.faults["slow shard"] += 1
            self._machine.standing_slow_ms[self.shard] = self.slow_ms

    def heal(self) -> None:
        self._machine.standing_slow_ms.clear()
