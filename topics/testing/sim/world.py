"""One life of everything, from one seed: a machine, a network, clients, faults, and the history of it.

    beginning    the server starts on a disk that has the topics, queues, heap and routers, and nothing in them
    living       everybody does what they do, and things go wrong
    healing      nothing fails any more, the server runs
    ending       what is left is taken, everything is read to its end

What it was worth is said in `verdict.py`.
"""

from __future__ import annotations

import logging
import random
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

from topics.testing.checkers.events import Call as Answered
from topics.testing.checkers.events import History
from topics.testing.clock import START_MS, SimClock
from topics.testing.fakedisk import FakeDisk
from topics.testing.faultfs import Call
from topics.testing.sim import actors
from topics.testing.sim.actor import Actor
from topics.testing.sim.actors import clerk
from topics.testing.sim.calls import Caller, Notebook, Reply, Request
from topics.testing.sim.ending import Ending
from topics.testing.sim.faults import Faults
from topics.testing.sim.machine import Machine
from topics.testing.sim.network import Network
from topics.testing.sim.plan import COPIES, HEAP, LEASE_MS, LOGS, PROMISES, QUEUES, ROUTERS, WINDOW_MS
from topics.testing.sim.timeline import Timeline

LIFE_MS = 1600
CHECKPOINT_CALLS = 120
"""About as many changes of files as the checkpoints of a life make."""
FIRST_CALLS = 30
"""And its first one."""
COPIED = ("at any time", "in a checkpoint", "in a checkpoint", "at the end")
"""When a disk is copied."""
CHECKPOINT_MS = 5000
"""A checkpoint comes in this time."""
SETTLE_MS = 9000
"""What is given to everybody to finish what they are at, once all is healed."""
ACTORS_MIN = 10
KEYS = {"idempotency_window_ms": WINDOW_MS}
SECOND_LIFE_IDS = 1_000_000
"""Where ids of records continue in a world that goes on with the history of another: above all of its ids."""
EVENTS_MAX = 300_000
"""More than any life has: beyond that something turns in circles."""


@dataclass(frozen=True, slots=True)
class Copy:
    """A disk as the death of the process would have left it at a moment."""

    disk: FakeDisk
    at: int
    at_ms: int
    stopped: bool = False
    """Whether the process had been asked to end: it may have given leases back."""


