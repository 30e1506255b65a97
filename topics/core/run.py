"""A run: a stretch of one log without a missing seq, in memory or in a segment.

A log is a list of runs in seq order and a growing tail. The log asks a run only for what a read, an
eviction or a delete needs; whether the answer comes from memory or a mapped file is the run's business.
Marks of deletion are the one thing about a run that changes: a marked record stays marked for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import numpy.typing as npt

from topics.core.block import Block
from topics.core.match import Match

U64 = npt.NDArray[np.uint64]
Marks = bytearray | memoryview
"""One byte a record: `DEAD` is deleted, everything else is alive."""

DEAD = 0xD5
LIVE = 0x00
_DEAD = bytes([DEAD])


class Run(Protocol):
    first_seq: int
    last_seq: int
    first_ts: int
    last_ts: int
    live_count: int
    live_bytes: int
    """Records not deleted, and their payload bytes. Eviction does not change them: it moves the log's floor."""

    def block_at(self, seq: int) -> tuple[Block, Marks | None]:
        """The block that holds `seq`, and its marks, None when none is dead.

        `first_seq <= seq <= last_seq`. Raises `Damaged` when the stored bytes are not what was written.
        """

    def seq_after_ts(self, ts: int) -> int:
        """The first seq whose timestamp is greater than `ts`; `last_seq + 1` when there is none."""

    def live_from(self, seq: int) -> tuple[int, int]:
        """Live records with a seq of at least `seq`, and their payload bytes."""

    def seq_at_live(self, skip_count: int, skip_bytes: int, seq: int) -> tuple[int, int, int]:
        """Where a floor must move so that at least so much is below it.

        From `seq` on, pass as few live records as hold `skip_count` records and `skip_bytes` bytes; answer the seq
        behind the last one passed (`last_seq + 1` when the run has no more), and the count and bytes passed.
        """

    def first_live(self, seq: int) -> int | None:
        """The first live seq from `seq` on (which is in the run), by the marks alone: a damaged block has them too."""

    def is_live(self, seq: int) -> bool:
        """Whether the record `seq`, which is in the run, is not deleted; by the marks alone as well."""

    def count_live(self, first_seq: int, last_seq: int) -> int:
        """How many live records there are from `first_seq` to `last_seq`, both in the run; by the marks alone."""

    def find(self, match: Match, below: int) -> U64:
        """The live seqs below `below` whose tag matches, ascending; through an index, never a scan."""

    def mark(self, seqs: U64 | list[int], sizes: Mapping[int, int] | None = None) -> tuple[int, int]:
        """Mark records dead; the count and bytes that were alive before.

        A list is a few of the run's seqs, ascending and each once: for these no array is made. `sizes` are the payload
        bytes of all of them, if they are known: then no block has to be read for that.
        """


class MemoryRun:
    """A run of one block that is held in memory."""

    def __init__(self, block: Block, marks: bytearray | None = None, payload_bytes: int | None = None) -> None:
        self.columns = block
        """The block, or one that lacks the text and has the rest."""
        self.marks = marks
        self.first_seq = block.first_seq
        self.last_seq = block.last_seq
        self.first_ts = block.first_ts
        self.last_ts = block.last_ts
        self._tag_index: dict[bytes, list[int]] | None = None
        if marks is None and payload_bytes is not None:
            self.live_count, self.live_bytes = block.count, payload_bytes
        else:
            self.live_count, self.live_bytes = self.live_from(self.first_seq)

    @property
    def block(self) -> Block:
        return self.columns

    @property
    def text_bytes(self) -> int:
        """How long the text is."""
        return len(self.columns.text)

    def block_at(self, seq: int) -> tuple[Block, Marks | None]:
        return self.block, self.marks

    def seq_after_ts(self, ts: int) -> int:
        return self.first_seq + self.columns.first_index_after(ts)

    def live_from(self, seq: int) -> tuple[int, int]:
        return live_from(self.columns, self.marks, max(0, seq - self.first_seq))

    def seq_at_live(self, skip_count: int, skip_bytes: int, seq: int) -> tuple[int, int, int]:
        return seq_at_live(self.columns, self.marks, skip_count, skip_bytes, seq)

    def first_live(self, seq: int) -> int | None:
        return first_live(self.marks, self.first_seq, self.last_seq, seq)

    def is_live(self, seq: int) -> bool:
        return self.marks is None or self.marks[seq - self.first_seq] != DEAD

    def count_live(self, first_seq: int, last_seq: int) -> int:
        return count_live(self.marks, self.first_seq, first_seq, last_seq)

    def find(self, match: Match, below: int) -> U64:
        if self._tag_index is None:
            self._tag_index = index_tags(self.columns)
        return select_live(self.columns, self.marks, match.positions(self._tag_index), below)

    def mark(self, seqs: U64 | list[int], sizes: Mapping[int, int] | None = None) -> tuple[int, int]:
        if self.marks is None:
            self.marks = bytearray(self.columns.count)
        if isinstance(seqs, list):
            first_seq = self.first_seq
            fresh, size = mark_few(self.columns, self.marks, [seq - first_seq for seq in seqs])
            count = len(fresh)
        else:
            count, size = mark(self.columns, self.marks, seqs)
        self.live_count -= count
        self.live_bytes -= size
        return count, size


