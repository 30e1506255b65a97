"""Bugs of disks and clocks, to be planted: see `test_planted.py`."""

from __future__ import annotations

import pytest

from topics import steadyclock
from topics.steadyclock import SteadyClock
from topics.storage.walfile import FileHeader
from topics.storage.witness import ShardWitness, Testimony


def boot_id_alone_proves_that_nothing_is_lost(patch: pytest.MonkeyPatch) -> None:
    def about(self: ShardWitness, header: FileHeader, end: int, sealed: bool) -> Testimony:
        return Testimony.KEPT

    patch.setattr(ShardWitness, "about", about)


def time_is_the_highest_that_the_wall_clock_showed(patch: pytest.MonkeyPatch) -> None:
    def now_ms(self: SteadyClock) -> int:
        self.latest_ms = max(self.latest_ms, self._wall_ms())
        return self.latest_ms

    def reach(self: SteadyClock, now_ms: int) -> None:
        self.latest_ms = max(self.latest_ms, now_ms)

    patch.setattr(SteadyClock, "now_ms", now_ms)
    patch.setattr(SteadyClock, "reach", reach)


def jump_of_the_clock_is_believed_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(steadyclock, "CLOCK_DOUBT_MS", 0)
