"""What goes wrong in a simulated life, and when it is over."""

from __future__ import annotations

import errno

import pytest

from topics.engine.engine import Engine
from topics.engine.host import Opener
from topics.engine.recovery import Progress
from topics.settings import Settings
from topics.storage.committer import Post
from topics.testing.sim import actors
from topics.testing.sim.machine import SHARDS, Machine
from topics.testing.sim.world import World, furnished

AWHILE_MS = 3_000


@pytest.mark.parametrize("failures", [1, 2])
def test_only_a_process_that_was_started_on_a_healed_machine_has_to_start(
    monkeypatch: pytest.MonkeyPatch, failures: int
) -> None:
    attempts = 0
    opener = Machine._opener

    def failing(self: Machine, settings: Settings, on_progress: Progress) -> Opener:
        opens = opener(self, settings, on_progress)

        def open_engine(post: Post) -> Engine:
            nonlocal attempts
            attempts += 1
            if attempts <= failures:
                raise OSError(errno.ENOSPC, "No space left on device")
            return opens(post)

        return open_engine

    world = World(1, now_ms=furnished().now_ms)
    monkeypatch.setattr(Machine, "_opener", failing)
    world.machine.disk = furnished().disk.fork()
    with world._alive():
        world.network.on_death = world.faults.died
        world.machine.on_failed_start = world.faults.start_failed
        world.machine.start()
        while not attempts:
            world._step()
        world.faults.heal()
        world._run_for(AWHILE_MS)
        assert attempts == failures + 1 and world.machine.listener is not None
    assert [text for text in world.notes.problems if "cannot start" in text] == world.notes.problems
    assert len(world.notes.problems) == failures - 1


def test_slow_shard_is_slow_until_the_machine_is_healed() -> None:
    worlds = [World(seed, now_ms=furnished().now_ms) for seed in range(40)]
    slow = [world for world in worlds if world.faults.slow_shard.slow_ms]
    assert 0 < len(slow) < len(worlds)
    for world in slow:
        world.faults.begin()
        assert list(world.machine.standing_slow_ms.values()) == [world.faults.slow_shard.slow_ms]
        assert world.notes.faults["slow shard"] == 1
        assert sum(isinstance(actor, actors.Looker) for actor in world.actors) == 2
        world.faults.heal()
        assert world.machine.standing_slow_ms == {}
    assert {world.faults.slow_shard.shard for world in slow} == set(range(SHARDS))