def alive(marks: Marks) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = np.frombuffer(marks, np.uint8) != DEAD
    return found


def first_live(marks: Marks | None, first_seq: int, last_seq: int, seq: int) -> int | None:
    """The first seq from `seq` to `last_seq` that is not marked, in a stretch whose marks begin at `first_seq`."""
    if marks is None:
        return seq if seq <= last_seq else None
    found = np.flatnonzero(alive(marks)[seq - first_seq :])
    return seq + int(found[0]) if len(found) else None


def count_live(marks: Marks | None, marks_from: int, first_seq: int, last_seq: int) -> int:
    """The seqs from `first_seq` to `last_seq` that are not marked, in a stretch whose marks begin at `marks_from`."""
    count = last_seq - first_seq + 1
    if marks is None:
        return count
    part = marks[first_seq - marks_from : last_seq - marks_from + 1]
    return count - (part if isinstance(part, bytearray) else bytes(part)).count(_DEAD)


def live_from(block: Block, marks: Marks | None, index: int) -> tuple[int, int]:
    """Count and payload bytes of the live records from `index` on."""
    sizes = block.sizes[index:]
    if marks is None:
        return len(sizes), int(sizes.sum(dtype=np.uint64))
    live = alive(marks)[index:]
    return int(live.sum()), int(sizes[live].sum(dtype=np.uint64))


def seq_at_live(block: Block, marks: Marks | None, skip_count: int, skip_bytes: int, seq: int) -> tuple[int, int, int]:
    """`Run.seq_at_live` within one block."""
    index = max(0, seq - block.first_seq)
    sizes = block.sizes[index:].astype(np.uint64)
    live = np.ones(len(sizes), np.bool_) if marks is None else alive(marks)[index:]
    counts = np.cumsum(live)
    totals = np.cumsum(np.where(live, sizes, np.uint64(0)))
    passed = max(
        int(np.searchsorted(counts, skip_count)) if skip_count > 0 else -1,
        int(np.searchsorted(totals, skip_bytes)) if skip_bytes > 0 else -1,
    )
    if passed < 0:
        return block.first_seq + index, 0, 0
    if passed >= len(sizes):
        return block.last_seq + 1, (int(counts[-1]) if len(counts) else 0), (int(totals[-1]) if len(totals) else 0)
    return block.first_seq + index + passed + 1, int(counts[passed]), int(totals[passed])


def index_tags(block: Block) -> dict[bytes, list[int]]:
    """Positions in the block by tag."""
    index: dict[bytes, list[int]] = {}
    if block.tag_ends is not None:
        for position, tag in enumerate(block.tag_list()):
            if tag:
                index.setdefault(tag, []).append(position)
    return index


def select_live(block: Block, marks: Marks | None, positions: list[int], below: int) -> U64:
    """The seqs of those positions that are live and below a bound, ascending."""
    chosen = np.array(sorted(positions), np.int64)
    if marks is not None and len(chosen):
        chosen = chosen[alive(marks)[chosen]]
    seqs = chosen.astype(np.uint64) + np.uint64(block.first_seq)
    return seqs[: int(np.searchsorted(seqs, np.uint64(below)))]


def mark(block: Block, marks: bytearray, seqs: U64) -> tuple[int, int]:
    """Set the marks of `seqs`; the count and bytes that were alive before."""
    view = np.frombuffer(marks, np.uint8)
    positions = (seqs - np.uint64(block.first_seq)).astype(np.int64)
    fresh = positions[view[positions] != DEAD]
    view[fresh] = DEAD
    return len(fresh), int(block.sizes[fresh].sum(dtype=np.uint64))


def mark_few(block: Block, marks: bytearray, places: list[int]) -> tuple[list[int], int]:
    """Set the marks at places of a block, ascending; those that were alive before, and their bytes."""
    if not places:
        return places, 0
    first, end = places[0], places[-1] + 1
    if end - first == len(places) and _DEAD not in marks[first:end]:
        # They follow on each other, as jobs that were claimed together do.
        marks[first:end] = _DEAD * len(places)
        return places, sum(block.sizes[first:end].tolist())
    fresh = [place for place in places if marks[place] != DEAD]
    for place in fresh:
        marks[place] = DEAD
    if not fresh:
        return fresh, 0
    sizes = block.sizes[fresh[0] : fresh[-1] + 1].tolist()
    if len(sizes) > len(fresh):
        sizes = [sizes[place - fresh[0]] for place in fresh]
    return fresh, sum(sizes)


def seq_range(start: int, end: int) -> U64:
    return np.arange(start, end, dtype=np.uint64)
