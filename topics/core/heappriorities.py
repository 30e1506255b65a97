"""How the priorities of what waits in a heap are spread: counts of messages in buckets, and the head of each partition.

The waiting messages of a partition lie in sorted columns of ranks (`core/heaporder.py`), so a bucket is counted by
looking for its edges: no message is touched, whatever the backlog. A column may hold pairs that stand for nothing any
more, of messages that were called off or got another priority. Where there are some, and few pairs, each is looked at;
where there are many they are counted with the rest, and `is_exact` is false.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from topics.core import live
from topics.core.heaporder import SEQ_BITS, U64, priority_of
from topics.core.heapplace import Part
from topics.core.heaprecord import ts_at
from topics.core.log import Log
from topics.errors import Damaged
from topics.limits import HEAP_PRIORITIES_CHECKED_MAX
from topics.model import Mode

Counts = npt.NDArray[np.int64]

RANKS_END: Final = 2**64


class Waiting(NamedTuple):
    """What waits in a partition, as it was at one moment."""

    partition: int
    ready: int
    columns: tuple[U64, ...]
    """Ranks, each column sorted and none empty."""
    is_exact: bool
    best: int | None
    """The priority of the message that is next."""
    oldest_ms: int | None
    """When the oldest message was enqueued that is still there, whatever its state."""
    dead_lettered: int


class Bucket(NamedTuple):
    """Messages whose priority is from `least` to `most`."""

    least: int
    most: int
    messages: int


def waiting(part: Part) -> Waiting:
    """The caller has brought the partition up to date."""
    log, heap = part
    head = heap.head(log)
    ready = heap.ready_count(log)
    is_exact = heap.order.count == ready
    if not is_exact and heap.order.count <= HEAP_PRIORITIES_CHECKED_MAX:
        columns = _checked(part)
        is_exact = True
    else:
        columns = heap.order.columns()
    return Waiting(
        partition=log.partition,
        ready=ready,
        columns=tuple(column for column in columns if len(column)),
        is_exact=is_exact,
        best=None if head is None else heap.priority(head),
        oldest_ms=_oldest_ms(log),
        dead_lettered=heap.dead_lettered,
    )


def edges(parts: list[Waiting], bucket_count: int) -> list[int]:
    """The ranks at which buckets begin, and the end of the last: as wide as each other, none narrower than a rank."""
    columns = [column for part in parts for column in part.columns]
    if not columns:
        return []
    lowest = min(int(column[0]) for column in columns)
    span = max(int(column[-1]) for column in columns) - lowest + 1
    width = -(-span // bucket_count)
    return [lowest + width * at for at in range(-(-span // width))] + [min(lowest + span, RANKS_END)]


def counted(part: Waiting, ranks: list[int]) -> Counts:
    """How many of a partition there are between each two of these ranks."""
    counts = np.zeros(max(0, len(ranks) - 1), np.int64)
    if len(counts):
        inner = np.array(ranks[1:-1], np.uint64)
        for column in part.columns:
            cuts = np.searchsorted(column, inner, side="left")
            counts += np.diff(cuts, prepend=0, append=len(column))
    return counts


def buckets(ranks: list[int], counts: Counts, mode: Mode) -> list[Bucket]:
    """Buckets with their priorities, the best ones first."""
    found = []
    for start, end, messages in zip(ranks[:-1], ranks[1:], counts.tolist(), strict=True):
        least, most = sorted((priority_of(start, mode), priority_of(end - 1, mode)))
        found.append(Bucket(least, most, messages))
    return found


def _checked(part: Part) -> list[U64]:
    """The ranks of what is ready, each pair looked at."""
    log, heap = part
    ranks: list[int] = []
    last = -1
    for key in heap.order.in_order():
        if key != last and heap.is_ready(log, key):
            ranks.append(key >> SEQ_BITS)
        last = key
    return [np.array(ranks, np.uint64)]


def _oldest_ms(log: Log) -> int | None:
    oldest = live.next_live(log, log.low)
    if oldest > log.visible_seq:
        return None
    try:
        return ts_at(log, oldest)
    except Damaged:
        return None
