"""The only module that reads time. Everything else is handed a `Clock`."""

from __future__ import annotations

import time
from typing import Final, Protocol

NS_PER_MS: Final = 1_000_000


class Clock(Protocol):
    def now_ms(self) -> int:
        """Wall clock, milliseconds since the epoch. May jump either way; see `SteadyClock` for one that does not."""

    def ticks_ns(self) -> int:
        """A steady count of nanoseconds for durations. Never goes back."""

    def slept_ns(self) -> int:
        """How long the machine was suspended, in all: time that passed and that `ticks_ns` does not count."""

    def cpu_ns(self) -> int:
        """How many nanoseconds the process has computed, on all its threads. Stands still while they wait."""


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // NS_PER_MS

    def slept_ns(self) -> int:
        # In this order a pause between the two makes it too small, never too large.
        since_boot_ns = time.clock_gettime_ns(_SINCE_BOOT)
        return since_boot_ns - time.clock_gettime_ns(time.CLOCK_MONOTONIC)

    # Asked many times a write: the bare functions, without a call around them.
    ticks_ns = staticmethod(time.perf_counter_ns)
    cpu_ns = staticmethod(time.process_time_ns)


_SINCE_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Counts suspended time, where the system has such a clock."""
