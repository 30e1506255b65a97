"""Ceilings: how far ahead of its last sync a disk-class log may give out seqs. See docs/GUARANTEES.md."""

from __future__ import annotations

from topics.core.log import Log
from topics.limits import CEILING_RESERVE_MAX, CEILING_RESERVE_MIN


def grant(log: Log, last_seq: int) -> int:
    """The ceiling of a fact up to `last_seq`: far enough ahead that writes between two syncs rarely reach it."""
    reserve = 2 * (last_seq - log.synced_seq)
    if reserve < CEILING_RESERVE_MIN:
        reserve = CEILING_RESERVE_MIN
    elif reserve > CEILING_RESERVE_MAX:
        reserve = CEILING_RESERVE_MAX
    if log.granted_ceiling - last_seq < reserve // 2:
        log.granted_ceiling = last_seq + reserve
    return log.granted_ceiling
