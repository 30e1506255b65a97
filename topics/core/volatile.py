"""Which records of a log are in memory only: those that it got while its topic was ephemeral.

They are never stored, not even when the topic has another class later: no fact, segment or snapshot contains them. A
log whose topic was never ephemeral has no `Volatile`. Any other log has the ranges of seqs that came while it was, the
last range open while the topic is ephemeral. The tail is frozen where a range begins and where it ends, so each run is
stored as a whole or not at all.

A process begins with what was stored, so a recovery has no ranges but those that are open from its head on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from topics.core.hole import Hole
from topics.errors import Throttled
from topics.limits import U64_MAX, VOLATILE_RANGES_MAX
from topics.model import Durability, Reason, TopicConfig

if TYPE_CHECKING:
    from topics.core.log import Log

_OPEN: Final = U64_MAX


@dataclass(slots=True)
class Volatile:
    ranges: list[tuple[int, int]] = field(default_factory=list)
    """First and last seq of each, ascending; the last one may be open."""

    def __contains__(self, seq: int) -> bool:
        return any(first <= seq <= last for first, last in self.ranges)

    def last_seq(self) -> int:
        """The last seq that is in memory only, as far as that is known; 0 for none."""
        return self.ranges[-1][1] if self.ranges else 0

    def begin(self, seq: int) -> None:
        """Records from `seq` on are in memory only."""
        if self.ranges and self.ranges[-1][1] + 1 == seq:
            seq = self.ranges.pop()[0]
        self.ranges.append((seq, _OPEN))

    def end(self, seq: int) -> None:
        """Records from `seq` on are stored."""
        first, _ = self.ranges.pop()
        if first < seq:
            self.ranges.append((first, seq - 1))

    def forget_below(self, low: int) -> None:
        self.ranges = [(first, last) for first, last in self.ranges if last >= low]

    def stored_upto(self, head_seq: int) -> int:
        """The last seq up to the head that is not in memory only."""
        for first, last in reversed(self.ranges):
            if first <= head_seq <= last:
                head_seq = first - 1
        return head_seq

    def stored_parts(self, first_seq: int, last_seq: int) -> Iterable[tuple[int, int]]:
        """What of a range of seqs is not in memory only."""
        for first, last in self.ranges:
            if last < first_seq or first > last_seq:
                continue
            if first > first_seq:
                yield first_seq, first - 1
            first_seq = last + 1
        if first_seq <= last_seq:
            yield first_seq, last_seq

    def with_holes(self, holes: Iterable[Hole], low: int, upto_seq: int) -> list[Hole]:
        """The holes a log will have up to a seq when all that is in memory only is gone."""
        lost = [
            Hole(max(first, low), last, Reason.RESTART)
            for first, last in self.ranges
            if last <= upto_seq and last >= low
        ]
        merged: list[Hole] = []
        for hole in sorted([*holes, *lost], key=lambda hole: hole.gap_from):
            if not merged or merged[-1].gap_to < hole.gap_from:
                merged.append(hole)
                continue
            before = merged[-1]
            reason = before.reason if before.reason is hole.reason else Reason.MIXED
            merged[-1] = Hole(before.gap_from, max(before.gap_to, hole.gap_to), reason)
        return merged


def check_change(name: str, logs: Iterable[Log], before: TopicConfig, after: TopicConfig) -> None:
    """Refuse a topic that becomes ephemeral once more while it holds records of very many times that it was."""
    if before.durability is after.durability or after.durability is not Durability.EPHEMERAL:
        return
    for log in logs:
        if log.volatile is None:
            continue
        log.volatile.forget_below(log.low)
        if len(log.volatile.ranges) >= VOLATILE_RANGES_MAX:
            raise Throttled(
                f'topic "{name}" holds records of {VOLATILE_RANGES_MAX} times that it was ephemeral, the maximum; '
                "delete the oldest records first",
                limit="volatile_ranges",
                max=VOLATILE_RANGES_MAX,
            )


def change(log: Log, stored: bool) -> None:
    """Records that come from here on are stored, or are not."""
    log.freeze_tail()
    if not stored:
        log.volatile = Volatile() if log.volatile is None else log.volatile
        log.volatile.begin(log.next_seq)
    elif log.volatile is not None:
        log.volatile.end(log.next_seq)
        if not log.volatile.ranges:
            log.volatile = None
