from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

import msgspec
import pytest

from tests.engine.rig import Rig as Engine
from tests.server.probing import serving
from topics.errors import Throttled
from topics.server.throttle import BEAT_MS, FULLNESS_MAX, RETRY_MS_MAX, SHARE_MIN, SHARE_STEP, Throttle
from topics.testing import SimClock

LAG_MS_MAX = 500


class Rig:
    def __init__(self, lag_ms_max: int = LAG_MS_MAX) -> None:
        self.clock = SimClock()
        self.fullness = 0.0
        self.throttle = Throttle(self.clock, lag_ms_max, lambda: self.fullness)

    def beat(self, lag_ms: int = 0) -> None:
        self.clock.advance(BEAT_MS + lag_ms)
        self.throttle.beat()

    def admitted(self, writes: int) -> int:
        count = 0
        for _ in range(writes):
            try:
                self.throttle.admit()
                count += 1
            except Throttled:
                pass
        return count


def test_a_loop_in_time_admits_everything() -> None:
    rig = Rig()
    for _ in range(10):
        rig.beat(lag_ms=LAG_MS_MAX)
    assert rig.throttle.lag_ms == LAG_MS_MAX
    assert rig.admitted(1000) == 1000


def test_a_late_beat_halves_the_writes_that_pass() -> None:
    rig = Rig()
    rig.beat(lag_ms=LAG_MS_MAX + 1)
    assert rig.admitted(1000) == 500
    rig.beat(lag_ms=LAG_MS_MAX + 1)
    assert rig.admitted(1000) == 250
    assert rig.throttle.refused == 1250


def test_what_is_pardoned_does_not_count() -> None:
    rig = Rig()
    rig.beat(lag_ms=LAG_MS_MAX + 1)
    before = rig.throttle.share
    rig.beat(lag_ms=LAG_MS_MAX + 1)
    rig.clock.advance(LAG_MS_MAX * 2)
    rig.throttle.pardon(before)
    rig.beat()
    assert rig.throttle.share == before + SHARE_STEP


def test_a_disk_that_is_behind_does_so_too() -> None:
    rig = Rig()
    rig.fullness = FULLNESS_MAX
    rig.beat()
    assert rig.admitted(100) == 100
    rig.fullness = FULLNESS_MAX + 0.01
    rig.beat()
    assert rig.admitted(100) == 50


def test_some_writes_always_pass() -> None:
    rig = Rig()
    for _ in range(100):
        rig.beat(lag_ms=10_000)
    assert rig.throttle.share == SHARE_MIN
    assert rig.admitted(6400) == 100


def test_it_lets_go_step_by_step() -> None:
    rig = Rig()
    rig.beat(lag_ms=1000)
    rig.beat()
    assert rig.throttle.share == 0.5 + SHARE_STEP
    for _ in range(round(0.5 / SHARE_STEP)):
        rig.beat()
    assert rig.throttle.share == 1.0
    assert rig.admitted(1000) == 1000


def test_a_refusal_says_when_to_try_again() -> None:
    rig = Rig()
    rig.beat(lag_ms=1000)
    with pytest.raises(Throttled, match="disable_backpressure") as caught:
        rig.throttle.admit()
    assert caught.value.detail == {"retry_after_ms": 2 * BEAT_MS}
    for _ in range(100):
        rig.beat(lag_ms=1000)
    with pytest.raises(Throttled) as caught:
        rig.throttle.admit()
        rig.throttle.admit()
    assert caught.value.detail == {"retry_after_ms": RETRY_MS_MAX}


def test_the_wall_clock_does_not_matter() -> None:
    rig = Rig()
    rig.clock.jump(3_600_000)
    rig.beat()
    assert rig.throttle.lag_ms == 0


class Timers:
    """As much of a loop as a timer needs."""

    def __init__(self) -> None:
        self.due: list[tuple[float, Callable[..., object], tuple[object, ...]]] = []

    def call_later(self, delay_s: float, callback: Callable[..., object], *args: object) -> Timers:
        self.due.append((delay_s, callback, args))
        return self

    def cancel(self) -> None:
        self.due.clear()

    def run(self) -> None:
        due, self.due = self.due, []
        for _, callback, args in due:
            callback(*args)


def test_it_beats_until_it_is_stopped() -> None:
    rig, timers = Rig(), Timers()
    rig.throttle.start(cast(asyncio.AbstractEventLoop, timers))
    for lag_ms, share in [(0, 1.0), (LAG_MS_MAX + 1, 0.5), (LAG_MS_MAX + 1, 0.25)]:
        assert [delay_s for delay_s, _, _ in timers.due] == [BEAT_MS / 1000], "one timer at a time"
        rig.clock.advance(BEAT_MS + lag_ms)
        timers.run()
        assert rig.throttle.share == share
    rig.throttle.stop()
    assert timers.due == []


def test_the_time_before_the_start_is_no_lag() -> None:
    rig, timers = Rig(), Timers()
    rig.clock.advance(60_000)
    rig.throttle.start(cast(asyncio.AbstractEventLoop, timers))
    rig.beat()
    assert rig.throttle.lag_ms == 0


def test_zero_turns_it_off() -> None:
    rig, timers = Rig(lag_ms_max=0), Timers()
    rig.throttle.start(cast(asyncio.AbstractEventLoop, timers))
    assert timers.due == []
    rig.throttle.stop()


def test_a_write_is_refused_with_the_time_to_wait_unless_it_takes_no_back_pressure() -> None:
    with serving(Engine()) as probe:
        probe.context.throttle.share = SHARE_MIN
        refused = probe.post("/v0/topics/a", b'{"records":[{"data":1}]}')
        assert refused.status == 429
        assert (b"Retry-After", b"5") in refused.headers
        error = msgspec.json.decode(refused.body)["error"]
        assert (error["code"], error["detail"]) == ("throttled", {"retry_after_ms": RETRY_MS_MAX})
        patient = probe.post("/v0/topics/a", b'{"records":[{"data":1}],"disable_backpressure":true}')
        assert patient.status == 201
        assert probe.lines()["topics_throttled_total"] == "1"
