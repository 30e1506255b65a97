"""Planning a read: which records of a log a cursor gets, and what it must be told it missed.

The order is fixed: the live floor (and with it the tombstone), TTL (already in the floor), deleted marks, a page of
at most `limit` live records and `byte_budget` bytes, then the filters of the reader's own nodes and tags. What is
skipped, for whatever reason, moves the cursor; a page may come back short or empty and still have moved.

At most one tombstone a page: when a second gap would follow, the page ends before it and the next page begins there.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from topics.core.block import Block
from topics.core.hole import Hole
from topics.core.log import SEQ_BASE, Log
from topics.core.match import Match
from topics.core.run import DEAD, Marks, Run
from topics.core.tail import Tail
from topics.model import Reason, Tombstone


@dataclass(frozen=True, slots=True)
class Span:
    """Records of one block: from `start` to before `end`, or only `chosen` among them."""

    block: Block
    start: int
    end: int
    chosen: npt.NDArray[np.int64] | None = None


@dataclass(frozen=True, slots=True)
class ReadPlan:
    spans: list[Span]
    tombstone: Tombstone | None
    next_from_seq: int
    scanned: int


def plan_read(
    log: Log,
    visible_seq: int,
    from_seq: int,
    limit: int,
    byte_budget: int,
    nodes: Collection[bytes] = (),
    match: Match | None = None,
) -> ReadPlan:
    """The caller has let the log `observe` the time. `limit` and `byte_budget` are at least 1."""
    start, gap = _entry(log, visible_seq, from_seq)
    tombstone = None
    if gap is not None:
        missed = max(0, gap.gap_to - gap.gap_from + 1)
        tombstone = Tombstone(gap.gap_from, gap.gap_to, gap.reason, missed, log.earliest_seq(), visible_seq)
    hole = _first_hole(log, start)
    end_seq = visible_seq if hole is None else min(visible_seq, hole.gap_from - 1)
    page = _Page(limit, byte_budget, nodes, match)
    passed = page.take(log, max(start, log.low), end_seq)
    rewound = gap is not None and gap.reason is Reason.RECREATED
    return ReadPlan(page.spans, tombstone, passed if rewound else max(passed, from_seq), page.scanned)


def text_at_head(log: Log, visible_seq: int, from_seq: int, limit: int, byte_budget: int) -> bytes | None:
    """All records behind a cursor as text, when `plan_read` would plainly take them all; None when it takes a plan.

    For who follows a log live: what is new lies in the tail, which has no holes, and nothing of it is deleted.
    """
    tail, first_seq = log.tail, from_seq + 1
    if tail is None or first_seq < log.low or visible_seq - from_seq > limit:
        return None
    # The text of a record is longer than its payload.
    return tail.text_between(first_seq, visible_seq, byte_budget)


def cursor_at(log: Log, ts: int) -> int:
    """The cursor behind which the visible records stamped `ts` or later are, and whatever of them was lost.

    When nothing older is retained, what was lost may have been of that time: the cursor is then at the beginning, and
    the reader is told.
    """
    if ts > log.last_ts:
        return log.visible_seq
    older = 0
    for run in log.parts_from(log.low):
        first = run.seq_after_ts(ts - 1)
        if first > run.first_seq:
            older = first - 1
        if first <= run.last_seq:
            break
    return 0 if older < log.earliest_seq() else min(older, log.visible_seq)


def _entry(log: Log, visible_seq: int, from_seq: int) -> tuple[int, Hole | None]:
    """Where a cursor begins to read, and the gap it must be told of first, as far as it may see."""
    asked = from_seq + 1
    if from_seq > log.head_seq:
        return log.earliest_seq(), Hole(SEQ_BASE, visible_seq, Reason.RECREATED)
    if from_seq >= visible_seq:
        return asked, None
    if asked < log.evict_floor:
        gap_to = min(log.earliest_seq() - 1, visible_seq)
        return gap_to + 1, Hole(asked, gap_to, log.loss_reason(asked))
    hole = _first_hole(log, asked)
    if hole is not None and hole.gap_from <= asked:
        gap_to = min(hole.gap_to, visible_seq)
        return gap_to + 1, Hole(asked, gap_to, hole.reason)
    return asked, None


def _first_hole(log: Log, seq: int) -> Hole | None:
    """The first hole that is not over before `seq`. A delete does not hide one: what was lost was not deleted."""
    at = bisect_left(log.holes, seq, key=lambda hole: hole.gap_to)
    return log.holes[at] if at < len(log.holes) else None


class _Page:
    """What one read has gathered, and how much room it has left."""

    def __init__(self, limit: int, byte_budget: int, nodes: Collection[bytes], match: Match | None) -> None:
        self.spans: list[Span] = []
        self.scanned = 0
        self._room = limit
        self._bytes_left = byte_budget
        self._last_seq = 0
        """The last record that took up room, whether the reader's filters let it through or not."""
        self._nodes = frozenset(nodes)
        self._match = match

    def take(self, log: Log, start: int, end_seq: int) -> int:
        """Gather from `start` to `end_seq`; the last record of a full page, and otherwise `end_seq`.

        Where a page ends must not depend on how the records lie in blocks and runs.
        """
        seq = start
        for run in log.parts_from(start):
            if run.first_seq > end_seq:
                break
            seq = max(seq, run.first_seq)
            while seq <= min(run.last_seq, end_seq):
                seq = self._take_block(run, seq, end_seq)
                if self._room <= 0 or self._bytes_left <= 0:
                    return self._last_seq
        return end_seq

    def _take_block(self, run: Run, seq: int, end_seq: int) -> int:
        """Gather from the block at `seq`; the first seq not examined."""
        if isinstance(run, Tail):
            block, marks = run.block_of(seq, self._room if run.marks is None else run.count)
        else:
            block, marks = run.block_at(seq)
        start = seq - block.first_seq
        end = min(block.count, end_seq - block.first_seq + 1)
        live, end = self._live(block, marks, start, end)
        live, end = self._within_budget(block, live, start, end)
        count = end - start if live is None else len(live)
        if count:
            self._last_seq = block.first_seq + (end - 1 if live is None else int(live[-1]))
        self.scanned += end - start
        self._room -= count
        chosen = self._filter(block, live, start, end)
        if chosen is None:
            if end > start:
                self.spans.append(Span(block, start, end))
        elif len(chosen):
            self.spans.append(Span(block, start, end, chosen))
        return block.first_seq + end

    def _live(
        self, block: Block, marks: Marks | None, start: int, end: int
    ) -> tuple[npt.NDArray[np.int64] | None, int]:
        """The live positions (None: all from `start` to `end`), as many as there is room for."""
        if marks is None:
            return None, min(end, start + self._room)
        live = np.flatnonzero(np.frombuffer(marks, np.uint8)[start:end] != DEAD) + start
        if len(live) > self._room:
            live = live[: self._room]
            end = int(live[-1]) + 1
        return live, end

    def _within_budget(
        self, block: Block, live: npt.NDArray[np.int64] | None, start: int, end: int
    ) -> tuple[npt.NDArray[np.int64] | None, int]:
        """Cut off where the payload would exceed the byte budget; the first record of a page always fits."""
        sizes = block.sizes[start:end] if live is None else block.sizes[live]
        total_bytes = int(sizes.sum(dtype=np.uint64))
        if total_bytes <= self._bytes_left:
            self._bytes_left -= total_bytes
            return live, end
        totals = np.cumsum(sizes, dtype=np.uint64)
        fitting = int(np.searchsorted(totals, self._bytes_left, side="right"))
        fitting = max(fitting, 0 if self._last_seq else 1)
        self._bytes_left = 0
        if live is None:
            return None, start + fitting
        live = live[:fitting]
        return live, int(live[-1]) + 1 if len(live) else start

    def _filter(
        self, block: Block, live: npt.NDArray[np.int64] | None, start: int, end: int
    ) -> npt.NDArray[np.int64] | None:
        """The positions the reader wants among the live ones; None for all from `start` to `end`."""
        chosen = live
        if self._nodes and block.node_ids is not None:
            own = [at + 1 for at, name in enumerate(block.node_names) if name in self._nodes]
            if own:
                chosen = np.arange(start, end) if chosen is None else chosen
                ids = block.node_ids[chosen]
                chosen = chosen[ids != own[0]] if len(own) == 1 else chosen[~np.isin(ids, own)]
        if self._match is not None:
            wanted = self._match
            chosen = np.arange(start, end) if chosen is None else chosen
            chosen = np.array([at for at in chosen.tolist() if wanted.matches(block.tag(at))], np.int64)
        return chosen
