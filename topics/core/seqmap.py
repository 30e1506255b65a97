"""What became of each seq of a log, as a picture: buckets of equal width from the first seq ever given to the last.

A seq is one of four things, and each bucket counts them:

    live       its record is there
    deleted    somebody deleted it, or it was a job that is done
    evicted    it lies below the floor that a cap or a TTL has moved; what was deleted there before is counted with it
    lost       its record did not survive a crash or a repair

`archived` says beside that how many of them an archive has, in whatever state they are here. No record is looked at: a
run that lies within a bucket knows how much of it is alive, and one across a border counts its marks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from topics.core.log import SEQ_BASE, Log

BUCKETS_MAX: Final = 512
BUCKETS_DEFAULT: Final = 256


@dataclass(frozen=True, slots=True)
class Bucket:
    """Seqs from `first_seq` to `last_seq`; live, deleted, evicted and lost are all of them."""

    first_seq: int
    last_seq: int
    live: int
    deleted: int
    evicted: int
    lost: int
    archived: int


def seq_map(log: Log, buckets: int = BUCKETS_DEFAULT) -> list[Bucket]:
    """At most so many buckets, and none for a log that never had a record. The caller has let time act."""
    borders = _borders(SEQ_BASE, log.next_seq, buckets)
    alive, holes = _live_by_bucket(log, borders), _holes_by_bucket(log, borders)
    archived_upto = max((each.upto_seq for each in log.holds.archives.values()), default=0) if log.has_holders else 0
    found = []
    for (first, end), live, missing in zip(pairwise(borders), alive, holes, strict=True):
        evicted = _overlap(first, end, SEQ_BASE, log.evict_floor)
        # Of very many holes some are told as one, with what lies between them: that is not lost.
        lost = min(missing, end - first - live - evicted)
        found.append(
            Bucket(
                first_seq=first,
                last_seq=end - 1,
                live=live,
                deleted=end - first - live - evicted - lost,
                evicted=evicted,
                lost=lost,
                archived=_overlap(first, end, SEQ_BASE, archived_upto + 1),
            )
        )
    return found


def _borders(first: int, end: int, buckets: int) -> list[int]:
    """Where buckets begin, and where the last one ends: as many as there are, or fewer when there are fewer seqs."""
    count = min(buckets, end - first)
    return [first + (end - first) * at // count for at in range(count + 1)] if count else []


def _live_by_bucket(log: Log, borders: Sequence[int]) -> list[int]:
    counts = [0] * max(0, len(borders) - 1)
    at = 0
    for run in log.parts_from(log.low):
        seq = max(run.first_seq, log.low)
        whole = run.live_count == run.last_seq - run.first_seq + 1
        while run.live_count and seq <= run.last_seq:
            while borders[at + 1] <= seq:
                at += 1
            last = min(run.last_seq, borders[at + 1] - 1)
            if whole:
                counts[at] += last - seq + 1
            elif (seq, last) == (run.first_seq, run.last_seq):
                counts[at] += run.live_count
            else:
                counts[at] += run.count_live(seq, last)
            seq = last + 1
    return counts


def _holes_by_bucket(log: Log, borders: Sequence[int]) -> list[int]:
    counts = [0] * max(0, len(borders) - 1)
    at = 0
    for hole in log.holes:
        seq = max(hole.gap_from, log.evict_floor)
        while seq <= hole.gap_to:
            while borders[at + 1] <= seq:
                at += 1
            end = min(hole.gap_to + 1, borders[at + 1])
            counts[at] += end - seq
            seq = end
    return counts


def _overlap(first: int, end: int, other_first: int, other_end: int) -> int:
    return max(0, min(end, other_end) - max(first, other_first))
