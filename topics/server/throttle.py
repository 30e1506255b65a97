"""The elastic throttle: under pressure a share of the writes is refused, so that the rest is answered in time.

A coarse timer beats. A beat that comes late says how far the loop is behind with everything else (CPU); how full the
WAL's queues are says how far the disk is behind. At each beat over a bound the share of writes that is admitted
halves; at each beat within the bounds it grows by a step, until all are admitted again. Which writes are admitted
follows from the share by counting, not by chance: at a share of 1/4 it is every fourth one.

A write that asks for no back-pressure is not sent here. Reads never are: they make no queue longer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from topics.clock import Clock
from topics.errors import Throttled
from topics.limits import SECOND_MS

BEAT_MS = 100
FULLNESS_MAX = 0.5
"""Share of the WAL's queue bound; at the whole of it the engine itself refuses."""
SHARE_MIN = 1 / 64
SHARE_STEP = 1 / 16
RETRY_MS_MAX = 5 * SECOND_MS

_NS_PER_MS = 1_000_000


class Throttle:
    def __init__(self, clock: Clock, lag_ms_max: int, fullness: Callable[[], float]) -> None:
        """`lag_ms_max` 0 never throttles. `fullness` is how full the fullest WAL queue is, from 0 to 1."""
        self.share = 1.0
        """Of the writes, how many are admitted."""
        self.lag_ms = 0
        """How late the last beat came."""
        self.refused = 0
        self._clock = clock
        self._lag_ms_max = lag_ms_max
        self._fullness = fullness
        self._credit = 0.0
        self._beat_ns = clock.ticks_ns()
        self._timer: asyncio.TimerHandle | None = None

    def admit(self) -> None:
        """Let one write pass, or raise `Throttled` with the time after which to try again."""
        if self.share >= 1.0:
            return
        self._credit += self.share
        if self._credit >= 1.0:
            self._credit -= 1.0
            return
        self.refused += 1
        raise Throttled(
            "the server is behind with its work and admits only some of what is asked for; try again later (a write "
            "with disable_backpressure: true waits instead)",
            retry_after_ms=min(int(BEAT_MS / self.share), RETRY_MS_MAX),
        )

    def beat(self) -> None:
        """Measure. Due `BEAT_MS` after the last one."""
        now_ns = self._clock.ticks_ns()
        self.lag_ms = max(0, (now_ns - self._beat_ns) // _NS_PER_MS - BEAT_MS)
        self._beat_ns = now_ns
        if self.lag_ms > self._lag_ms_max or self._fullness() > FULLNESS_MAX:
            self.share = max(SHARE_MIN, self.share / 2)
        elif self.share < 1.0:
            self.share = min(1.0, self.share + SHARE_STEP)

    def pardon(self, share: float) -> None:
        """What happened since the share was `share` is over and says nothing of the load."""
        self.share = max(self.share, share)
        self._beat_ns = self._clock.ticks_ns()

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Beat on a loop until `stop`; nothing when it is off."""
        if self._lag_ms_max:
            self._beat_ns = self._clock.ticks_ns()
            self._arm(loop)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = loop.call_later(BEAT_MS / SECOND_MS, self._beat_and_arm, loop)

    def _beat_and_arm(self, loop: asyncio.AbstractEventLoop) -> None:
        self.beat()
        self._arm(loop)
