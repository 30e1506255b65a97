"""What every `Clock` promises."""

from __future__ import annotations

import pytest

from topics.clock import Clock, SystemClock
from topics.testing import SimClock


@pytest.fixture(params=[SystemClock, SimClock])
def clock(request: pytest.FixtureRequest) -> Clock:
    built: Clock = request.param()
    return built


def test_the_wall_clock_counts_milliseconds_since_the_epoch(clock: Clock) -> None:
    year_2020_ms, year_2200_ms = 1_577_836_800_000, 7_258_118_400_000
    assert year_2020_ms < clock.now_ms() < year_2200_ms


def test_ticks_never_go_back(clock: Clock) -> None:
    for count in (clock.ticks_ns, clock.cpu_ns):
        ticks = [count() for _ in range(1000)]
        assert ticks == sorted(ticks)
