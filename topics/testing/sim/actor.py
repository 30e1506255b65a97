"""Somebody who uses the server: a routine that asks, waits for what it is told, pauses, and goes on.

A routine is a generator. It yields requests and gets replies, or yields a number of milliseconds to pause. Who goes
next is decided by the timeline alone, so each seed is another interleaving of all of them.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Generator
from typing import TYPE_CHECKING

from topics.testing.sim.calls import Reply, Request

if TYPE_CHECKING:
    from topics.testing.sim.world import World

Routine = Generator[Request | float, Reply, None]


class Actor(ABC):
    """Subclasses say what they do in `routine`, which begins again when it ends, until they are told to stop."""

    name = "somebody"
    pause_ms = 60.0
    """How long it thinks between two things, on average."""

    def __init__(self, world: World, number: int) -> None:
        self.world = world
        self.name = f"{type(self).__name__.lower()}{number}"
        self.chance = random.Random(world.chance.getrandbits(64))
        self._stopped = False
        self._routine: Routine | None = None

    @abstractmethod
    def routine(self) -> Routine: ...

    def begin(self) -> None:
        self.world.timeline.after(self.chance.random() * self.pause_ms, self._again)

    def stop(self) -> None:
        """Finish what is under way, and do no more."""
        self._stopped = True

    def _again(self) -> None:
        if self._stopped:
            return
        self._routine = self.routine()
        self._advance(None)

    def _advance(self, reply: Reply | None) -> None:
        assert self._routine is not None
        try:
            step = next(self._routine) if reply is None else self._routine.send(reply)
        except StopIteration:
            self.world.timeline.after(self.chance.expovariate(1 / self.pause_ms), self._again)
            return
        if isinstance(step, Request):
            self.world.caller.perform(self.name, step, self._advance)
        else:
            self.world.timeline.after(step, lambda: self._advance(None))

    # ---- what routines share

    def retry_ms(self) -> float:
        """How long to wait before asking again: at once, or after a while."""
        return self.chance.random() * self.chance.choice((5, 300))

    def ids(self, count: int) -> list[int]:
        """Numbers for records, which nobody else uses."""
        return [self.world.next_id() for _ in range(count)]
