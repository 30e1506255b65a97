"""Where a stream is: for each topic its life and, for each partition, the last seq that was read.

    {"orders": {"epoch": 1, "0": 1200, "1": 1184}}

This is what a checkpoint holds. A topic that is made anew has another epoch, and a place in the old one means nothing
then: the stream begins at its beginning, and is told. A topic that is gone keeps its place, for the same reason.
"""

from __future__ import annotations

from typing import Final

from topics.spark.ranges import SeqRange, split
from topics.spark.server import PartitionState

Offset = dict[str, dict[str, int]]
EPOCH: Final = "epoch"


def place(offset: Offset, state: PartitionState) -> int:
    """The last seq that was read of a partition in its present life; 0 when none was."""
    known = offset.get(state.topic, {})
    return known.get(str(state.partition), 0) if known.get(EPOCH) == state.epoch else 0


def put(offset: Offset, state: PartitionState, seq: int) -> None:
    known = offset.setdefault(state.topic, {EPOCH: state.epoch})
    if known[EPOCH] != state.epoch:
        known.clear()
        known[EPOCH] = state.epoch
    known[str(state.partition)] = seq


def move(
    start: Offset, states: list[PartitionState], ends: Offset | None, rows_max: int = 0, bytes_max: int = 0
) -> Offset:
    """The offset that the next batch goes up to: the heads, or `ends`, as far as the limits (0 is none) allow."""
    heads = [state.head_seq if ends is None else min(state.head_seq, place(ends, state)) for state in states]
    news = [max(0, head - place(start, state)) for state, head in zip(states, heads, strict=True)]
    rows = sum(news)
    if rows_max:
        rows = min(rows, rows_max)
    if bytes_max and rows:
        # How large the new records are is not known, so they are taken to be as large as those of their partition are.
        sizes = [state.bytes / max(1, state.count) for state in states]
        new_bytes = sum(count * size for count, size in zip(news, sizes, strict=True))
        if new_bytes > bytes_max:
            rows = min(rows, max(1, int(sum(news) * bytes_max / new_bytes)))
    offset = {topic: dict(known) for topic, known in start.items()}
    for state, count in zip(states, _shared(rows, news), strict=True):
        put(offset, state, place(start, state) + count)
    return offset


def _shared(rows: int, news: list[int]) -> list[int]:
    """So many rows among partitions that have more, in proportion."""
    total = sum(news)
    if rows >= total:
        return news
    shares = [rows * count // total for count in news]
    left = rows - sum(shares)
    for index, count in enumerate(news):
        extra = min(left, count - shares[index])
        shares[index] += extra
        left -= extra
    return shares


def ranges_between(start: Offset, end: Offset, rows_max: int) -> list[SeqRange]:
    """What a batch reads, in tasks of at most so many rows."""
    ranges: list[SeqRange] = []
    for topic, known in sorted(end.items()):
        epoch = known[EPOCH]
        before = start.get(topic, {EPOCH: epoch})
        recreated = before[EPOCH] != epoch
        for partition in sorted(int(name) for name in known if name != EPOCH):
            begin = 0 if recreated else before.get(str(partition), 0)
            upto = known[str(partition)]
            if begin < upto:
                first, *rest = split(topic, partition, epoch, begin, upto, rows_max)
                ranges += [SeqRange(topic, partition, begin, first.to_seq, epoch, recreated), *rest]
    return ranges
