"""What a TTL and the caps take from a log, as far as no holder needs it (see `core/protect.py`).

Both move the floor over the oldest records. What they cost is what they take: held-back records are not looked
through again with every write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from topics.core import live, protect
from topics.model import Reason, TopicConfig

if TYPE_CHECKING:
    from topics.core.log import Log


def expire(log: Log, config: TopicConfig, cutoff_ts: int) -> bool:
    """Lose what is stamped `cutoff_ts` or earlier; whether the floor moved. Raises `Damaged` and moves nothing."""
    held = protect.protects(config)
    if held and protect.all_held(log, config):
        return False
    first_fresh = _first_fresh(log, config, cutoff_ts, held)
    floor = protect.allowed(log, config, first_fresh) if held else first_fresh
    return _lose(log, config, floor, Reason.TTL)


def _first_fresh(log: Log, config: TopicConfig, cutoff_ts: int, held: bool) -> int:
    """The first seq that has not expired; with holders, no further than could be taken anyway."""
    needed = protect.needed_from(log, config) if held else log.next_seq
    over = protect.over_bytes(log, config)
    first_fresh = log.low
    passed_bytes = 0
    for run in log.parts_from(log.low):
        first_fresh = max(log.low, run.seq_after_ts(cutoff_ts))
        if run.first_seq >= log.low:
            passed_bytes += run.live_bytes
        if run.last_ts > cutoff_ts or (held and run.last_seq >= needed and passed_bytes >= over):
            break
    return first_fresh


def evict(log: Log, config: TopicConfig, over_count: int, over_bytes: int) -> bool:
    """Lose the oldest records that are over a cap; whether the floor moved. Raises `Damaged` and moves nothing."""
    if not protect.protects(config):
        seq, count, size = live.pass_live(log, max(over_count, 0), max(over_bytes, 0))
        log.lose(seq, seq - 1, count, size, Reason.CAP)
        return True
    if protect.all_held(log, config):
        return False
    return _lose(log, config, _cap_floor(log, config, over_count, over_bytes), Reason.CAP)


def _cap_floor(log: Log, config: TopicConfig, over_count: int, over_bytes: int) -> int:
    """How far the caps may take. A held log may be far over them: what it must give up to its bound is found first."""
    needed = protect.needed_from(log, config)
    over = protect.over_bytes(log, config)
    if needed <= log.low and 0 < over <= over_bytes:
        return live.pass_live(log, 0, over)[0]
    seq, _, _ = live.pass_live(log, max(over_count, 0), max(over_bytes, 0))
    return protect.allowed(log, config, seq)


def _lose(log: Log, config: TopicConfig, floor: int, reason: Reason) -> bool:
    if floor <= log.low:
        return False
    needed = protect.needed_from(log, config) if protect.protects(config) else floor
    if floor > needed:
        taken = live.live_between(log, max(needed, log.low), floor)[0]
        log.holds.overrun_count += taken
        log.totals.overrun_count += taken
        log.totals.overrun_topic = log.topic
    count, size = live.live_between(log, log.low, floor)
    log.lose(floor, live.last_live(log, log.low, floor), count, size, reason)
    return True
