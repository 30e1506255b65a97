"""What happens when: one line of events for the whole world, in order of simulated time.

Nothing waits and nothing sleeps. Time stands still while an event happens and then jumps to the next one. Events of the
same moment happen in the order they were planned, so the same seed plans and sees the same line.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from topics.clock import NS_PER_MS
from topics.testing.clock import SimClock

Act = Callable[[], None]


class Timeline:
    def __init__(self, clock: SimClock) -> None:
        self.clock = clock
        self.happened = 0
        """Events so far."""
        self.afterwards: list[Act] = []
        """Called behind each event: processes that go on with what it brought."""
        self._planned: list[tuple[int, int, Act]] = []
        self._count = 0

    @property
    def now_ns(self) -> int:
        return self.clock.ticks_ns()

    def after(self, ms: float, act: Act) -> None:
        """Plan an event so many milliseconds from now."""
        self.at(self.now_ns + max(0, int(ms * NS_PER_MS)), act)

    def at(self, ticks_ns: int, act: Act) -> None:
        self._count += 1
        heapq.heappush(self._planned, (max(ticks_ns, self.now_ns), self._count, act))

    def step(self) -> bool:
        """Go to the next event and let it happen; False when there is none."""
        if not self._planned:
            return False
        ticks_ns, _, act = heapq.heappop(self._planned)
        # The wall clock counts milliseconds, and goes by as the steady one does.
        self.clock.jump(ticks_ns // NS_PER_MS - self.now_ns // NS_PER_MS)
        self.clock.set_ticks_ns(ticks_ns)
        self.happened += 1
        act()
        for act in self.afterwards:
            act()
        return True
