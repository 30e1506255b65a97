"""A real process under load, killed with SIGKILL again and again: what it had acked is there, once, and right.

Each time, what it left is copied and the copy is opened and compared with the model, so that the next process starts
from the very state in which the last one died; some are killed before they have recovered.
"""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from shutil import copytree, rmtree

import pytest

import topics
from tests.e2e.workload import LANES, held_after, perform, stored

ROOT = Path(__file__).parents[2]
ACKS_MAX = 300
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


async def check(directory: Path, done: dict[str, int]) -> None:
    """Each lane holds what was acked, and at most the one operation more that was on its way."""
    async with topics.open(directory) as client:
        known = {state.topic async for state in client.topics()}
        for lane, operations in done.items():
            found = await stored(client, lane) if lane in known else []
            acked, one_more = held_after(lane, operations), held_after(lane, operations + 1)
            assert found in (acked.rows(), one_more.rows()), f"{lane} after {operations} operations"
            await perform(client, lane, operations)
            assert await stored(client, lane) == one_more.rows(), f"{lane} after repeating operation {operations}"
            state = await client.topic(lane).state()
            assert (state.next_seq, state.count) == (one_more.next_seq, len(one_more.records))


def run_cycles(directory: Path, cycles: int, seed: int) -> None:
    chance = random.Random(seed)
    done = dict.fromkeys(LANES, 0)
    data, copy = directory / "data", directory / "copy"
    for cycle in range(cycles):
        life = Life(data, CHECKPOINTS_MS[cycle % 2 == 0], done)
        if cycle and chance.random() < STARTING:
            said = life.kill(0, chance.uniform(0, STARTING_SECONDS_MAX))
        else:
            said = life.kill(chance.randrange(1, ACKS_MAX), chance.uniform(0, DELAY_SECONDS_MAX))
        for line in said:
            lane, number = line.split()
            assert int(number) == done[lane], f"cycle {cycle}: {line} was acked out of turn"
            done[lane] += 1
        copytree(data, copy)
        asyncio.run(check(copy, done))
        rmtree(copy)
    assert min(done.values()) > 0


def test_what_was_acked_outlives_a_kill(tmp_path: Path) -> None:
    run_cycles(tmp_path, cycles=5, seed=1)


@pytest.mark.soak
def test_what_was_acked_outlives_many_kills(tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")  # noqa: T201  shown when the test fails
    run_cycles(tmp_path, cycles=50, seed=seed)
