"""How long work that can wait may take on the loop: it lives on credit.

It earns a small share of what everybody else in the process computes, and all the time in which nobody does. A slice
costs what it took, or less when there was little for the others to do after it: the loop had its turn, so all that was
waiting was done then. So who works as fast as it can keeps nearly all of the processor, and where there is time to
spare it is used.

Work that had caught up begins at once with the next thing to do, whatever it owes: who writes now and then sees it done
soon. What it then owes is paid within the same pass, by its rest.

Without credit, work comes back a little later (`PAUSE_S`), and not with the next turn: a loop that never sleeps takes
the processor from the other threads, and knows nothing of how much time there would be.
"""

from __future__ import annotations

from typing import Final

from topics.clock import Clock

SLICE_NS: Final = 1_000_000
"""How long one slice is at most: then the loop gets a turn."""
SLICE_NS_MIN: Final = 100_000
"""Credit for less is saved: what is needed around the work would be most of it."""
SHARE: Final = 32
"""Others compute so many times as long, while they want to."""
WANT_WORTH: Final = 4
"""A slice is free for so much of it as is more than so many times what the others then had to do."""
CREDIT_NS_MAX: Final = 3 * SLICE_NS
FRESH_NS: Final = 1_500_000
"""What work that had caught up begins with at least: less than a pass over a hundred destinations takes, so that a
writer who never rests pays for the rest of each."""
PAUSE_S: Final = 0.001


class Credit:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._balance_ns = CREDIT_NS_MAX
        """Below 0 when the last slice took longer than it should have."""
        self._begun_ns = 0
        self._ended_ns = 0
        self._ended_cpu_ns = 0
        self._took_ns = 0

    def begin(self, fresh: bool) -> int | None:
        """When the slice that begins now is to end, by the clock's ticks; None when there is none.

        `fresh` is work that had caught up.
        """
        begun_ns = self._begun_ns = self._clock.ticks_ns()
        others_ns = self._clock.cpu_ns() - self._ended_cpu_ns
        idle_ns = max(begun_ns - self._ended_ns - others_ns, 0)
        cost_ns = min(self._took_ns, WANT_WORTH * others_ns)
        self._balance_ns = min(self._balance_ns - cost_ns + others_ns // SHARE + idle_ns, CREDIT_NS_MAX)
        self._took_ns = 0
        if fresh:
            self._balance_ns = max(self._balance_ns, FRESH_NS)
        return begun_ns + min(SLICE_NS, self._balance_ns) if self._balance_ns >= SLICE_NS_MIN else None

    def end(self) -> None:
        """The slice is over, or there was none."""
        self._ended_ns, self._ended_cpu_ns = self._clock.ticks_ns(), self._clock.cpu_ns()
        self._took_ns = self._ended_ns - self._begun_ns

    def pause_s(self, fresh: bool) -> float:
        """After which time the next slice is worth a try."""
        return PAUSE_S if self._balance_ns < SLICE_NS_MIN and not fresh else 0
