"""A real process under mixed load, killed with SIGKILL again and again: what it had acked is there, once, and right.

Writes, deletes and erasures, jobs, messages by priority, a consumer group, a router and batches over two topics go on
at once. Each time, what the process left is copied and the copy is opened and compared with the model, so that the next
process starts from the very state in which the last one died; some are killed before they have recovered.
"""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from os import environ
from pathlib import Path
from shutil import copytree, rmtree

import pytest

import topics
from proof.results import save
from proof.tree import tree_hash
from tests.e2e import mixedload
from tests.e2e.mixedload import OPERATIONS, Ledger, drain
from tests.e2e.workload import LANES, held_after, perform, stored

ROOT = Path(__file__).parents[2]
ACKS_MAX = 400
MANY_CYCLES = 200
DELAY_SECONDS_MAX = 0.02
STARTING = 0.2
"""How many of the processes are killed at some moment of their start."""
STARTING_SECONDS_MAX = 0.6
CHECKPOINTS_MS = (20, 24 * 3600 * 1000)
"""All the time, or never."""


class Life:
    """One process from its start to its violent end."""

    def __init__(self, directory: Path, checkpoint_ms: int, done: dict[str, int]) -> None:
        lanes = [f"{lane}={operations}" for lane, operations in done.items()]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.e2e.writer", str(directory), str(checkpoint_ms), *lanes],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def kill(self, after_acks: int, delay_s: float) -> list[str]:
        """Kill it a moment after so many acks; everything it said, up to its last line."""
        assert self._process.stdout is not None and self._process.stderr is not None
        said = [self._process.stdout.readline() for _ in range(after_acks)]
        time.sleep(delay_s)
        self._process.send_signal(signal.SIGKILL)
        rest, errors = self._process.stdout.read(), self._process.stderr.read()
        status = self._process.wait()
        self._process.stdout.close()
        self._process.stderr.close()
        assert status == -signal.SIGKILL, f"it ended by itself with {status}: {errors.decode()}"
        lines = (b"".join(said) + rest).decode().splitlines()
        return [line for line in lines if line != "open"]


async def check(directory: Path, done: dict[str, int], ledger: Ledger) -> None:
    """Each lane holds what was acked, and at most the one operation more that was on its way."""
    async with topics.open(directory) as client:
        known = {state.topic async for state in client.topics()}
        for lane in OPERATIONS:
            if done[lane]:
                await mixedload.check(client, lane, done[lane], ledger)
        for lane in LANES:
            operations = done[lane]
            found = await stored(client, lane) if lane in known else []
            acked, one_more = held_after(lane, operations), held_after(lane, operations + 1)
            assert found in (acked.rows(), one_more.rows()), f"{lane} after {operations} operations"
            await perform(client, lane, operations)
            assert await stored(client, lane) == one_more.rows(), f"{lane} after repeating operation {operations}"
            state = await client.topic(lane).state()
            assert (state.next_seq, state.count) == (one_more.next_seq, len(one_more.records))


async def check_the_rest(directory: Path) -> None:
    async with topics.open(directory) as client:
        await drain(client)


Told = Callable[[int, int], None]
"""Hears after each cycle how many there were, and how many operations were acked in all."""


def run_cycles(directory: Path, cycles: int, seed: int, told: Told = lambda cycle, acked: None) -> None:
    chance = random.Random(seed)
    done = dict.fromkeys([*LANES, *OPERATIONS], 0)
    ledger = Ledger()
    data, copy = directory / "data", directory / "copy"
    for cycle in range(cycles):
        life = Life(data, CHECKPOINTS_MS[cycle % 2 == 0], done)
        if cycle and chance.random() < STARTING:
            said = life.kill(0, chance.uniform(0, STARTING_SECONDS_MAX))
        else:
            said = life.kill(chance.randrange(1, ACKS_MAX), chance.uniform(0, DELAY_SECONDS_MAX))
        for line in said:
            lane, *words, number = line.split()
            if words:
                ledger.take(lane, words[0], int(number))
                continue
            assert int(number) == done[lane], f"cycle {cycle}: {line} was acked out of turn"
            done[lane] += 1
        copytree(data, copy)
        asyncio.run(check(copy, done, ledger))
        rmtree(copy)
        told(cycle + 1, sum(done.values()))
    assert min(done.values()) > 0
    asyncio.run(check_the_rest(data))


def test_what_was_acked_outlives_a_kill(tmp_path: Path) -> None:
    run_cycles(tmp_path, cycles=10, seed=1)


@pytest.mark.soak
def test_what_was_acked_outlives_many_kills(tmp_path: Path) -> None:
    seed = int(environ.get("KILL_SEED") or random.SystemRandom().randrange(2**32))
    cycles = int(environ.get("KILL_CYCLES", MANY_CYCLES))
    command = f"KILL_SEED={seed} KILL_CYCLES={cycles} make soak ONLY=kill"
    counts = {"tree": tree_hash(), "seed": seed, "lanes": [*LANES, *OPERATIONS], "cycles": 0, "acked": 0, "failures": 1}

    def told(cycle: int, acked: int) -> None:
        counts.update(cycles=cycle, acked=acked)

    try:
        run_cycles(tmp_path, cycles, seed, told)
        counts["failures"] = 0
    finally:
        save("kill", command, counts)
