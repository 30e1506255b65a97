"""When leases were handed out, to the second: by their tokens, which a queue gives in ascending order.

A lease has a due time and no beginning; that would be eight bytes a lease, for who asks once in a while. What is kept
instead is which token came next at the beginning of each second in which there were any. When that is a lot, the old
ones are thinned out: how long ago something was is then told to a part in `PRECISION`, and new ones to the second. That
way ten years fit.

It is the memory of one process: of leases that were handed out by an earlier one it knows nothing.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import Final

STEP_MS: Final = 1000
KEPT_MAX: Final = 4096
PRECISION: Final = 128


class TokenTimes:
    __slots__ = ("_times", "_tokens")

    def __init__(self) -> None:
        self._tokens = array("Q")
        self._times = array("Q")

    def note(self, token: int, now_ms: int) -> None:
        """This token and those behind it are given now."""
        times = self._times
        if times and now_ms < times[-1] + STEP_MS:
            return
        if len(times) == KEPT_MAX:
            self._thin_out(now_ms)
        self._times.append(now_ms)
        self._tokens.append(token)

    def _thin_out(self, now_ms: int) -> None:
        """Leave out what leaves no gap that is too wide for how long ago it is."""
        tokens, times = self._tokens[:1], self._times[:1]
        next_times = (*self._times[2:], now_ms)
        for token, time_ms, next_ms in zip(self._tokens[1:], self._times[1:], next_times, strict=True):
            if (next_ms - times[-1]) * PRECISION > now_ms - next_ms:
                tokens.append(token)
                times.append(time_ms)
        self._tokens, self._times = tokens, times

    def since_ms(self, token: int) -> int | None:
        """When this token was given, or a little earlier; None when that is not known."""
        place = bisect_right(self._tokens, token)
        return self._times[place - 1] if place else None
