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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from topics.core import happened, live, retention
from topics.core.block import Buffer
from topics.core.dedupe import Dedupe
from topics.core.encoded import EncodedRecords
from topics.core.facts import Appended, Deleted, Floors, LogFact
from topics.core.group import Groups
from topics.core.heaprecord import remember_keys
from topics.core.hole import NO_ENTRIES, Hole, add_last
from topics.core.inflow import Inflow
from topics.core.protect import Holds
from topics.core.queue import Queue
from topics.core.run import U64, MemoryRun, Run
from topics.core.tail import Tail
from topics.core.totals import Totals
from topics.core.transit import Transit
from topics.core.volatile import Volatile
from topics.core.waits import due_seqs, put_waits
from topics.errors import Damaged
from topics.limits import TAIL_BATCH_BYTES_MAX, TAIL_BATCH_RECORDS_MAX
from topics.model import Durability, Reason, TopicConfig

SEQ_BASE = 1
NO_CAPS = TopicConfig()
# Looking a member up in its enum takes several times as long as comparing it: named once for the paths of every write.
_EPHEMERAL: Final = Durability.EPHEMERAL


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
    lost: Mapping[Reason, int] = field(default_factory=lambda: NO_ENTRIES)
    floors_unstored: bool = False
    """Time or a cap moved the floors, and no fact says where they are now."""
    holes: Sequence[Hole] = ()
    count: int = 0
    bytes: int = 0
    last_ts: int = 0
    last_write_ts: int | None = None
    volatile: Volatile | None = None
    """Which records are in memory only; None when none ever was."""
    granted_ceiling: int = 0
    """The highest seq that any fact allowed to be acked before the next sync."""
    _dedupe: Dedupe | None = None
    queue: Queue | None = None
    """Who has which of the records; None unless they are jobs."""
    _transit: Transit | None = None
    _holds: Holds | None = None
    _groups: Groups | None = None
    published: Mapping[int, tuple[int, int]] = field(default_factory=lambda: NO_ENTRIES)
    """Stages whose records are in this log while their batch is not finished: stage log -> first seq, count."""
    waits: bytearray | None = None
    """Of a stage: how long its records wait once they are published; None when none does."""
    inflow: Inflow | None = None
    """What routers brought here; None when none ever did."""
    released: Sequence[Run] = ()
    """Runs that hold nothing any more, for the owner of their files to take."""
    kept: list[Run] | None = None
    """During a replay: what it dropped, of which other logs may have copies that are not made yet."""
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
            self._dedupe = Dedupe(self.queue is not None and self.queue.keeps_times)
        return self._dedupe

    @property
    def remembers(self) -> bool:
        return self._dedupe is not None

    @property
    def transit(self) -> Transit:
        """Moves to and from other logs; made when the first one comes."""
        if self._transit is None:
            self._transit = Transit()
        return self._transit

    @property
    def has_moves(self) -> bool:
        return self._transit is not None

    @property
    def holds(self) -> Holds:
        """What retention has to leave for whom; made when the first holder comes."""
        if self._holds is None:
            self._holds = Holds()
        return self._holds

    @property
    def has_holders(self) -> bool:
        return self._holds is not None

    @property
    def groups(self) -> Groups:
        """The consumer groups that read this; made when the first one comes."""
        if self._groups is None:
            self._groups = Groups()
        return self._groups

    @property
    def has_groups(self) -> bool:
        return self._groups is not None

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

    def run_at(self, seq: int) -> Run | None:
        """The run that holds `seq`; None when it is below the floor, or in none."""
        run: Run | None = self.tail
        if run is None or seq < run.first_seq:
            index = self.run_index(seq)
            run = self.runs[index] if index < len(self.runs) else None
        return run if run is not None and max(run.first_seq, self.low) <= seq <= run.last_seq else None

    def parts_from(self, seq: int) -> Iterator[Run]:
        """The runs that may hold records from `seq` on. One at a time: who needs the first must not pay for all."""
        runs = self.runs
        for index in range(self.run_index(seq), len(runs)):
            yield runs[index]
        if self.tail is not None and self.tail.last_seq >= seq:
            yield self.tail

    def parts_back_from(self, seq: int) -> Iterator[Run]:
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
            retention.expire(self, config, cutoff)
        except Damaged:
            # Nothing has moved yet. Whoever reads there is told of the damage.
            return

    def _oldest_ts(self) -> int:
        if self.runs:
            return self.runs[0].first_ts
        return self.tail.first_ts if self.tail is not None else self.last_ts + 1

    def lose(self, floor: int, last_live: int | None, count: int, size: int, reason: Reason) -> None:
        """Everything below `floor` is lost: so much that was live. What is already deleted is not counted as loss."""
        if last_live is not None:
            self.note_lost(reason, last_live)
            self.evict_floor = max(self.evict_floor, last_live + 1)
        self._raise_low(floor, count, size)
        self.floors_unstored = True

    def note_lost(self, reason: Reason, seq: int) -> None:
        self.lost = {**self.lost, reason: max(self.lost.get(reason, 0), seq)}

    def _raise_low(self, low: int, count: int, size: int) -> None:
        if low <= self.low:
            return
        self.low = low
        self._add(-count, -size)
        self._drop_runs()
        if self.queue is not None:
            self.queue.forget_below(low)

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
            self._keep([self.tail])
            self.tail = None
        if self.holes:
            self.holes = [hole for hole in self.holes if hole.gap_to >= self.evict_floor]

    def _release(self, runs: list[Run]) -> None:
        # Memory goes at once; only what is in a file has an owner that wants to know.
        stored = [run for run in runs if not isinstance(run, MemoryRun)]
        if stored:
            self.released = [*self.released, *stored]
        self._keep(runs)

    def _keep(self, runs: list[Run]) -> None:
        if self.kept is not None:
            self.kept += runs

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
        return self.grown(records.count, records.payload_bytes, records.ts, config)

    def append_plain(self, ts: int, text: Buffer, data_len: int, config: TopicConfig) -> Floors | None:
        """`append` of one record without tag, node and meta, whose text gives it `next_seq`."""
        self._store_plain(ts, text, data_len)
        return self.grown(1, data_len, ts, config)

    def grown(self, count: int, size: int, ts: int, config: TopicConfig) -> Floors | None:
        """So much was put behind the last record; the caps act, and the answer is that of `append`."""
        self._add(count, size)
        if ts > self.last_ts:
            self.last_ts = ts
        self.last_write_ts = ts
        moved = (config.cap_records or config.cap_bytes) and self.evict(config)
        return self.take_floors() if moved and config.durability is not _EPHEMERAL else None

    def evict(self, config: TopicConfig) -> bool:
        """Move the floor so that the caps hold; whether it moved."""
        over_count = self.count - config.cap_records if config.cap_records else 0
        over_bytes = self.bytes - config.cap_bytes if config.cap_bytes else 0
        if over_count <= 0 and over_bytes <= 0:
            return False
        try:
            return retention.evict(self, config, over_count, over_bytes)
        except Damaged:
            # The cap is exceeded until the damage is repaired; readers of those records are told of it.
            return False

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
        self._store_plain(ts, text, data_len)
        if ts > self.last_ts:
            self.last_ts = ts
        self.last_write_ts = ts
        if ceiling > self.granted_ceiling:
            self.granted_ceiling = ceiling

    def remember(self, fact: Appended) -> None:
        """What a batch leaves behind beside its records: its dedupe key, its delay, the stage or move it came from."""
        records = fact.records
        if fact.dedupe_key is not None:
            self.dedupe.record(fact.dedupe_key, records.ts, records.first_seq, records.count)
        if fact.keyed:
            remember_keys(self.dedupe, records)
        if fact.stage_log_id:
            first, count = self.published.get(fact.stage_log_id, (records.first_seq, 0))
            self.published = {**self.published, fact.stage_log_id: (first, count + records.count)}
        if fact.not_before_ms and self.queue is not None:
            self.queue.leases.delay(range(records.first_seq, records.last_seq + 1), fact.not_before_ms)
        if fact.waits:
            self._remember_waits(fact)
        if fact.move is not None:
            self.transit.came(fact.move)

    def _remember_waits(self, fact: Appended) -> None:
        first_seq = fact.records.first_seq
        if self.queue is not None:
            for due_ms, seqs in due_seqs(fact.waits, first_seq):
                self.queue.leases.delay(seqs, due_ms)
        else:
            self.waits = bytearray() if self.waits is None else self.waits
            put_waits(self.waits, fact.waits, first_seq - SEQ_BASE)

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
            if self.tail.live_count:
                self.runs.append(self.tail.freeze())
            else:
                self._keep([self.tail])
            self.tail = None

    def apply(self, fact: LogFact) -> None:
        """The change that a fact stands for; not of an append, which has its own."""
        happened.apply(self, fact)

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
            self.note_lost(reason, last)
        self._drop_runs()
        if self.queue is not None:
            self.queue.forget_below(self.low)

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
        if self.queue is not None:
            self.queue.settle(self)
        if self._groups is not None:
            self._groups.settle(self)

    def add_hole(self, gap_from: int, gap_to: int, reason: Reason) -> None:
        """Seqs from here to there will never be delivered; the next record comes behind them."""
        if not isinstance(self.holes, list):
            self.holes = []
        add_last(self.holes, gap_from, gap_to, reason)
        if self.queue is not None:
            self.queue.skip(max(0, gap_to + 1 - self.next_seq))
        self.next_seq = max(self.next_seq, gap_to + 1)

    def apply_deleted(self, fact: Deleted) -> tuple[int, list[Run]]:
        """Remove what the fact names among what is here; how many records, and the runs they were in."""
        before = self.count
        bound = min(fact.bound, self.next_seq)
        if fact.match is None:
            touched = [run for run in self.parts_from(self.low) if run.first_seq < bound]
            self._raise_low(bound, *live.live_between(self, self.low, bound))
        else:
            touched = []
            for run, seqs in live.matching(self, fact.match, bound):
                self._mark(run, seqs)
                touched.append(run)
            self._drop_dead(touched)
        return before - self.count, touched

    def delete_seqs(self, seqs: Iterable[int]) -> None:
        """Remove single records, as far as they are here; the cost is that of what is named."""
        places = self._places(sorted(set(seqs)))
        sizes = None if self.queue is None else self.queue.sizes_of(places)
        for run, found in places if len(places) > 1 and sizes is None else ():
            for seq in found:
                live.marks_at(run, seq)  # May be damaged: before anything has changed.
        for run, found in places:
            self._mark(run, found, sizes)
        self._drop_dead([run for run, _ in places])

    def _places(self, seqs: list[int]) -> list[tuple[Run, list[int]]]:
        """The runs that hold these, each with those that it holds."""
        run = self.run_at(seqs[0]) if seqs else None
        if run is not None and seqs[-1] <= run.last_seq:
            return [(run, seqs)]
        places: list[tuple[Run, list[int]]] = []
        last_seq = 0
        for seq in seqs:
            if seq > last_seq:
                run = self.run_at(seq)
                if run is None:
                    continue
                places.append((run, []))
                last_seq = run.last_seq
            places[-1][1].append(seq)
        return places

    def _mark(self, run: Run, seqs: U64 | list[int], sizes: Mapping[int, int] | None = None) -> None:
        count, size = run.mark(seqs, sizes)
        self._add(-count, -size)
        if self.queue is not None:
            self.queue.forget(seqs if isinstance(seqs, list) else seqs.tolist())

    def _drop_dead(self, touched: list[Run]) -> None:
        """A run without a live record is dropped whole."""
        dead = [run for run in touched if not run.live_count and run is not self.tail]
        for run in dead:
            del self.runs[self.run_index(run.first_seq)]
        self._release(dead)
