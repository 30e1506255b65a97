"""The state of one partition's log, and the only functions that change it.

A log is a list of immutable runs in seq order, a growing tail, and a handful of numbers:

    runs and tail     what is stored; seqs below `low` in them are gone already
    next_seq          what the next record gets
    low               every record below it is gone: evicted, expired, or deleted as a prefix
    evict_floor       every seq below it may have been *lost* (cap, TTL, restart): the only trigger of a tombstone
    lost              the highest seq lost for each reason, to say why
    holes             ranges above the floor whose records did not survive (a crash, a repair), each with its reason
    count, bytes      live records from `low` on, exactly

`evict_floor <= low <= earliest_seq` always, and none of them ever goes back. Deleting moves `low` or marks
records; it never touches `evict_floor`, so a reader is never told of loss where there was only deletion.

Numbers change in `apply_*` only, from facts. `observe` is the one exception: it moves the floors as time passes
(TTL), which a replay at a later time does again in the same way, as long as nothing changes what it would find.
What does, a delete or a change of the TTL, stores the floors first: `floors_unstored` says that there is need to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, assert_never

import numpy as np

from topics.core.block import Buffer
from topics.core.dedupe import Dedupe
from topics.core.encoded import EncodedRecords
from topics.core.facts import Appended, Deleted, Floors, FloorsMoved, HeadMoved, LogFact, SeqsSkipped
from topics.core.match import Match
from topics.core.run import DEAD, U64, Marks, MemoryRun, Run
from topics.core.tail import Tail
from topics.errors import Damaged
from topics.limits import HOLES_MAX, TAIL_BATCH_BYTES_MAX, TAIL_BATCH_RECORDS_MAX
from topics.model import Durability, Reason, TopicConfig

SEQ_BASE = 1
NO_CAPS = TopicConfig()
# Looking a member up in its enum takes several times as long as comparing it: named once for the paths of every write.
_EPHEMERAL: Final = Durability.EPHEMERAL


@dataclass(frozen=True, slots=True)
class Hole:
    """Seqs that were assigned, or may have been, and will never be delivered."""

    gap_from: int
    gap_to: int
    reason: Reason


@dataclass(slots=True)
class Totals:
    """What all logs together hold, kept as they change."""

    count: int = 0
    bytes: int = 0


@dataclass(slots=True)
class Log:
    log_id: int
    topic: str
    partition: int
    epoch: int
    totals: Totals = field(default_factory=Totals)
    runs: list[Run] = field(default_factory=list)
    tail: Tail | None = None
    next_seq: int = SEQ_BASE
    low: int = SEQ_BASE
    evict_floor: int = SEQ_BASE
    lost: dict[Reason, int] = field(default_factory=dict)
    floors_unstored: bool = False
    """Time or a cap moved the floors, and no fact says where they are now."""
    holes: list[Hole] = field(default_factory=list)
    count: int = 0
    bytes: int = 0
    last_ts: int = 0
    last_write_ts: int | None = None
    logged_seq: int = 0
    """Records up to here are in stored facts; what an ephemeral topic got since is in memory only."""
    granted_ceiling: int = 0
    """The highest seq that any fact allowed to be acked before the next sync."""
    _dedupe: Dedupe | None = None
    published: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Stages whose records are in this log while their batch is not finished: stage log -> first seq, count."""
    released: list[Run] = field(default_factory=list)
    """Runs that hold nothing any more, for the owner of their files to take."""
    visible_seq: int = 0
    """Readers see records up to here: their durability class is satisfied."""
    ready_seq: int = 0
    """Records up to here are as safe as their class asks; readers see them unless a batch is unfinished."""
    hidden_from: int = 0
    """Where an unfinished batch begins in this log; 0 when there is none."""
    synced_seq: int = 0
    """Records up to here are durable."""
    durable_ceiling: int = 0
    """The highest ceiling that is durable: disk-class seqs up to here are acked without waiting for a sync."""
    _earliest: int = SEQ_BASE

    @property
    def head_seq(self) -> int:
        return self.next_seq - 1

    @property
    def dedupe(self) -> Dedupe:
        """What was written with a key; made when a key first comes, since most logs never see one."""
        if self._dedupe is None:
            self._dedupe = Dedupe()
        return self._dedupe

    @property
    def remembers(self) -> bool:
        return self._dedupe is not None

    def parts(self) -> list[Run]:
        """All runs in order, the tail last."""
        return [*self.runs, self.tail] if self.tail is not None else self.runs

    def run_index(self, seq: int) -> int:
        """The index of the first run whose last seq is at least `seq`."""
        low, high = 0, len(self.runs)
        while low < high:
            middle = (low + high) // 2
            if self.runs[middle].last_seq < seq:
                low = middle + 1
            else:
                high = middle
        return low

    def parts_from(self, seq: int) -> Iterator[Run]:
        """The runs that may hold records from `seq` on. One at a time: who needs the first must not pay for all."""
        runs = self.runs
        for index in range(self.run_index(seq), len(runs)):
            yield runs[index]
        if self.tail is not None and self.tail.last_seq >= seq:
            yield self.tail

    def _parts_back_from(self, seq: int) -> Iterator[Run]:
        """The runs that may hold records up to `seq`, the last one first."""
        if self.tail is not None and self.tail.first_seq <= seq:
            yield self.tail
        runs = self.runs
        for index in range(min(self.run_index(seq), len(runs) - 1), -1, -1):
            yield runs[index]

    # ---- time

    def observe(self, config: TopicConfig, now_ms: int) -> None:
        """Move the floors past what has expired by now."""
        if not config.ttl_ms:
            return
        cutoff = now_ms - config.ttl_ms - 1
        if cutoff < 0 or cutoff < self._oldest_ts():
            return
        try:
            first_fresh = self.low
            for run in self.parts_from(self.low):
                first_fresh = max(self.low, run.seq_after_ts(cutoff))
                if run.last_ts > cutoff:
                    break
            if first_fresh > self.low:
                self._lose_below(first_fresh, Reason.TTL)
                self.floors_unstored = True
        except Damaged:
            # Nothing has moved yet. Whoever reads there is told of the damage.
            return

    def _oldest_ts(self) -> int:
        if self.runs:
            return self.runs[0].first_ts
        return self.tail.first_ts if self.tail is not None else self.last_ts + 1

    def _lose_below(self, floor: int, reason: Reason) -> None:
        """Everything below `floor` is lost; what is already deleted is not counted as loss."""
        last_live = self._last_live(self.low, floor)
        count, size = self._live_between(self.low, floor)
        if last_live is not None:
            self.lost[reason] = max(self.lost.get(reason, 0), last_live)
            self.evict_floor = max(self.evict_floor, last_live + 1)
        self._raise_low(floor, count, size)

    def _raise_low(self, low: int, count: int, size: int) -> None:
        if low <= self.low:
            return
        self.low = low
        self._add(-count, -size)
        self._drop_runs()

    def _add(self, count: int, size: int) -> None:
        totals = self.totals
        self.count += count
        self.bytes += size
        totals.count += count
        totals.bytes += size

    def leave(self) -> None:
        """The log is gone: it counts no more in the totals."""
        self.totals.count -= self.count
        self.totals.bytes -= self.bytes

    def _drop_runs(self) -> None:
        keep = 0
        while keep < len(self.runs) and self.runs[keep].last_seq < self.low:
            keep += 1
        if keep:
            self._release(self.runs[:keep])
            del self.runs[:keep]
        if self.tail is not None and self.tail.last_seq < self.low:
            self.tail = None
        self.holes = [hole for hole in self.holes if hole.gap_to >= self.evict_floor]

    def _release(self, runs: list[Run]) -> None:
        # Memory goes at once; only what is in a file has an owner that wants to know.
        self.released += [run for run in runs if not isinstance(run, MemoryRun)]

    def _live_between(self, start: int, end: int) -> tuple[int, int]:
        """Count and bytes of live records with start <= seq < end."""
        count = size = 0
        for run in self.parts_from(start):
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

    def _last_live(self, start: int, end: int) -> int | None:
        """The highest live seq with start <= seq < end."""
        for run in self._parts_back_from(end - 1):
            if run.last_seq < start:
                break
            seq = min(end - 1, run.last_seq)
            while run.live_count and seq >= max(start, run.first_seq):
                first_seq, _, marks = _marks_at(run, seq)
                if marks is None:
                    return seq
                alive = np.flatnonzero(np.frombuffer(marks, np.uint8)[: seq - first_seq + 1] != DEAD)
                if len(alive):
                    found = first_seq + int(alive[-1])
                    return found if found >= start else None
                seq = first_seq - 1
        return None

    # ---- what is there

    def earliest_seq(self) -> int:
        """The first live seq, or `next_seq` when there is none."""
        seq = max(self._earliest, self.low)
        for run in self.parts_from(seq):
            found = run.first_live(max(seq, run.first_seq)) if run.live_count else None
            if found is not None:
                self._earliest = found
                return found
        self._earliest = self.next_seq
        return self.next_seq

    def loss_reason(self, gap_from: int) -> Reason:
        """Why something from `gap_from` up to the evict floor was lost."""
        reasons = [reason for reason, last in self.lost.items() if last >= gap_from]
        return reasons[0] if len(reasons) == 1 else Reason.MIXED

    # ---- appends

    def append(self, records: EncodedRecords, config: TopicConfig) -> Floors | None:
        """Take a batch in, evict what the caps ask for; the floors if they moved and are stored. Input is checked."""
        self._store(records)
        self.next_seq = records.first_seq + records.count
        return self._grown(records.count, records.payload_bytes, records.ts, config)

    def append_plain(self, ts: int, text: Buffer, data_len: int, config: TopicConfig) -> Floors | None:
        """`append` of one record without tag, node and meta, whose text gives it `next_seq`."""
        self._store_plain(ts, text, data_len)
        return self._grown(1, data_len, ts, config)

    def _grown(self, count: int, size: int, ts: int, config: TopicConfig) -> Floors | None:
        self._add(count, size)
        if ts > self.last_ts:
            self.last_ts = ts
        self.last_write_ts = ts
        moved = (config.cap_records or config.cap_bytes) and self.evict(config)
        if config.durability is _EPHEMERAL:
            return None
        self.logged_seq = self.next_seq - 1
        return self.take_floors() if moved else None

    def evict(self, config: TopicConfig) -> bool:
        """Move the floor so that the caps hold; whether it moved."""
        over_count = self.count - config.cap_records if config.cap_records else 0
        over_bytes = self.bytes - config.cap_bytes if config.cap_bytes else 0
        if over_count <= 0 and over_bytes <= 0:
            return False
        try:
            seq, count, size = self._pass_live(max(over_count, 0), max(over_bytes, 0))
        except Damaged:
            # The cap is exceeded until the damage is repaired; readers of those records are told of it.
            return False
        self.lost[Reason.CAP] = max(self.lost.get(Reason.CAP, 0), seq - 1)
        self.evict_floor = max(self.evict_floor, seq)
        self._raise_low(seq, count, size)
        self.floors_unstored = True
        return True

    def _pass_live(self, need_count: int, need_bytes: int) -> tuple[int, int, int]:
        """The seq behind the oldest live records that hold so much, and what they hold."""
        count = size = 0
        seq = self.low
        for run in self.parts_from(self.low):
            seq, passed, passed_bytes = run.seq_at_live(need_count - count, need_bytes - size, max(seq, run.first_seq))
            count += passed
            size += passed_bytes
            if count >= need_count and size >= need_bytes:
                break
        return seq, count, size

    def apply_appended(self, fact: Appended) -> None:
        """Replay: the same change, with the outcome of the eviction taken from the fact."""
        records = fact.records
        if records.first_seq > self.next_seq:
            self.add_hole(self.next_seq, records.first_seq - 1, Reason.DAMAGE)
        self.append(records, NO_CAPS)
        if fact.floors is not None:
            self.apply_floors(fact.floors)
        self.granted_ceiling = max(self.granted_ceiling, fact.ceiling)
        self.remember(fact)

    def apply_plain(self, ceiling: int, ts: int, text: Buffer, data_len: int) -> None:
        """`apply_appended` of one record without tag, node and meta, that follows on and has nothing beside it.

        It is counted with all the others when the replay has ended.
        """
        self.logged_seq = self.next_seq
        self._store_plain(ts, text, data_len)
        if ts > self.last_ts:
            self.last_ts = ts
        self.last_write_ts = ts
        if ceiling > self.granted_ceiling:
            self.granted_ceiling = ceiling

    def remember(self, fact: Appended) -> None:
        """What a batch leaves behind beside its records: its dedupe key, and the stage it came from."""
        records = fact.records
        if fact.dedupe_key is not None:
            self.dedupe.record(fact.dedupe_key, records.ts, records.first_seq, records.count)
        if fact.stage_log_id:
            first, count = self.published.get(fact.stage_log_id, (records.first_seq, 0))
            self.published[fact.stage_log_id] = (first, count + records.count)

    def _store(self, records: EncodedRecords) -> None:
        if records.count > TAIL_BATCH_RECORDS_MAX or len(records.text) > TAIL_BATCH_BYTES_MAX:
            # A batch of a block's order is a block already: copying it into the tail would buy nothing.
            self.freeze_tail()
            self.runs.append(MemoryRun(records.as_block(), None, records.payload_bytes))
            return
        tail = self.tail
        if tail is None or not tail.takes(records.first_seq, records.ts, records.count, len(records.text)):
            self.freeze_tail()
            tail = self.tail = Tail(records.first_seq, records.ts)
        tail.extend(records)

    def _store_plain(self, ts: int, text: Buffer, data_len: int) -> None:
        tail, seq = self.tail, self.next_seq
        if tail is None or len(text) > TAIL_BATCH_BYTES_MAX or not tail.add(seq, ts, text, data_len):
            self._store(EncodedRecords.plain(seq, ts, bytes(text), data_len))
        self.next_seq = seq + 1

    def freeze_tail(self) -> None:
        if self.tail is not None:
            self.runs.append(self.tail.freeze())
            self.tail = None

    def apply(self, fact: LogFact) -> None:
        """Replay of every fact that is not an append."""
        match fact:
            case Deleted():
                self.apply_deleted(fact)
            case FloorsMoved():
                self.apply_floors(fact.floors())
            case SeqsSkipped():
                self.add_hole(fact.gap_from, fact.gap_to, fact.reason)
            case HeadMoved():
                if fact.next_seq > self.next_seq:
                    self.add_hole(self.next_seq, fact.next_seq - 1, Reason.RESTART)
            case _:
                assert_never(fact)

    # ---- floors, holes, deletes

    def floors(self) -> Floors:
        return Floors(self.low, self.evict_floor, dict(self.lost))

    def take_floors(self) -> Floors:
        """The floors for a fact that is about to be stored."""
        self.floors_unstored = False
        return self.floors()

    def apply_floors(self, floors: Floors) -> None:
        """Replay. What is counted is counted anew when the replay has ended."""
        self.low = max(self.low, floors.low)
        self.evict_floor = max(self.evict_floor, floors.evict_floor)
        for reason, last in floors.lost.items():
            self.lost[reason] = max(self.lost.get(reason, 0), last)
        self._drop_runs()

    def recount(self) -> None:
        """Count what is live: marks that reached a segment before a crash are seen here and not in the facts."""
        count = size = 0
        for run in self.parts_from(self.low):
            try:
                live = run.live_from(self.low) if run.first_seq < self.low else (run.live_count, run.live_bytes)
            except Damaged:
                # Whoever reads the records at the floor is told of the damage.
                live = run.live_count, run.live_bytes
            count += live[0]
            size += live[1]
        self._add(count - self.count, size - self.bytes)

    def add_hole(self, gap_from: int, gap_to: int, reason: Reason) -> None:
        """Seqs from here to there will never be delivered; the next record comes behind them."""
        if self.holes and self.holes[-1].gap_to + 1 >= gap_from and self.holes[-1].reason == reason:
            self.holes[-1] = Hole(self.holes[-1].gap_from, gap_to, reason)
        else:
            self.holes.append(Hole(gap_from, gap_to, reason))
        if len(self.holes) > HOLES_MAX:
            # The two oldest become one: the range told to a reader grows, it never shrinks.
            first, second = self.holes[:2]
            self.holes[:2] = [Hole(first.gap_from, second.gap_to, Reason.MIXED)]
        self.next_seq = max(self.next_seq, gap_to + 1)

    def matching(self, match: Match, below: int) -> list[tuple[Run, U64]]:
        """Live records by tag, with `low <= seq < below`, run by run."""
        found = []
        for run in self.parts_from(self.low):
            if run.first_seq >= below:
                break
            seqs = run.find(match, below)
            if run.first_seq < self.low:
                seqs = seqs[int(np.searchsorted(seqs, np.uint64(self.low))) :]
            if len(seqs):
                found.append((run, seqs))
        return found

    def apply_deleted(self, fact: Deleted) -> tuple[int, list[Run]]:
        """Remove what the fact names among what is here; how many records, and the runs they were in."""
        before = self.count
        bound = min(fact.bound, self.next_seq)
        if fact.match is None:
            touched = [run for run in self.parts_from(self.low) if run.first_seq < bound]
            self._raise_low(bound, *self._live_between(self.low, bound))
        else:
            touched = []
            for run, seqs in self.matching(fact.match, bound):
                count, size = run.mark(seqs)
                self._add(-count, -size)
                touched.append(run)
            self._drop_dead_runs()
        return before - self.count, touched

    def _drop_dead_runs(self) -> None:
        """A run without a live record is dropped whole."""
        dead = [run for run in self.runs if not run.live_count]
        if dead:
            self._release(dead)
            self.runs = [run for run in self.runs if run.live_count]


def _marks_at(run: Run, seq: int) -> tuple[int, int, Marks | None]:
    """First seq, last seq and marks of the block that holds `seq`; a tail need not cut one out for that."""
    if isinstance(run, Tail):
        return run.first_seq, run.last_seq, run.marks
    block, marks = run.block_at(seq)
    return block.first_seq, block.last_seq, marks
