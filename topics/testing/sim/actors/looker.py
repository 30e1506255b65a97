"""Lookers read all logs that batches are for, one behind the other and again and again, each time in another order."""

from __future__ import annotations

from topics.testing.sim.actor import Actor, Routine
from topics.testing.sim.actors.reader import read_request
from topics.testing.sim.plan import BATCHED


class Looker(Actor):
    pause_ms = 15.0

    def routine(self) -> Routine:
        for place in self.chance.sample(BATCHED, len(BATCHED)):
            yield read_request(place, 0, 1000)
