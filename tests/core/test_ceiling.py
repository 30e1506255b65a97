"""How far ahead of its last sync a log may give out seqs."""

from __future__ import annotations

from topics.core import ceiling
from topics.core.log import Log
from topics.limits import CEILING_RESERVE_MAX, CEILING_RESERVE_MIN


def test_the_reserve_is_twice_what_is_unsynced_within_bounds() -> None:
    assert ceiling.grant(Log(1, "t", 0, 1), 1) == 1 + CEILING_RESERVE_MIN
    assert ceiling.grant(Log(1, "t", 0, 1), 1000) == 3000
    assert ceiling.grant(Log(1, "t", 0, 1), 10**9) == 10**9 + CEILING_RESERVE_MAX


def test_a_ceiling_stays_while_half_of_the_reserve_is_left() -> None:
    log = Log(1, "t", 0, 1)
    first = ceiling.grant(log, 1)
    log.synced_seq = 30
    assert ceiling.grant(log, first - CEILING_RESERVE_MIN // 2) == first == log.granted_ceiling
    assert ceiling.grant(log, first - CEILING_RESERVE_MIN // 2 + 1) > first