class World:
    def __init__(self, seed: int, life_ms: int = LIFE_MS, name: str = "world", now_ms: int = START_MS) -> None:
        self.seed = seed
        self.chance = random.Random(f"{name} {seed}")
        self.timeline = Timeline(SimClock(now_ms))
        self.notes = Notebook(self.timeline)
        self.notes.history.topics = dict(PROMISES)
        self.machine = Machine(self.timeline, random.Random(self.chance.getrandbits(64)))
        self.network = Network(self.timeline, self.machine, random.Random(self.chance.getrandbits(64)))
        self.caller = Caller(self.network, self.notes)
        self.faults = Faults(
            self.timeline, self.machine, self.network, self.notes, random.Random(self.chance.getrandbits(64))
        )
        self.archives: list[tuple[Answered, bytes]] = []
        """Backups that were read to their end, each with its call."""
        self.copied: Copy | None = None
        """The disk at some moment, to be damaged and repaired."""
        self._copy_chance = random.Random(f"copy {seed}")
        self._secret_chance = random.Random(f"secrets {name} {seed}")
        self._copied_when = self._copy_chance.choice(COPIED)
        self._calls_until_copy = 0
        self.unstopped: FakeDisk | None = None
        self.healed = False
        self._life_ms = life_ms
        self._last_id = 0
        kinds: list[Callable[[World, int], Actor]] = [
            *[actors.Writer] * 3, *[actors.Reader] * 2, actors.Deleter, actors.Boss, *[actors.Worker] * 3,
            *[actors.Enqueuer] * 2, *[actors.Popper] * 2, *[actors.Consumer] * 2, *[actors.Batcher] * 2, actors.Mixer,
            *[actors.Watcher] * 2, actors.Keeper, *[actors.Clerk] * 2, actors.Porter, actors.Dropper,
            *[actors.Caster] * 2, actors.Echoer, actors.Flooder, actors.Piper,
        ]  # fmt: skip
        # Some lives are of few who do much with each other, in some there is everybody.
        living = self.chance.sample(kinds, self.chance.randint(ACTORS_MIN, len(kinds)))
        if self.faults.slow_shard.slow_ms:
            # Those who write across both parts of the log, and those who look at both sides.
            living += [*[actors.Batcher] * 3, *[actors.Looker] * 2, *[actors.Echoer] * 2]
        self.actors = [kind(self, number) for number, kind in enumerate(living)]
        self.ending = Ending(self, len(living))
        self.timeline.afterwards.append(self.machine.settle)

    def next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    # ---- a life

    def run(self) -> None:
        with self._alive():
            found = furnished()
            self.machine.disk = (found.disk if self._copy_chance.random() < 0.6 else found.unstopped).fork()
            self.machine.on_call = self._on_call
            self.machine.start()
            self._live()
            self._heal()
            self._end()
            if self.copied is None:
                # What was done since is in a snapshot then.
                self._run_for(CHECKPOINT_MS)
                self._copy()

    def furnish(self) -> None:
        """Make all that there is, and stop the server."""
        with self._alive():
            self.machine.start()
            self._set_up()
            self.unstopped = self.machine.disk.fork().kill()
            self.machine.stop()
            while self.machine.running:
                self._step()

    def look_at(self, disk: FakeDisk, history: History) -> History:
        """Start a server on a disk, take what is left, read all there is; the history with that at its end."""
        self.machine.disk = disk
        self.notes.go_on(history)
        self._last_id = SECOND_LIFE_IDS
        with self._alive():
            self.machine.start()
            self._run_for(1000)
            self._end()
        return history

    @contextmanager
    def _alive(self) -> Iterator[None]:
        """Nothing is left running behind this. A server that dies a thousand times has nothing to say about it.

        Its secrets come from the seed: they are in files, and a seed must give the same files every time.
        """
        logger = logging.getLogger("topics")
        level, token_bytes = logger.level, secrets.token_bytes
        logger.setLevel(logging.CRITICAL + 1)
        secrets.token_bytes = self._token_bytes
        try:
            yield
        finally:
            secrets.token_bytes = token_bytes
            logger.setLevel(level)
            self.network.on_death = lambda: None
            self.machine.die("killed")

    def _token_bytes(self, nbytes: int | None = None) -> bytes:
        return self._secret_chance.randbytes(nbytes or secrets.DEFAULT_ENTROPY)

    def _set_up(self) -> None:
        for request in requests():
            self._perform(request)

    def _perform(self, request: Request) -> None:
        """Until it is done."""
        replies: list[Reply] = []
        for _ in range(100):
            replies.clear()
            self.caller.perform("nobody", request, replies.append)
            while not replies:
                assert self.timeline.step()
            if replies[0].ok:
                return
        raise AssertionError(f"{request.path} cannot be made: {replies[0]}")

    def _live(self) -> None:
        self.network.on_death = self.faults.died
        self.machine.on_failed_start = self.faults.start_failed
        self.machine.on_sick = self.faults.sick
        for actor in self.actors:
            actor.begin()
        self.faults.begin()
        chance = self._copy_chance
        if self._copied_when == "at any time":
            self.timeline.after(chance.random() * self._life_ms, self._copy)
        elif self._copied_when == "in a checkpoint":
            self._calls_until_copy = chance.randint(1, FIRST_CALLS if chance.random() < 0.5 else CHECKPOINT_CALLS)
        self._run_for(self._life_ms)

    def _heal(self) -> None:
        self.faults.heal()
        self.healed = True
        for actor in self.actors:
            actor.stop()
        self._run_for(SETTLE_MS)
        self._calls_until_copy = 0
        if self._copied_when != "at the end":
            self._copy()

    def _on_call(self, call: Call) -> None:
        """A checkpoint changes a file: one of these moments may be the one that is copied."""
        if self._calls_until_copy and call.changes and ("/segments/" in call.path or "/snapshots/" in call.path):
            self._calls_until_copy -= 1
            if not self._calls_until_copy:
                self._copy()

    def _copy(self) -> None:
        """Not of a disk that failed: what that still has is another matter."""
        if self.copied is None and self.machine.running and self.faults.disk_is_well:
            disk = self.machine.disk.fork().kill()
            disk.set_capacity(None)
            self.copied = Copy(disk, self.notes.moment(), self.notes.now_ms, self.machine.stopping)

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


def requests() -> Iterator[Request]:
    """What makes every topic, queue, heap and router of a life, in order."""
    for topic, config in LOGS.items():
        yield _making(f"/v0/topics/{topic}", {**KEYS, **config})
    for topic, config in QUEUES.items():
        yield _making(f"/v0/topics/{topic}", {"type": "queue", "lease_ms": LEASE_MS, **KEYS, **config})
    yield _making("/v0/topics/heap", {**KEYS, **HEAP})
    for router, config in ROUTERS.items():
        yield _making(f"/v0/routers/{router}", config)
    for copy in COPIES:
        yield _making(f"/v0/topics/{copy}", {"durability": "fsync"})
    yield clerk.create_request()


def _making(path: str, config: dict[str, object]) -> Request:
    return Request("make", "", "PUT", path, config)


@dataclass(frozen=True, slots=True)
class Furnished:
    """A disk on which everything is made and nothing has happened, and what the clock showed when it was."""

    disk: FakeDisk
    unstopped: FakeDisk
    """The same without a clean stop: there is no snapshot yet."""
    now_ms: int


@cache
def furnished() -> Furnished:
    """The same for every life, so it is made once."""
    world = World(0, name="furnishing")
    world.furnish()
    assert world.unstopped is not None
    return Furnished(world.machine.disk, world.unstopped, world.notes.wall_ms)
