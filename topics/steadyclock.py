"""A clock for deadlines and stamps: the time of the wall clock, without its jumps.

The wall clock of a machine may be set, either way and by any amount, and may be right again a moment later. Leases,
delays, retries, TTLs and waits are compared with stored times, so they must not follow that. `SteadyClock` counts the
ticks of the steady clock from the time at which it began, looks at the wall clock every `CLOCK_LOOK_MS`, and goes by
these rules:

    apart by up to CLOCK_STEP_MS    it closes the gap by running faster or slower, by one part in CLOCK_SLEW_PARTS
    a larger gap appears            the wall clock jumped: for CLOCK_DOUBT_MS nothing changes
    it is still there afterwards    the wall clock is believed. If it is ahead, time moves to it in one step; if it is
                                    behind, time runs slower until it has been caught up with
    the machine was suspended       that time has passed, and counts at once

So it never goes back, a jump that is taken back within the doubt leaves no trace, and a span of time that includes no
step is right within one part in CLOCK_SLEW_PARTS.
"""

from __future__ import annotations

from collections.abc import Callable

from topics.clock import NS_PER_MS, Clock
from topics.limits import CLOCK_DOUBT_MS, CLOCK_LOOK_MS, CLOCK_SLEW_PARTS, CLOCK_STEP_MS


class SteadyClock:
    def __init__(self, clock: Clock) -> None:
        self.ticks_ns = clock.ticks_ns
        self.cpu_ns = clock.cpu_ns
        self.slept_ns = clock.slept_ns
        self.jumps = 0
        """How often the wall clock jumped."""
        self.jumped_ms = 0
        """How far it jumped the last time; negative when it went back."""
        self.ahead_ms = 0
        """How far the wall clock is ahead, at the last look; negative when it is behind."""
        self.on_look: Callable[[int], None] = lambda now_ms: None
        """Called with the time at each look at the wall clock, for one who keeps it over a restart."""
        self._wall_ms = clock.now_ms
        self._looked_ns = self._zero_ns = clock.ticks_ns()
        self._slept_ns = clock.slept_ns()
        self._zero_ms = self.latest_ms = clock.now_ms()
        self._look_ns = self._looked_ns + CLOCK_LOOK_MS * NS_PER_MS
        self._doubt_ns = 0
        """Until when the wall clock is not believed."""

    def now_ms(self) -> int:
        ticks_ns = self.ticks_ns()
        if ticks_ns >= self._look_ns:
            self._look(ticks_ns)
        now_ms = self._zero_ms + (ticks_ns - self._zero_ns) // NS_PER_MS
        if now_ms > self.latest_ms:
            self.latest_ms = now_ms
        return self.latest_ms

    def reach(self, now_ms: int) -> None:
        """Begin no earlier than at this time, which was stored: the wall clock has been ahead of what it is now."""
        missing_ms = now_ms - self.now_ms()
        if missing_ms > 0:
            self._zero_ms += missing_ms
            self.latest_ms += missing_ms
            self.ahead_ms -= missing_ms

    def _look(self, ticks_ns: int) -> None:
        elapsed_ms = (ticks_ns - self._looked_ns) // NS_PER_MS
        self._looked_ns = ticks_ns
        self._look_ns = ticks_ns + CLOCK_LOOK_MS * NS_PER_MS
        slept_ms = (self.slept_ns() - self._slept_ns) // NS_PER_MS
        if slept_ms > 0:
            self._slept_ns += slept_ms * NS_PER_MS
            self._zero_ms += slept_ms
        ahead_ms = self._wall_ms() - self._zero_ms - (ticks_ns - self._zero_ns) // NS_PER_MS
        jumped_ms = ahead_ms - self.ahead_ms
        # Several small changes make a large gap, too.
        if abs(jumped_ms) > CLOCK_STEP_MS or abs(ahead_ms) > CLOCK_STEP_MS >= abs(self.ahead_ms):
            self.jumps += 1
            self.jumped_ms = jumped_ms
            self._doubt_ns = ticks_ns + CLOCK_DOUBT_MS * NS_PER_MS if abs(ahead_ms) > CLOCK_STEP_MS else 0
        if ticks_ns >= self._doubt_ns:
            moved_ms = ahead_ms if ahead_ms > CLOCK_STEP_MS else _slewed(ahead_ms, elapsed_ms)
            self._zero_ms += moved_ms
            ahead_ms -= moved_ms
        self.ahead_ms = ahead_ms
        self.on_look(max(self.latest_ms, self._zero_ms + (ticks_ns - self._zero_ns) // NS_PER_MS))


def _slewed(ahead_ms: int, elapsed_ms: int) -> int:
    """How much of a gap is closed in some time. A gap of one millisecond comes from rounding."""
    if -1 <= ahead_ms <= 1:
        return 0
    most_ms = elapsed_ms // CLOCK_SLEW_PARTS
    return max(-most_ms, min(most_ms, ahead_ms))
