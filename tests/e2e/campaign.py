"""Processes that are killed one after the other, and what each left behind held against the model.

    DIRECTORY/state.json   the seed, how many cycles there were, what was said in them, and where the last one is
    DIRECTORY/data-N-PID   what the process of cycle N left, which the process PID had started
    DIRECTORY/copy         a copy of it, opened and looked at

A process works on a copy of what the last one left, and counts only when that was found right and noted. So a campaign
that is broken off, at whatever moment, goes on with the cycle it was in; a process that outlives whoever was to kill it
is in nobody's way. What chance decides in a cycle follows from the seed and the number of the cycle.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
from pathlib import Path
from shutil import copytree, rmtree

import topics
from tests.e2e import farload, mixedload
from tests.e2e.ledger import Ledger
from tests.e2e.life import Life
from tests.e2e.mixedload import drain_group, drain_heap, drain_queue
from tests.e2e.workload import LANES, held_after, perform, stored
from topics.client import Client
from topics.storage.sharedmemory import SharedMemory

NEAR = (*LANES, *mixedload.OPERATIONS)
FAR = tuple(farload.OPERATIONS)
"""Lanes that need a server."""
CHECKS = mixedload.CHECKS | farload.CHECKS
ACKS_MAX = 400
DELAY_SECONDS_MAX = 0.02
STARTING = 0.2
"""How many of the processes are killed at some moment of their start."""
STARTING_SECONDS_MAX = {"open": 0.6, "serve": 1.2}
CHECKPOINTS_MS = (20, 24 * 3600 * 1000)
"""All the time, or never."""
DOORS = ("serve", "open", "open", "serve", "open")
"""Over and over; each is met with checkpoints and without. A server takes longer to start."""


class Campaign:
    def __init__(self, directory: Path, seed: int) -> None:
        """The one in this directory, as far as it has come, or a new one."""
        self._directory = directory
        self._state = directory / "state.json"
        found = json.loads(self._state.read_bytes()) if self._state.exists() else {}
        assert found.get("seed", seed) == seed, f"{directory} has a campaign with seed {found['seed']}"
        self.seed = seed
        self.cycles: int = found.get("cycles", 0)
        self._done: dict[str, int] = found.get("done") or dict.fromkeys((*NEAR, *FAR), 0)
        self._ledger = Ledger(found.get("said"))
        self._left: str | None = found.get("left")
        """What the last process worked on."""

    @property
    def acked(self) -> int:
        return sum(self._done.values())

    # ---- a cycle

    def next(self) -> None:
        """Start a process on what the last one left, kill it, and look at what it leaves."""
        data = self._directory / f"data-{self.cycles}-{os.getpid()}"
        rmtree(data, ignore_errors=True)
        if self._left is not None:
            _copy(self._directory / self._left, data)
        for line in self._live(data):
            self._hear(line)
        self._check(data)
        self.cycles += 1
        self._left = data.name
        self._note()
        for each in self._directory.glob("data-*"):
            if each != data:
                rmtree(each, ignore_errors=True)

    def _live(self, data: Path) -> list[str]:
        chance = random.Random(f"{self.seed} {self.cycles}")
        door = DOORS[self.cycles % len(DOORS)]
        lanes = (*NEAR, *FAR) if door == "serve" else NEAR
        life = Life(door, data, CHECKPOINTS_MS[self.cycles % 2 == 0], {lane: self._done[lane] for lane in lanes})
        if self.cycles and chance.random() < STARTING:
            return life.kill(0, chance.uniform(0, STARTING_SECONDS_MAX[door]))
        return life.kill(chance.randrange(1, ACKS_MAX), chance.uniform(0, DELAY_SECONDS_MAX))

    def _hear(self, line: str) -> None:
        lane, *words, number = line.split()
        if words:
            self._ledger.take(lane, words[0], int(number))
            return
        assert int(number) == self._done[lane], f"cycle {self.cycles}: {line} was acked out of turn"
        self._done[lane] += 1

    def _note(self) -> None:
        draft = self._state.with_suffix(".new")
        told = {"seed": self.seed, "cycles": self.cycles, "left": self._left, "done": self._done}
        draft.write_text(json.dumps({**told, "said": self._ledger.stored()}))
        os.replace(draft, self._state)

    # ---- what is there

    def _check(self, data: Path) -> None:
        copy = self._directory / "copy"
        rmtree(copy, ignore_errors=True)
        _copy(data, copy)
        asyncio.run(self._check_all(copy))
        rmtree(copy)

    async def _check_all(self, copy: Path) -> None:
        """Each lane holds what was acked, and at most the one operation more that was on its way."""
        async with topics.open(copy) as client:
            known = {state.topic async for state in client.topics()}
            for lane, check in CHECKS.items():
                if self._done[lane]:
                    await check(client, lane, self._done[lane], self._ledger)
            for lane in LANES:
                await _check_plain(client, lane, self._done[lane], lane in known)

    def finish(self) -> None:
        """Everything was tried, and what nobody has settled can be had to the last one."""
        assert min(self._done.values()) > 0, self._done
        asyncio.run(self._drain())

    async def _drain(self) -> None:
        assert self._left is not None
        async with topics.open(self._directory / self._left) as client:
            await drain_queue(client, "jobs")
            for heap in ("messages", "unary", "stream"):
                await drain_heap(client, heap)
            for topic in ("events", "statements"):
                await drain_group(client, topic)


def _copy(source: Path, target: Path) -> None:
    """Copy what a process left, with the note that proves that its disk lost nothing: nobody wrote to it since."""
    copytree(source, target)
    memory = SharedMemory()
    numbers = memory.recall(str(source / "wal"))
    if numbers:
        kept = memory.memorize(str(target / "wal"), len(numbers))
        assert kept is not None, "no file system in memory at /dev/shm"
        for place, number in enumerate(numbers):
            kept[place] = number


async def _check_plain(client: Client, lane: str, operations: int, known: bool) -> None:
    """The same for a lane of plain writes, whose next operation is then done, perhaps for the second time."""
    found = await stored(client, lane) if known else []
    acked, one_more = held_after(lane, operations), held_after(lane, operations + 1)
    assert found in (acked.rows(), one_more.rows()), f"{lane} after {operations} operations"
    await perform(client, lane, operations)
    assert await stored(client, lane) == one_more.rows(), f"{lane} after repeating operation {operations}"
    state = await client.topic(lane).state()
    assert (state.next_seq, state.count) == (one_more.next_seq, len(one_more.records))
