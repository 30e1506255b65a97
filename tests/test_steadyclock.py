from __future__ import annotations

import pytest

from topics.clock import Clock, SystemClock
from topics.limits import CLOCK_DOUBT_MS, CLOCK_LOOK_MS, CLOCK_SLEW_PARTS, CLOCK_STEP_MS
from topics.steadyclock import SteadyClock
from topics.testing import SimClock
from topics.testing.clock import START_MS

DAY_MS = 86_400_000
HOUR_MS = 3_600_000
ASKED_MS = 10
"""Time between two questions: many come between two looks."""


def started() -> tuple[SteadyClock, SimClock]:
    wall = SimClock()
    return SteadyClock(wall), wall


def run(clock: SteadyClock, wall: SimClock, ms: int) -> int:
    """Let time pass, asking often; how much of it the clock has counted."""
    before_ms = latest_ms = clock.now_ms()
    for _ in range(ms // ASKED_MS):
        wall.advance(ASKED_MS)
        assert clock.now_ms() >= latest_ms, "it never goes back"
        latest_ms = clock.now_ms()
    return latest_ms - before_ms


def test_it_is_the_wall_clock_while_that_is_steady() -> None:
    clock, wall = started()
    for ms in (0, 1, 99, 100, 101, 60_000, HOUR_MS):
        wall.advance(ms)
        assert clock.now_ms() == wall.now_ms()
    assert (clock.jumps, clock.ahead_ms, clock.ticks_ns(), clock.cpu_ns()) == (0, 0, wall.ticks_ns(), 0)


@pytest.mark.parametrize("jump_ms", [3 * DAY_MS, HOUR_MS, CLOCK_STEP_MS + 1, -CLOCK_STEP_MS - 1, -HOUR_MS, -3 * DAY_MS])
def test_jump_that_is_taken_back_leaves_no_trace(jump_ms: int) -> None:
    clock, wall = started()
    run(clock, wall, 1000)
    wall.jump(jump_ms)
    assert run(clock, wall, CLOCK_DOUBT_MS - 1000) == CLOCK_DOUBT_MS - 1000
    assert (clock.jumps, clock.jumped_ms, clock.ahead_ms) == (1, jump_ms, jump_ms)
    wall.jump(-jump_ms)
    assert run(clock, wall, 2 * CLOCK_DOUBT_MS) == 2 * CLOCK_DOUBT_MS
    assert clock.now_ms() == wall.now_ms()
    assert (clock.jumps, clock.jumped_ms, clock.ahead_ms) == (2, -jump_ms, 0)


def test_jump_ahead_is_believed_when_it_lasts() -> None:
    clock, wall = started()
    run(clock, wall, 1000)
    wall.jump(HOUR_MS)
    assert run(clock, wall, CLOCK_DOUBT_MS) == CLOCK_DOUBT_MS
    run(clock, wall, CLOCK_LOOK_MS)
    assert clock.now_ms() == wall.now_ms() and clock.ahead_ms == 0
    assert run(clock, wall, 10_000) == 10_000 and clock.jumps == 1


def test_jump_back_that_lasts_makes_time_run_slower_and_never_back() -> None:
    clock, wall = started()
    run(clock, wall, 1000)
    wall.jump(-60_000)
    run(clock, wall, CLOCK_DOUBT_MS + CLOCK_LOOK_MS)
    behind_ms = -clock.ahead_ms
    assert 59_000 < behind_ms <= 60_000
    counted_ms = run(clock, wall, 100_000)
    assert counted_ms == 100_000 - 100_000 // CLOCK_SLEW_PARTS
    run(clock, wall, behind_ms * CLOCK_SLEW_PARTS)
    assert abs(clock.now_ms() - wall.now_ms()) <= 1 and clock.jumps == 1


@pytest.mark.parametrize("gap_ms", [-CLOCK_STEP_MS, -100, 100, CLOCK_STEP_MS])
def test_small_gap_is_closed_by_running_faster_or_slower(gap_ms: int) -> None:
    clock, wall = started()
    run(clock, wall, 1000)
    wall.jump(gap_ms)
    part_ms = (1 if gap_ms > 0 else -1) * CLOCK_LOOK_MS // CLOCK_SLEW_PARTS
    wall.advance(CLOCK_LOOK_MS)
    assert clock.now_ms() - START_MS == 1000 + CLOCK_LOOK_MS + part_ms
    run(clock, wall, CLOCK_SLEW_PARTS * CLOCK_STEP_MS)
    assert clock.now_ms() == wall.now_ms() and clock.jumps == 0


@pytest.mark.parametrize("part_ms", [CLOCK_STEP_MS, CLOCK_STEP_MS // 2 + 100])
def test_small_changes_that_make_a_large_gap_are_doubted_too(part_ms: int) -> None:
    clock, wall = started()
    wall.jump(part_ms)
    run(clock, wall, CLOCK_LOOK_MS)
    wall.jump(part_ms)
    assert run(clock, wall, CLOCK_DOUBT_MS - 1000) <= CLOCK_DOUBT_MS - 1000 + CLOCK_LOOK_MS
    assert clock.jumps == 1 and clock.ahead_ms > CLOCK_STEP_MS
    run(clock, wall, 2000)
    assert clock.now_ms() == wall.now_ms()


def test_second_jump_is_doubted_anew() -> None:
    clock, wall = started()
    wall.jump(DAY_MS)
    run(clock, wall, CLOCK_DOUBT_MS - 1000)
    wall.jump(DAY_MS)
    assert run(clock, wall, CLOCK_DOUBT_MS - 1000) == CLOCK_DOUBT_MS - 1000
    assert (clock.jumps, clock.ahead_ms) == (2, 2 * DAY_MS)
    run(clock, wall, 2000)
    assert clock.now_ms() == wall.now_ms()


def test_suspended_time_counts_at_once() -> None:
    clock, wall = started()
    run(clock, wall, 1000)
    wall.suspend(8 * HOUR_MS)
    wall.advance(CLOCK_LOOK_MS)
    assert clock.now_ms() == wall.now_ms() and clock.jumps == 0


def test_stored_time_that_is_ahead_is_kept_and_caught_up_with() -> None:
    clock, wall = started()
    clock.reach(START_MS + 60_000)
    assert (clock.now_ms(), clock.ahead_ms) == (START_MS + 60_000, -60_000)
    assert 8_000 <= run(clock, wall, 10_000) <= 8_000 + CLOCK_LOOK_MS and clock.jumps == 0
    run(clock, wall, 60_000 * CLOCK_SLEW_PARTS)
    assert abs(clock.now_ms() - wall.now_ms()) <= 1


def test_stored_time_that_is_behind_changes_nothing() -> None:
    clock, wall = started()
    clock.reach(START_MS - 1)
    assert clock.now_ms() == wall.now_ms() and clock.ahead_ms == 0


def test_it_is_a_clock_and_so_can_be_made_steady_again() -> None:
    outer: Clock
    inner, wall = started()
    outer = SteadyClock(inner)
    wall.suspend(HOUR_MS)
    wall.advance(CLOCK_LOOK_MS)
    assert outer.now_ms() == inner.now_ms() == wall.now_ms()


def test_clock_of_the_system_counts_suspended_time_apart() -> None:
    clock = SystemClock()
    first_ns = clock.slept_ns()
    assert clock.slept_ns() - first_ns < 10**9
    assert abs(SteadyClock(clock).now_ms() - clock.now_ms()) < 1000


def test_each_look_tells_the_time_to_one_who_keeps_it() -> None:
    clock, wall = started()
    kept: list[int] = []
    clock.on_look = kept.append
    clock.reach(START_MS + 5000)
    run(clock, wall, 1000)
    assert len(kept) == 1000 // CLOCK_LOOK_MS and kept == sorted(kept) and kept[0] >= START_MS + 5000
    assert clock.now_ms() - kept[-1] <= CLOCK_LOOK_MS
