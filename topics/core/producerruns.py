"""The writes of one producer in its newest epoch, as runs of consecutive sequences (see `core/dedupe.py`)."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator

import msgspec

from topics.core.fence import Fence
from topics.core.volatile import Volatile
from topics.limits import DEDUPE_EXPIRED_PER_WRITE_MAX, PRODUCER_WINDOW_MS, U32_MAX


class Run(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Writes with consecutive sequences, `count` records each; in `Producer` these are columns."""

    sequence: int
    first_seq: int
    length: int
    count: int
    last_ts: int

    def stored_parts(self, volatile: Volatile) -> Iterator[Run]:
        """The writes whose records are not in memory only: a write is so whole, or not at all."""
        last_seq = self.first_seq + self.length * self.count - 1
        for first, last in volatile.stored_parts(self.first_seq, last_seq):
            before = (first - self.first_seq) // self.count
            length = (last - first + 1) // self.count
            yield Run(self.sequence + before, first, length, self.count, self.last_ts)


class Producer:
    """One producer in its newest epoch: runs as columns, ascending by sequence. Where a run begins never changes."""

    __slots__ = (
        "counts",
        "dead",
        "epoch",
        "first_seqs",
        "fresh_from",
        "keeps_newest",
        "last_ts",
        "last_tss",
        "lengths",
        "sequences",
        "span_ms",
    )

    def __init__(self, epoch: int, span_ms: int, keeps_newest: bool) -> None:
        self.epoch = epoch
        self.keeps_newest = keeps_newest
        """Whether the newest write is remembered for good."""
        self.span_ms = span_ms
        """A run covers at most this long."""
        self.last_ts = 0
        self.fresh_from: int | None = None
        """The lowest sequence recorded since the last chunk."""
        self.dead = 0
        """How many of the first runs are known to be dead. They are dropped when they are half of all."""
        self.sequences = array("Q")
        self.first_seqs = array("Q")
        self.lengths = array("I")
        self.counts = array("I")
        self.last_tss = array("Q")

    def __len__(self) -> int:
        return len(self.sequences)

    def run(self, index: int) -> Run:
        return Run(
            self.sequences[index],
            self.first_seqs[index],
            self.lengths[index],
            self.counts[index],
            self.last_tss[index],
        )

    def find(self, sequence: int) -> int | None:
        """The index of the run that holds `sequence`."""
        index = bisect_right(self.sequences, sequence) - 1
        if index < 0 or sequence - self.sequences[index] >= self.lengths[index]:
            return None
        return index

    def extends(self, index: int, run: Run) -> bool:
        """Whether a single write carries on where run `index` ends."""
        length, count = self.lengths[index], self.counts[index]
        return (
            run.sequence == self.sequences[index] + length
            and length < U32_MAX
            and run.count == count
            and run.first_seq == self.first_seqs[index] + length * count
            and run.last_ts // self.span_ms == self.last_tss[index] // self.span_ms
        )

    def put(self, run: Run) -> int:
        """Add a run, or put it in the place of the one with the same first sequence; how many runs were added."""
        self.last_ts = max(self.last_ts, run.last_ts)
        index = bisect_right(self.sequences, run.sequence) - 1
        if index >= 0 and run.length == 1 and self.extends(index, run):
            self.lengths[index] += 1
            self.last_tss[index] = run.last_ts
            return 0
        rest = self._behind(index, run) if index >= 0 else None
        added = index < 0 or self.sequences[index] != run.sequence
        if added:
            index += 1
        self.dead = min(self.dead, index)
        self._insert(index, run, replaced=not added)
        if rest is not None:
            self._insert(index + 1, rest, replaced=False)
        return int(added) + (rest is not None)

    def _behind(self, index: int, run: Run) -> Run | None:
        """Cut run `index` off where another begins inside it; what it remembers behind that one, None for nothing."""
        old = self.run(index)
        before, behind = run.sequence - old.sequence, old.sequence + old.length - run.sequence - run.length
        if 0 < before < old.length:
            self.lengths[index] = before
        if before >= old.length or behind <= 0:
            return None
        skipped = before + run.length
        return Run(old.sequence + skipped, old.first_seq + skipped * old.count, behind, old.count, old.last_ts)

    def _insert(self, index: int, run: Run, replaced: bool) -> None:
        for column, value in zip(self._columns(), msgspec.structs.astuple(run), strict=True):
            column[index : index + replaced] = array(column.typecode, (value,))

    def expire(self, now_ms: int) -> int:
        """Find a few more dead runs at the front; how many were dropped."""
        for _ in range(DEDUPE_EXPIRED_PER_WRITE_MAX):
            if self.dead == len(self) - self.keeps_newest:
                break
            if now_ms - self.last_tss[self.dead] <= PRODUCER_WINDOW_MS:
                break
            self.dead += 1
        dropped = self.dead
        if 2 * dropped < len(self):
            return 0
        for column in self._columns():
            del column[:dropped]
        self.dead = 0
        return dropped

    def write(self, sequence: int, now_ms: int) -> Fence | None:
        """One write, if it is remembered: for a day, and the newest one for good."""
        index = self.find(sequence)
        if index is None:
            return None
        newest = self.keeps_newest and index == len(self) - 1 and sequence == self.newest
        return self._cut(index, sequence) if newest or now_ms - self.last_tss[index] <= PRODUCER_WINDOW_MS else None

    @property
    def newest(self) -> int:
        """The highest sequence."""
        return self.sequences[-1] + self.lengths[-1] - 1

    def fence(self) -> Fence:
        """What is left when all else is dead: the epoch, and the newest write."""
        return self._cut(len(self) - 1, self.newest)

    def _cut(self, index: int, sequence: int) -> Fence:
        run = self.run(index)
        return Fence(
            self.epoch, sequence, run.first_seq + (sequence - run.sequence) * run.count, run.count, run.last_ts
        )

    def _columns(self) -> tuple[array[int], ...]:
        return self.sequences, self.first_seqs, self.lengths, self.counts, self.last_tss
