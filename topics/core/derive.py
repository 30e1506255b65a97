"""Replaying copies: facts that name records of another log, which may not be there yet.

Logs are replayed side by side, in no order that holds between them. So a log whose next fact is `Forwarded` is put
aside, with all facts that come after it, until everything else is replayed (`take`). Then the logs that were put aside
go on, each as far as what it needs is there, until all are done (`finish`). A fact names only what was stored before
it, so there is always one that can go on; what is nowhere did not survive, and becomes a gap.

Records are taken as they lie there: deleted, evicted or expired meanwhile makes no difference, nor that their topic was
dropped (`take_ghost`). What a replay drops is kept in `Log.kept` until it is over.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from topics.core import forward
from topics.core.block import Block
from topics.core.encoded import EncodedRecords
from topics.core.facts import Floors, LogFact, parse_log_fact
from topics.core.log import NO_CAPS, Log
from topics.core.machine import Machine
from topics.core.payload import I64, Selection, Shape, slice_block
from topics.core.routerfacts import CopiesLost, Forwarded
from topics.core.run import MemoryRun, Run
from topics.core.tail import Tail
from topics.core.totals import Totals
from topics.errors import Damaged
from topics.model import Reason

Apply = Callable[[Log, LogFact | bytes | memoryview], None]
"""Applies a fact, or the body of an append, to a log."""


@dataclass(slots=True)
class _Aside:
    """A log that waits, and its facts: parsed, or the body of an append."""

    log: Log
    facts: deque[LogFact | Forwarded | bytes] = field(default_factory=deque)
    lost: set[int] = field(default_factory=set)
    """Seqs of copies that an earlier recovery did not find."""


@dataclass(frozen=True, slots=True)
class LostCopies:
    """Copies that could not be made again, and where they would have been."""

    log: Log
    first_seq: int
    last_seq: int


class Derivation:
    def __init__(self, machine: Machine, apply: Apply) -> None:
        self._machine = machine
        self._apply = apply
        self.aside: dict[int, _Aside] = {}
        """Logs that wait, with what comes after."""
        self._ghosts: dict[int, Log] = {}
        self._ghosts_seen = 0
        self._next_log_id = 0
        self._kept: dict[int, tuple[int, list[tuple[int, int, Run]]]] = {}
        """For each log, how many of its `kept` runs are here by now; and by their last seqs."""
        self.lost: list[LostCopies] = []
        """What did not survive, to be stored as facts."""
        for log in machine.logs.values():
            log.kept = []
        self._next_log_id = machine.next_log_id

    # ---- the first pass

    def born(self) -> None:
        """A fact of the meta log was replayed, which may have made logs."""
        for log_id in range(self._next_log_id, self._machine.next_log_id):
            log = self._machine.logs.get(log_id)
            if log is not None:
                log.kept = []
        self._next_log_id = max(self._next_log_id, self._machine.next_log_id)

    def take_appended(self, log: Log, body: memoryview) -> None:
        """An append to a log that waits."""
        self.aside[log.log_id].facts.append(bytes(body))

    def take_fact(self, log: Log, body: memoryview) -> None:
        fact = parse_log_fact(body)
        aside = self.aside.get(log.log_id)
        if isinstance(fact, Forwarded) and aside is None:
            aside = self.aside[log.log_id] = _Aside(log)
        if isinstance(fact, CopiesLost):
            if aside is not None:
                aside.lost.update(range(fact.first_seq, fact.last_seq + 1))
        elif aside is not None:
            aside.facts.append(fact)
        else:
            assert not isinstance(fact, Forwarded)
            self._apply(log, fact)

    def take_ghost(self, log_id: int, appended: bool, body: memoryview) -> None:
        """A fact of a log that is not there. If it is dropped further on, others may have copies of what was in it."""
        self._find_ghosts()
        log = self._ghosts.get(log_id)
        if log is None:
            return
        if not appended:
            self.take_fact(log, body)
        elif log_id in self.aside:
            self.take_appended(log, body)
        else:
            self._apply(log, body)

    def _find_ghosts(self) -> None:
        dropped = self._machine.dropped_logs
        for log in dropped[self._ghosts_seen :]:
            log.totals = Totals()
            self._ghosts[log.log_id] = log
        self._ghosts_seen = len(dropped)

    # ---- the second pass

    def finish(self) -> None:
        self._find_ghosts()
        waiting = deque(self.aside.values())
        stuck = 0
        while waiting:
            aside = waiting.popleft()
            # When nobody can go on, what is waited for is not there: the next one goes on without it.
            moved = self._go_on(aside, stuck > len(waiting))
            stuck = 0 if moved else stuck + 1
            if aside.facts:
                waiting.append(aside)
        for log in (*self._machine.logs.values(), *self._ghosts.values()):
            log.kept = None
        self.aside.clear()
        self._kept.clear()

    def _go_on(self, aside: _Aside, anyway: bool) -> bool:
        """Apply facts until one has to wait; whether any was applied."""
        moved = False
        while aside.facts:
            fact = aside.facts[0]
            if isinstance(fact, Forwarded):
                if not anyway and not self._is_ready(fact):
                    return moved
                self._derive(aside, fact)
                anyway = False
            else:
                self._apply(aside.log, fact)
            aside.facts.popleft()
            moved = True
        self.aside.pop(aside.log.log_id, None)
        return True

    def _is_ready(self, fact: Forwarded) -> bool:
        """Whether the source has come as far as it will, or past what the fact needs."""
        if not fact.count or fact.records or fact.source_log_id not in self.aside:
            return True
        source = self._find(fact.source_log_id)
        return source is None or source.next_seq > fact.cursor

    def _find(self, log_id: int) -> Log | None:
        return self._machine.logs.get(log_id) or self._ghosts.get(log_id)

    def _derive(self, aside: _Aside, fact: Forwarded) -> None:
        log = aside.log
        if fact.first_seq + fact.count <= log.next_seq and fact.count + fact.trimmed:
            # A repair found these in a segment already.
            forward.remember(log, fact)
            return
        expected = fact.first_seq - fact.trimmed
        if expected > log.next_seq:
            log.add_hole(log.next_seq, expected - 1, Reason.DAMAGE)
        forward.put_gap(log, fact.first_seq, fact.trimmed)
        if fact.records:
            log.append(EncodedRecords.parse(fact.records), NO_CAPS)
        elif fact.count:
            self._copy(aside, fact)
        if fact.floors is not None:
            log.apply_floors(Floors(*fact.floors))
        log.granted_ceiling = max(log.granted_ceiling, fact.ceiling)
        forward.remember(log, fact)

    def _copy(self, aside: _Aside, fact: Forwarded) -> None:
        log = aside.log
        seqs = np.arange(fact.from_seq, fact.cursor + 1, dtype=np.int64)
        if fact.chosen:
            seqs = seqs[forward.unpack(fact.chosen, len(seqs))]
        shape = Shape(fact.drops_node, fact.drops_tag, fact.stamp)
        source = self._find(fact.source_log_id)
        at = fact.first_seq
        for part, is_lost in _split(seqs, fact.first_seq, aside.lost):
            if is_lost:
                log.add_hole(at, at + len(part) - 1, Reason.SOURCE_TRIM)
                at += len(part)
                continue
            for block, positions, count in self._pieces(source, part):
                if block is None:
                    self._lose(log, at, at + count - 1)
                else:
                    forward.put_copies(log, Selection(block, positions, shape), at, fact.ts, NO_CAPS)
                at += count

    def _lose(self, log: Log, first_seq: int, last_seq: int) -> None:
        log.add_hole(first_seq, last_seq, Reason.SOURCE_TRIM)
        before = self.lost[-1] if self.lost else None
        if before is not None and before.log is log and before.last_seq + 1 == first_seq:
            self.lost[-1] = LostCopies(log, before.first_seq, last_seq)
        else:
            self.lost.append(LostCopies(log, first_seq, last_seq))

    def _pieces(self, source: Log | None, seqs: I64) -> Iterator[tuple[Block | None, I64 | None, int]]:
        """The records with these seqs, block by block: which of it, and how many. Without a block: so many are gone."""
        at = 0
        while at < len(seqs):
            seq = int(seqs[at])
            run = None if source is None else self._run_at(source, seq)
            if run is None:
                behind = at + 1 if source is not None else len(seqs)
                yield None, None, behind - at
                at = behind
                continue
            block = _block_of(run, seq, int(seqs[-1]))
            if block is None:
                behind = int(np.searchsorted(seqs, run.last_seq, side="right"))
                yield None, None, behind - at
                at = behind
                continue
            behind = int(np.searchsorted(seqs, block.last_seq, side="right"))
            positions = seqs[at:behind] - block.first_seq
            yield block, None if len(positions) == block.count else positions, behind - at
            at = behind

    def _run_at(self, log: Log, seq: int) -> Run | None:
        """The run that holds a seq, whatever has become of the record."""
        if log.tail is not None and log.tail.first_seq <= seq <= log.tail.last_seq:
            return log.tail
        index = log.run_index(seq)
        if index < len(log.runs) and log.runs[index].first_seq <= seq:
            return log.runs[index]
        seen, kept = self._kept.get(log.log_id, (0, []))
        for run in (log.kept or [])[seen:]:
            insort(kept, (run.last_seq, id(run), run))
        self._kept[log.log_id] = len(log.kept or []), kept
        index = bisect_left(kept, (seq,))
        return kept[index][2] if index < len(kept) and kept[index][2].first_seq <= seq else None


def _split(seqs: I64, first_seq: int, lost: set[int]) -> Iterator[tuple[I64, bool]]:
    """Seqs whose copies, from `first_seq` on, are known to be lost, and those whose are not, in order."""
    if not lost:
        yield seqs, False
        return
    flags = np.array([first_seq + at in lost for at in range(len(seqs))])
    borders = [0, *(np.flatnonzero(flags[1:] != flags[:-1]) + 1).tolist(), len(seqs)]
    for start, end in pairwise(borders):
        yield seqs[start:end], bool(flags[start])


def _block_of(run: Run, seq: int, last_seq: int) -> Block | None:
    """Records from `seq` on as a block in memory; None when they cannot be read."""
    if isinstance(run, Tail):
        return run.block_of(seq, last_seq - seq + 1)[0]
    try:
        block, _ = run.block_at(seq)
    except Damaged:
        return None
    start, end = seq - block.first_seq, min(block.last_seq, last_seq) - block.first_seq + 1
    return slice_block(block, start, end, copied=not isinstance(run, MemoryRun))
