"""What a client waits for comes in its time, whatever the clock on the wall does meanwhile."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from topics.testing.checkers import check
from topics.testing.sim.actor import Actor, Routine
from topics.testing.sim.liveness import probe
from topics.testing.sim.world import World, furnished

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


class Prober(Actor):
    is_over = False

    def routine(self) -> Routine:
        yield from probe(self)
        self.is_over = True

    def _again(self) -> None:
        if not self.is_over:
            super()._again()


def far_ahead_for_a_while(world: World) -> None:
    world.notes.jump(3 * DAY_MS)
    world.timeline.after(700, lambda: world.notes.jump(-3 * DAY_MS))


def far_ahead(world: World) -> None:
    world.notes.jump(3 * DAY_MS)


def hour_back(world: World) -> None:
    world.notes.jump(-HOUR_MS)


def second_ahead(world: World) -> None:
    world.notes.jump(1000)


def second_back(world: World) -> None:
    world.notes.jump(-1000)


def suspended(world: World) -> None:
    world.timeline.clock.suspend(200)


def violations(life: Callable[[World], None]) -> list[str]:
    """Of a probe, in a world without any other fault."""
    world = World(1, now_ms=furnished().now_ms)
    world.machine.disk = furnished().disk.fork()
    with world._alive():
        world.machine.start()
        world._run_for(500)
        life(world)
    return [str(found) for found in check(world.notes.history)]


def run_probe(world: World) -> None:
    prober = Prober(world, 1)
    prober.begin()
    while not prober.is_over:
        world._step()


JUMPS = (far_ahead_for_a_while, far_ahead, hour_back, second_ahead, second_back, suspended)


@pytest.mark.parametrize("jump", JUMPS)
@pytest.mark.parametrize("after_ms", [100, 400, 1200])
def test_clock_that_jumps_holds_nothing_up(jump: Callable[[World], None], after_ms: int) -> None:
    def life(world: World) -> None:
        world.timeline.after(after_ms, lambda: jump(world))
        run_probe(world)

    assert violations(life) == []


@pytest.mark.parametrize("jump", JUMPS)
def test_restart_after_a_jump_holds_nothing_up(jump: Callable[[World], None]) -> None:
    def life(world: World) -> None:
        # Leases, delays and records of the time before are there when it starts again.
        world.timeline.after(300, lambda: jump(world))
        run_probe(world)
        world.machine.die("killed")
        world.machine.start()
        world._run_for(500)
        run_probe(world)

    assert violations(life) == []


def test_process_that_starts_while_the_clock_is_far_ahead_goes_on_with_its_time() -> None:
    def life(world: World) -> None:
        world.machine.die("killed")
        far_ahead(world)
        world.machine.start()
        world._run_for(500)
        world.timeline.after(300, lambda: world.notes.jump(-3 * DAY_MS))
        run_probe(world)
        world.machine.die("killed")
        world.machine.start()
        world._run_for(500)
        run_probe(world)

    assert violations(life) == []
