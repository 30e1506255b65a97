from __future__ import annotations

import pytest

from topics.testing import SimClock


def test_time_stands_still_until_it_is_told_to_pass() -> None:
    clock = SimClock(now_ms=1000, ticks_ns=5)
    assert (clock.now_ms(), clock.now_ms(), clock.ticks_ns(), clock.ticks_ns()) == (1000, 1000, 5, 5)
    clock.advance(3)
    assert (clock.now_ms(), clock.ticks_ns()) == (1003, 3_000_005)


@pytest.mark.parametrize("ms", [-500, 500])
def test_a_jump_moves_the_wall_clock_only(ms: int) -> None:
    clock = SimClock(now_ms=1000, ticks_ns=5)
    clock.jump(ms)
    assert (clock.now_ms(), clock.ticks_ns()) == (1000 + ms, 5)


def test_both_can_be_set() -> None:
    clock = SimClock(now_ms=1000, ticks_ns=5)
    clock.set_now_ms(7)
    clock.set_ticks_ns(6)
    assert (clock.now_ms(), clock.ticks_ns()) == (7, 6)


def test_ticks_refuse_to_go_back_and_stay_where_they_were() -> None:
    clock = SimClock(now_ms=1000, ticks_ns=5)
    with pytest.raises(ValueError, match="ticks never go back"):
        clock.set_ticks_ns(4)
    with pytest.raises(ValueError, match="time passes forward"):
        clock.advance(-1)
    assert (clock.now_ms(), clock.ticks_ns()) == (1000, 5)
