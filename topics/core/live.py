"""What is live in a stretch of a log, run by run: counted, summed up or listed, without looking at any text."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from topics.core.match import Match
from topics.core.run import DEAD, LIVE, U64, Marks, Run
from topics.core.tail import Tail

if TYPE_CHECKING:
    from topics.core.log import Log

_LIVE_FLAG = bytes([LIVE])
_DEAD_FLAG = bytes([DEAD])


def marks_at(run: Run, seq: int) -> tuple[int, int, Marks | None]:
    """First seq, last seq and marks of the block that holds `seq`; a tail need not cut one out for that."""
    if isinstance(run, Tail):
        return run.first_seq, run.last_seq, run.marks
    block, marks = run.block_at(seq)
    return block.first_seq, block.last_seq, marks


def live_between(log: Log, start: int, end: int) -> tuple[int, int]:
    """Count and bytes of live records with start <= seq < end."""
    count = size = 0
    for run in log.parts_from(start):
        if run.first_seq >= end:
            break
        run_count, run_bytes = run.live_from(start) if run.first_seq < start else (run.live_count, run.live_bytes)
        count += run_count
        size += run_bytes
        if run.last_seq >= end:
            over_count, over_bytes = run.live_from(end)
            count -= over_count
            size -= over_bytes
    return count, size


def count_from(log: Log, start: int) -> int:
    """How many live records there are from `start` on, in a step a run and none a record."""
    count = 0
    for run in log.parts_from(max(start, log.low)):
        first = max(start, log.low, run.first_seq)
        count += run.live_count if first == run.first_seq else run.count_live(first, run.last_seq)
    return count


def count_named(log: Log, below: int, match: Match | None) -> int:
    """How many live records a delete of those below a seq, of one tag or of all, would take."""
    if match is None:
        return live_between(log, log.low, below)[0] if below > log.low else 0
    return sum(len(seqs) for _, seqs in matching(log, match, below))


def next_live(log: Log, start: int) -> int:
    """The first live seq from `start` on; the log's `next_seq` when there is none."""
    start = max(start, log.low)
    for run in log.parts_from(start):
        found = run.first_live(max(start, run.first_seq)) if run.live_count else None
        if found is not None:
            return found
    return log.next_seq


def last_live(log: Log, start: int, end: int) -> int | None:
    """The highest live seq with start <= seq < end."""
    for run in log.parts_back_from(end - 1):
        if run.last_seq < start:
            break
        seq = min(end - 1, run.last_seq)
        while run.live_count and seq >= max(start, run.first_seq):
            first_seq, _, marks = marks_at(run, seq)
            if marks is None:
                return seq
            alive = np.flatnonzero(np.frombuffer(marks, np.uint8)[: seq - first_seq + 1] != DEAD)
            if len(alive):
                found = first_seq + int(alive[-1])
                return found if found >= start else None
            seq = first_seq - 1
    return None


def pass_live(log: Log, need_count: int, need_bytes: int) -> tuple[int, int, int]:
    """The seq behind the oldest live records that hold so much, and what they hold."""
    count = size = 0
    seq = log.low
    for run in log.parts_from(log.low):
        seq, passed, passed_bytes = run.seq_at_live(need_count - count, need_bytes - size, max(seq, run.first_seq))
        count += passed
        size += passed_bytes
        if count >= need_count and size >= need_bytes:
            break
    return seq, count, size


def live_seqs(log: Log, start: int, last: int) -> Iterator[int]:
    """The live seqs from `start` to `last`, ascending; stretches of dead ones are passed over as a whole.

    Nothing may be deleted while one is looking for the next.
    """
    start = max(start, log.low)
    for run in log.parts_from(start):
        if run.first_seq > last:
            return
        seq, run_last = max(start, run.first_seq), min(last, run.last_seq)
        while run.live_count and seq <= run_last:
            first_seq, last_seq, marks = marks_at(run, seq)
            upto = min(run_last, last_seq)
            if marks is None:
                yield from range(seq, upto + 1)
            else:
                flags = bytes(marks) if isinstance(marks, memoryview) else marks
                at = flags.find(_LIVE_FLAG, seq - first_seq)
                while 0 <= at <= upto - first_seq:
                    yield first_seq + at
                    at = flags.find(_LIVE_FLAG, at + 1)
            seq = upto + 1


def first_live_seqs(log: Log, start: int, last: int, limit: int) -> list[int]:
    """The first so many live seqs from `start` to `last`, as `live_seqs` gives them, whole stretches at once."""
    start = max(start, log.low)
    found: list[int] = []
    for run in log.parts_from(start):
        if run.first_seq > last:
            break
        seq, run_last = max(start, run.first_seq), min(last, run.last_seq)
        while run.live_count and seq <= run_last:
            first_seq, last_seq, marks = marks_at(run, seq)
            upto = min(run_last, last_seq)
            end = min(upto, seq + limit - len(found) - 1) + 1
            if marks is None or not _has_dead(marks, seq - first_seq, end - first_seq):
                found += range(seq, end)
            else:
                end = upto + 1
                found += islice(live_seqs(log, seq, upto), limit - len(found))
            if len(found) == limit:
                return found
            seq = end
    return found


def _has_dead(marks: Marks, start: int, end: int) -> bool:
    part = marks[start:end]
    return _DEAD_FLAG in (part if isinstance(part, bytearray) else bytes(part))


def matching(log: Log, match: Match, below: int) -> list[tuple[Run, U64]]:
    """Live records by tag, with `low <= seq < below`, run by run."""
    found = []
    for run in log.parts_from(log.low):
        if run.first_seq >= below:
            break
        seqs = run.find(match, below)
        if run.first_seq < log.low:
            seqs = seqs[int(np.searchsorted(seqs, np.uint64(log.low))) :]
        if len(seqs):
            found.append((run, seqs))
    return found
