"""Attempts that failed, and how long whoever made them has to wait for the next.

The first few are free. From then on each failure doubles the wait, up to a bound; a success forgets them, and so does
time. An attempt between `begin` and `end` counts as one that failed, so that many at once get no further than one after
the other. What is remembered is bounded: when there are too many names, those that failed longest ago are forgotten.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from topics.clock import Clock
from topics.errors import Throttled
from topics.limits import SECOND_MS

NAMES_MAX: Final = 10_000
FORGOTTEN_MS: Final = 3600 * SECOND_MS
NS_PER_MS: Final = 1_000_000


@dataclass(slots=True)
class _Failures:
    count: int
    last_ms: int
    pending: int = 0
    """Attempts under way."""


class Attempts:
    def __init__(self, clock: Clock, what: str, free_count: int, wait_ms_max: int) -> None:
        self._clock = clock
        self._what = what
        self._free_count = free_count
        self._wait_ms_max = wait_ms_max
        self._failures: OrderedDict[str, _Failures] = OrderedDict()

    def check(self, name: str) -> None:
        """`Throttled` while this name has to wait."""
        failures = self._failures.get(name)
        if failures is None:
            return
        now_ms = self._now_ms()
        left_ms = failures.last_ms + self._wait_ms(failures.count) - now_ms
        if left_ms <= 0 and failures.pending:
            # Those under way may all fail now. The first one behind a wait that is over goes alone.
            left_ms = self._wait_ms(failures.count + failures.pending)
        if left_ms > 0:
            raise Throttled(
                f"too many {self._what} that failed; try again in {-(-left_ms // SECOND_MS)} s",
                limit="failed_attempts",
                retry_after_ms=left_ms,
            )

    def begin(self, name: str) -> None:
        """An attempt is under way; `end` has to follow."""
        self.check(name)
        self._found(name).pending += 1

    def end(self, name: str, *, failed: bool) -> None:
        failures = self._failures.get(name)
        if failures is not None:
            failures.pending = max(0, failures.pending - 1)
            if not failed and not failures.count and not failures.pending:
                del self._failures[name]
        if failed:
            self.failed(name)

    def failed(self, name: str) -> None:
        now_ms = self._now_ms()
        failures = self._found(name)
        if now_ms - failures.last_ms > FORGOTTEN_MS:
            failures.count = 0
        failures.count += 1
        failures.last_ms = now_ms

    def succeeded(self, name: str) -> None:
        """Forget the failures of a name; attempts that are still under way stay known."""
        failures = self._failures.pop(name, None)
        if failures is not None and failures.pending:
            self._found(name).pending = failures.pending

    def _found(self, name: str) -> _Failures:
        """What is remembered of a name, which is then the last one to be forgotten."""
        failures = self._failures.pop(name, None) or _Failures(0, self._now_ms())
        self._failures[name] = failures
        if len(self._failures) > NAMES_MAX:
            self._failures.popitem(last=False)
        return failures

    def _wait_ms(self, count: int) -> int:
        over = count - self._free_count
        return 0 if over < 0 else min(SECOND_MS << min(over, 32), self._wait_ms_max)

    def _now_ms(self) -> int:
        # Ticks: a wall clock that is set must neither lock somebody out nor let somebody in.
        return self._clock.ticks_ns() // NS_PER_MS
