"""Stretches of a source's log, cut out of it once for all routers that stand at the same place."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np

from topics.core.block import Block
from topics.core.log import Log
from topics.core.match import Match
from topics.core.payload import I64, Selection, Shape, slice_block
from topics.core.run import DEAD, Marks, MemoryRun, Run, index_tags
from topics.core.tail import Tail
from topics.limits import BLOCK_RECORDS


class Stretch:
    """Records of one block of a source, in memory, and what routers choose of them."""

    def __init__(self, block: Block, marks: Marks | None) -> None:
        self.block = block
        self.first_seq = block.first_seq
        self.last_seq = block.last_seq
        self._live = None if marks is None else np.flatnonzero(np.frombuffer(marks, np.uint8) != DEAD)
        self._selections: dict[tuple[Match | None, Shape], tuple[I64 | None, Selection]] = {}

    @cached_property
    def _tag_index(self) -> dict[bytes, list[int]]:
        return index_tags(self.block)

    def select(
        self, match: Match | None, shape: Shape, present: Collection[int] = ()
    ) -> tuple[I64 | None, Selection | None]:
        """The positions of what matches and is not `present` already, None for all; and the records, None for none."""
        key = match, shape
        if present or key not in self._selections:
            positions = self._positions(match)
            if present:
                every = range(self.block.count) if positions is None else positions.tolist()
                positions = np.array([at for at in every if self.first_seq + at not in present], np.int64)
            if positions is not None and len(positions) == self.block.count:
                positions = None
            if positions is not None and not len(positions):
                return positions, None
            made = positions, Selection(self.block, positions, shape)
            if present:
                return made
            self._selections[key] = made
        return self._selections[key]

    def _positions(self, match: Match | None) -> I64 | None:
        if match is None:
            return self._live
        found = np.array(sorted(match.positions(self._tag_index)), np.int64)
        return found if self._live is None else np.intersect1d(found, self._live, assume_unique=True)


Cuts = dict[tuple[int, int, int, int], Stretch]
"""The stretches that were cut last, by log, first and last seq, and how many records of their run are gone: of several
routers that come to the same place the first one cuts, unless something was deleted there meanwhile."""
CUTS_MAX: Final = 192
"""As many as a step may take, and those of the step before."""


def stretches(source: Log, start: int, upto: int, cuts: Cuts) -> Iterator[Stretch]:
    """The records from `start` to `upto` that are there, block by block."""
    seq = max(start, source.low)
    for run in source.parts_from(seq):
        seq = max(seq, run.first_seq)
        last_seq, gone = min(run.last_seq, upto), run.last_seq - run.first_seq + 1 - run.live_count
        while seq <= last_seq:
            key = source.log_id, seq, last_seq, gone
            stretch = cuts.get(key)
            if stretch is None:
                if len(cuts) >= CUTS_MAX:
                    del cuts[next(iter(cuts))]
                stretch = cuts[key] = _cut(run, seq, last_seq)
            yield stretch
            seq = stretch.last_seq + 1
        if seq > upto:
            return


def _cut(run: Run, seq: int, last_seq: int) -> Stretch:
    """The records of a run from `seq` on, up to the end of their block."""
    if isinstance(run, Tail):
        return Stretch(*run.block_of(seq, min(BLOCK_RECORDS, last_seq - seq + 1)))
    block, marks = run.block_at(seq)
    begin, end = seq - block.first_seq, min(block.last_seq, last_seq) - block.first_seq + 1
    # What lies in a mapped file goes with the file, and a copy may stay for longer.
    piece = slice_block(block, begin, end, copied=not isinstance(run, MemoryRun))
    return Stretch(piece, None if marks is None else bytearray(marks[begin:end]))


@dataclass(slots=True)
class Load:
    """What one step takes: stretches one behind the other, and what was chosen of each."""

    from_seq: int
    count: int = 0
    payload_bytes: int = 0
    scanned: int = 0
    """How many records were looked at."""
    next_seq: int = 0
    """The first seq behind all of them."""
    selections: list[Selection] = field(default_factory=list)
    _stretches: list[tuple[Stretch, I64 | None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.next_seq = self.from_seq

    def add(self, stretch: Stretch, positions: I64 | None, selection: Selection | None) -> None:
        if not self._stretches:
            self.from_seq = stretch.first_seq
        self._stretches.append((stretch, positions))
        self.scanned += stretch.block.count
        self.next_seq = stretch.last_seq + 1
        if selection is not None:
            self.selections.append(selection)
            self.count += selection.count
            self.payload_bytes += selection.payload_bytes

    def fitted(self, count: int, shape: Shape) -> Load:
        """The first `count` records, one at least, of a load of one stretch."""
        assert count > 0
        if count >= self.count:
            return self
        ((stretch, positions),) = self._stretches
        last = count - 1 if positions is None else int(positions[count - 1])
        block = slice_block(stretch.block, 0, last + 1, False)
        positions = None if positions is None else positions[:count]
        load = Load(self.from_seq)
        load.add(Stretch(block, None), positions, Selection(block, positions, shape))
        return load

    def chosen(self) -> bytes:
        """One bit a seq, see `Forwarded`; empty when all were chosen."""
        if self.count == self.next_seq - self.from_seq or not self.count:
            return b""
        bits = np.zeros(self.next_seq - self.from_seq, np.bool_)
        for stretch, positions in self._stretches:
            part = bits[stretch.first_seq - self.from_seq : stretch.last_seq + 1 - self.from_seq]
            part[slice(None) if positions is None else positions] = True
        return np.packbits(bits).tobytes()
