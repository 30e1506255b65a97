"""A clock that stands still until it is told to move: time as a value."""

from __future__ import annotations

from topics.clock import NS_PER_MS

START_MS = 1_700_000_000_000
"""Where a clock starts unless told otherwise: late enough that subtracting an hour is no special case."""


class SimClock:
    """`advance` lets time pass; `jump` and `set_now_ms` move the wall clock only, either way, as an operator would.
    `suspend` puts the machine to sleep: the wall clock goes on, and the ticks stand still."""

    def __init__(self, now_ms: int = START_MS, ticks_ns: int = 0) -> None:
        self._now_ms = now_ms
        self._ticks_ns = ticks_ns
        self._slept_ns = 0

    def now_ms(self) -> int:
        return self._now_ms

    def ticks_ns(self) -> int:
        return self._ticks_ns

    def slept_ns(self) -> int:
        return self._slept_ns

    def cpu_ns(self) -> int:
        """Nothing takes time here but what the test lets pass."""
        return 0

    def advance(self, ms: int) -> None:
        """Let `ms` pass on both clocks."""
        if ms < 0:
            raise ValueError(f"time passes forward: cannot advance by {ms} ms; jump() moves the wall clock back")
        self._now_ms += ms
        self._ticks_ns += ms * NS_PER_MS

    def jump(self, ms: int) -> None:
        """Set the wall clock forward or, negative, back; the ticks do not notice."""
        self._now_ms += ms

    def suspend(self, ms: int) -> None:
        """Suspend the machine for `ms`."""
        self._now_ms += ms
        self._slept_ns += ms * NS_PER_MS

    def set_now_ms(self, now_ms: int) -> None:
        self._now_ms = now_ms

    def set_ticks_ns(self, ticks_ns: int) -> None:
        if ticks_ns < self._ticks_ns:
            raise ValueError(f"ticks never go back: they are at {self._ticks_ns} ns, not to be set to {ticks_ns} ns")
        self._ticks_ns = ticks_ns
