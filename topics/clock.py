"""The only module that reads time. Everything else is handed a `Clock`."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int:
        """Wall clock, milliseconds since the epoch. May jump either way."""

    def ticks_ns(self) -> int:
        """A steady count of nanoseconds for durations. Never goes back."""

    def cpu_ns(self) -> int:
        """How many nanoseconds the process has computed, on all its threads. Stands still while they wait."""


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    # Asked many times a write: the bare functions, without a call around them.
    ticks_ns = staticmethod(time.perf_counter_ns)
    cpu_ns = staticmethod(time.process_time_ns)
