"""One life of everything, from one seed: a machine, a network, clients, faults, and the history of it.

    setting up   the topics, queues, heap and routers are made
    living       everybody does what they do, and things go wrong
    healing      nothing fails any more, the server runs
    ending       what is left is taken, everything is read to its end

What it was worth is said in `verdict.py`.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from topics.testing.checkers.events import Call, History
from topics.testing.clock import SimClock
from topics.testing.fakedisk import FakeDisk
from topics.testing.sim import actors
from topics.testing.sim.actor import Actor
from topics.testing.sim.calls import Caller, Notebook, Reply, Request
from topics.testing.sim.ending import Ending
from topics.testing.sim.faults import Faults
from topics.testing.sim.machine import Machine
from topics.testing.sim.network import Network
from topics.testing.sim.plan import HEAP, LEASE_MS, LOGS, PROMISES, QUEUES, ROUTERS
from topics.testing.sim.timeline import Timeline

LIFE_MS = 1600
SETTLE_MS = 9000
"""What is given to everybody to finish what they are at, once all is healed."""
EVENTS_MAX = 300_000
"""More than any life has: beyond that something turns in circles."""


class World:
    def __init__(self, seed: int, life_ms: int = LIFE_MS, name: str = "world") -> None:
        self.seed = seed
        self.chance = random.Random(f"{name} {seed}")
        self.timeline = Timeline(SimClock())
        self.notes = Notebook(self.timeline)
        self.notes.history.topics = dict(PROMISES)
        self.machine = Machine(self.timeline, random.Random(self.chance.getrandbits(64)))
        self.network = Network(self.timeline, self.machine, random.Random(self.chance.getrandbits(64)))
        self.caller = Caller(self.network, self.notes)
        self.faults = Faults(
            self.timeline, self.machine, self.network, self.notes, random.Random(self.chance.getrandbits(64))
        )
        self.archives: list[tuple[Call, bytes]] = []
        """Backups that were read to their end, each with its call."""
        self.healed = False
        self._life_ms = life_ms
        self._last_id = 0
        kinds: list[Callable[[World, int], Actor]] = [
            *[actors.Writer] * 3, *[actors.Reader] * 2, actors.Deleter, actors.Boss, *[actors.Worker] * 2,
            actors.Enqueuer, *[actors.Popper] * 2, *[actors.Consumer] * 2, actors.Batcher, *[actors.Watcher] * 2,
            actors.Keeper,
        ]  # fmt: skip
        self.actors = [kind(self, number) for number, kind in enumerate(kinds)]
        self.ending = Ending(self, len(kinds))
        self.timeline.afterwards.append(self.machine.settle)

    def next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    # ---- a life

    def run(self) -> None:
        with self._alive():
            self._set_up()
            self._live()
            self._heal()
            self._end()

    def look_at(self, disk: FakeDisk, history: History) -> History:
        """Start a server on a disk, take what is left, read all there is; the history with that at its end."""
        self.machine.disk = disk
        self.notes.go_on(history)
        with self._alive():
            self.machine.start()
            self._run_for(1000)
            self._end()
        return history

    @contextmanager
    def _alive(self) -> Iterator[None]:
        """Nothing is left running behind this. A server that dies a thousand times has nothing to say about it."""
        logger = logging.getLogger("topics")
        level = logger.level
        logger.setLevel(logging.CRITICAL + 1)
        try:
            yield
        finally:
            logger.setLevel(level)
            self.network.on_death = lambda: None
            self.machine.die("killed")

    def _set_up(self) -> None:
        self.machine.start()
        for topic, config in LOGS.items():
            self._make(f"/v0/topics/{topic}", config)
        for topic, config in QUEUES.items():
            self._make(f"/v0/topics/{topic}", {"type": "queue", "lease_ms": LEASE_MS, **config})
        self._make("/v0/topics/heap", HEAP)
        for router, config in ROUTERS.items():
            self._make(f"/v0/routers/{router}", config)
        self._make("/v0/topics/safe-copy", {"durability": "fsync"})

    def _make(self, path: str, config: dict[str, object]) -> None:
        replies: list[Reply] = []
        for _ in range(100):
            replies.clear()
            self.caller.perform("nobody", Request("make", "", "PUT", path, config), replies.append)
            while not replies:
                assert self.timeline.step()
            if replies[0].ok:
                return
        raise AssertionError(f"{path} cannot be made: {replies[0]}")

    def _live(self) -> None:
        self.network.on_death = self.faults.died
        self.machine.on_failed_start = self.faults.start_failed
        self.machine.on_sick = self.faults.sick
        for actor in self.actors:
            actor.begin()
        self.faults.begin()
        self._run_for(self._life_ms)

    def _heal(self) -> None:
        self.faults.heal()
        self.healed = True
        for actor in self.actors:
            actor.stop()
        self._run_for(SETTLE_MS)

    def _end(self) -> None:
        self.ending.begin()
        while not self.ending.is_over:
            self._step()
        self._run_for(2000)
        self.caller.give_up()
        self.notes.history.is_final = True

    def _run_for(self, ms: int) -> None:
        until_ns = self.timeline.now_ns + ms * 1_000_000
        while self.timeline.now_ns < until_ns:
            self._step()

    def _step(self) -> None:
        assert self.timeline.step(), "nothing is planned any more"
        assert self.timeline.happened < EVENTS_MAX, "this life does not end"
