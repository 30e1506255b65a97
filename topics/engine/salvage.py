"""Everything that can still be read of a damaged directory, as the state of an engine.

It is the order of an ordinary recovery (snapshot, segments, WAL), but nothing that is unreadable stops it:

    snapshot   as it is when it is undamaged. Otherwise the images that may not be the newest are only lower bounds:
               whose records there are is taken from the sections of all segments and from their flags, and what the WAL
               holds already is not taken twice. What users may meet again because of that is told (`doubts.py`)
    segments   what the images name, or all; blocks that cannot be read become holes
    WAL        every readable fact. The seqs that a log misses between two of them become a hole; behind its last one
               the unreadable bytes bound how many seqs may have been assigned, and those are never assigned again
    topics     whose creation is lost are restored: under the name a section or a later fact knows, or a made-up one

A healthy directory gives the same state as opening it and not one finding, so this is also how it is checked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from topics.core import routing
from topics.core.derive import LostCopies
from topics.core.facts import StageDropped, TopicDropped
from topics.core.heap import Heap
from topics.core.heaporder import Order
from topics.core.hole import Hole
from topics.core.log import Log
from topics.core.machine import Machine
from topics.core.run import Run
from topics.engine import images, routerimages
from topics.engine.checkpoint import Checkpointer
from topics.engine.doubts import Doubts
from topics.engine.findings import Findings, Kept, Kind, Lost, MayBeBack
from topics.engine.images import LogImage, RunImage
from topics.engine.losttopics import LostTopics
from topics.engine.owners import Owners
from topics.engine.recovery import Options
from topics.engine.remains import OnBytes, Remains, missing_ranges
from topics.engine.replay import Replay
from topics.engine.restore import Restorer, check_flags, check_pieces, check_place, check_salt
from topics.engine.trust import Trust
from topics.errors import Damaged
from topics.model import Reason, TopicConfig
from topics.storage.commitlog import Covered
from topics.storage.segmentfile import SectionKey, data_name, number_of
from topics.storage.segmentrun import SegmentRun
from topics.storage.store import Store
from topics.storage.walrecovery import WalRecovery

SEQS_SKIPPED: Final = 1 << 23
"""Seqs passed over in a log of which neither the snapshot nor the WAL tells the last one: its last records may be gone
with their segments. It is 256 MiB / 32 bytes: what may come between two checkpoints, by the size of a small record."""
IDS_SKIPPED = 1 << 20
"""Ids and epochs passed over when some may have been given out that nothing tells of any more."""


TOPICS_MISSING = (
    "entries that name topics are lost: a topic that nothing else names is here as recovered-<log>, or not at "
    "all when it had no record"
)
REBUILT = "what it names is rebuilt from the segments and the WAL"


class Salvage:
    def __init__(self, store: Store, options: Options, rebuild_indexes: bool, on_bytes: OnBytes) -> None:
        self.found = Findings()
        self.state: dict[bytes, bytes] = {}
        """The images the snapshot holds, as far as they can be read."""
        self.now_ms = store.clock.now_ms()
        self._store = store
        self._options = options
        self._on_bytes = on_bytes
        self._remains = Remains(store, rebuild_indexes, self.found, on_bytes)
        self._trust = Trust()
        self._ids_lost = self._meta_lost = False
        self._lost_copies: list[LostCopies] = []
        self._appended: Collection[int] = ()
        """Logs that have records in the WAL."""
        self._begin()

    def _begin(self) -> None:
        self.machine = Machine(self._options.bounds)
        self.positions: dict[int, int] = {}
        self.checkpointer = Checkpointer(self._store, self.machine, self.positions, self._options.segments)
        self._topics = LostTopics(self.machine, (), self.found, self.now_ms)
        self._holes_before: dict[int, list[Hole]] = {}
        """The holes that the image of a log had; logs without an image are not in it."""
        self._doubts = Doubts(self.machine)
        self._gone_ranges: dict[int, list[tuple[int, int]]] = {}
        """Sections without a live record, by log: what they held is gone, and is not lost."""
        self._unfound: dict[int, list[tuple[int, int]]] = {}
        """Seqs that images name which may be out of date, by log."""
        self._passed: dict[int, int] = {}
        """From which seq on the floor was moved, because it is not known what of it expired and what was deleted."""
        self._named: set[int] = set()
        """Segments that images name."""
        self._salts: dict[int, int] = {}
        """Of the segments that images name. No number is given twice, so an old image tells as much as a new one."""

    def read(self) -> WalRecovery:
        """Read everything; the WAL's recovery, to be started anew from what was saved."""
        self._remains.read()
        in_segments = list(self.found.items)
        self._load_snapshot()
        recovery = self._replay()
        number, needed = self._store.snapshots.number, recovery.needed_snapshot_no
        if self._snapshot_is_missing(recovery):
            # Only the WAL shows that the newest snapshot is missing. With that known, begin again.
            self.release()
            self._remains.take_back()
            self.found.items[:] = in_segments
            self.found.notes.clear()
            self._trust.lose_newest()
            self._begin()
            self._load_snapshot()
            recovery = self._replay()
            if needed > number:
                place = f"{self._store.directory}/snapshots"
                message = f"{place}: snapshot {needed} is missing, which the WAL needs; the newest is {number}"
                self.found.add(Kind.SNAPSHOT, Damaged(message, file=place, offset=0), REBUILT)
                self._store.snapshots.number = needed
        if self._trust.whole:
            self._pass_over_leftovers()
        self._settle(recovery)
        return recovery

    def _snapshot_is_missing(self, recovery: WalRecovery) -> bool:
        """Segments without any snapshot are what a process left that died in its first checkpoint, if the WAL is whole
        and has dropped nothing; a WAL that is damaged cannot vouch for that."""
        number = self._store.snapshots.number
        if recovery.needed_snapshot_no > number:
            return True
        return not number and bool(self._remains.segments) and bool(recovery.losses or not recovery.shards_on_disk)

    def _pass_over_leftovers(self) -> None:
        """Segments that no image names are files that the next start removes, whole or not: a checkpoint, a merge or
        an erasure that was cut short leaves them."""
        leftover = {n: remnant.path for n, remnant in self._remains.segments.items() if n not in self._named}
        if leftover:
            self.found.items = [item for item in self.found.items if number_of(_name(item.file)) not in leftover]
            self.found.notes += [f"{path} is in no snapshot; the next start removes it" for path in leftover.values()]

    def release(self) -> None:
        """Let go of the segments: what was read is not used any more."""
        for log in self.machine.logs.values():
            for run in log.runs:
                if isinstance(run, SegmentRun):
                    self._store.release(run)

    # ---- the snapshot and the segments

    def _load_snapshot(self) -> None:
        self.state, damages = self._store.snapshots.salvage()
        for damage in damages:
            self.found.add(Kind.SNAPSHOT, damage, REBUILT)
            self._trust.lose(damage.detail.get("lost_keys"))
        self._trust.sure = self._store.snapshots.sure
        restorer = Restorer(self._store, self.machine, self.checkpointer, self.positions, self._take_runs)
        restorer.load(self.state)
        self.now_ms = restorer.now_ms
        self._store.next_segment = max([self._store.next_segment, *(n + 1 for n in self._remains.segments)])
        if not self._trust.whole:
            self._drop_what_is_gone()
            self._leave_out_strangers()
        self._topics = LostTopics(self.machine, self._remains.keys(), self.found, restorer.now_ms)
        if not self._trust.whole:
            self._adopt_sections()

    def _take_runs(self, log: Log, image: LogImage) -> list[Run]:
        """The runs an image names, or what is left of them."""
        self._holes_before[log.log_id] = list(log.holes)
        if any(images.chunk_key(log.log_id, number) not in self.state for number in image.chunks):
            self._doubts.of_answers(log)
        self._named.update(place.segment for place in image.runs)
        self._salts |= {place.segment: place.salt for place in image.runs if place.salt}
        if not self._is_sure(log.log_id):
            self._unfound[log.log_id] = [(place.first_seq, place.last_seq) for place in image.runs]
            return []
        found: list[Run] = []
        for place in image.runs:
            runs = self._runs_at(log, place)
            found += runs
            for gap in missing_ranges(max(place.first_seq, log.low), place.last_seq, _bounds(runs)):
                _insert_hole(log, *gap)
        return found

    def _runs_at(self, log: Log, place: RunImage) -> list[Run]:
        """The run that an image names, or what is left of it."""
        remnant = self._remains.segments.get(place.segment)
        if remnant is None:
            path = f"{self._store.segment_dir}/{data_name(place.segment)}"
            damage = Damaged(
                f"{path} is missing, which holds seqs {place.first_seq}..{place.last_seq} of topic {log.topic}",
                file=path,
                topic=log.topic,
                first_seq=place.first_seq,
                last_seq=place.last_seq,
            )
            self.found.add(Kind.SEGMENT, damage, "its records become a hole")
            return []
        try:
            if self._remains.usable(place.segment):
                check_place(self._store, log, place)
                return [self._whole_run(log, place)]
            pieces = self._remains.pieces(place.segment, place.section, log.log_id)
            if remnant.whole:
                check_pieces(remnant.path, log, place, pieces)
            if remnant.salt is not None:
                check_salt(remnant.path, remnant.salt, log, place)
        except Damaged as damage:
            self.found.add(Kind.SEGMENT, damage, "the records that it held become a hole")
            return []
        return pieces

    def _whole_run(self, log: Log, place: RunImage) -> SegmentRun:
        run = self._store.run(place.segment, place.section)
        run.doubt_flags()
        try:
            check_flags(self._store, log, run, place)
        except Damaged as doubt:
            self.found.add(Kind.MARKS, doubt, "the flags in the file are believed: deleted records may be back")
            self._doubts.of_records(log, run.first_seq, run.last_seq)
        return run

    def _leave_out_strangers(self) -> None:
        """Segments of another directory, as far as what is left of the snapshot and the WAL tell."""
        owners = Owners(self.machine, self._wal_recovery())
        for remnant in list(self._remains.segments.values()):
            try:
                owners.check(remnant, self._salts.get(remnant.number))
            except Damaged as damage:
                self.found.add(Kind.SEGMENT, damage, "nothing of it is used; a copy of it is put aside")
                self._remains.leave_out(remnant)

    def _is_sure(self, log_id: int) -> bool:
        """Whether the image that a log has, or that there is none, is the newest of what the snapshot said."""
        key = images.log_key(log_id)
        return self._trust.is_newest(key) and (log_id in self._holes_before or key not in self.state)

    def _adopt_sections(self) -> None:
        """Without an image to go by: every section belongs to the log it names. Newer segments come first."""
        torn: set[int] = set()
        """Logs that a newer segment may have held more of: what an older one has instead may be out of date."""
        for number in sorted(self._remains.segments, reverse=True):
            remnant = self._remains.segments[number]
            for log_id, key, runs in self._remains.whole_runs(remnant, lambda log_id: not self._is_sure(log_id)):
                log = self.machine.logs.get(log_id)
                if log is None and not self._trust.knows_topics and not self._was_dropped(key):
                    log = self._topics.of_section(log_id, key)
                for run in runs:
                    self._adopt(log, run, remnant.tells_gone and log_id not in torn)
            if not remnant.whole:
                torn |= {log_id for log_id, _ in remnant.sections.values()}
        for log in self.machine.logs.values():
            if not self._is_sure(log.log_id):
                self._close_ranks(log)

    def _was_dropped(self, key: SectionKey | None) -> bool:
        """Whether an undamaged entry tells that the topic of a section is gone."""
        if key is None:
            return False
        named = images.topic_key(key.topic)
        return named not in self.state and self._trust.is_newest(named)

    def _adopt(self, log: Log | None, run: Run, certain: bool) -> None:
        """Take a run that does not overlap what a newer segment gave already: after a merge both may be there."""
        if log is None or run.last_seq < log.low or any(_overlap(run, other) for other in log.runs):
            self._let_go(run)
            return
        log.last_ts = max(log.last_ts, run.last_ts)
        if run.live_count:
            log.runs.append(run)
            log.runs.sort(key=lambda run: run.first_seq)
            if not certain:
                self._doubts.of_records(log, run.first_seq, run.last_seq)
            return
        if certain:
            self._gone_ranges.setdefault(log.log_id, []).append((run.first_seq, run.last_seq))
        log.next_seq = max(log.next_seq, run.last_seq + 1)
        self._let_go(run)

    def _let_go(self, run: Run) -> None:
        if isinstance(run, SegmentRun):
            self._store.release(run)

    def _close_ranks(self, log: Log) -> None:
        """What lies between the sections of a log, and before the first one, is a hole or below the floor."""
        gone = self._gone_ranges.get(log.log_id, [])
        if not log.runs and not gone:
            # No file has what its image names.
            for first_seq, last_seq in self._unfound.get(log.log_id, ()):
                for gap in missing_ranges(max(first_seq, log.low), last_seq, _hole_bounds(log)):
                    _insert_hole(log, *gap)
            return
        log.next_seq = max([log.next_seq, *(run.last_seq + 1 for run in log.runs)])
        log.last_write_ts = max(log.last_write_ts or 0, log.last_ts)
        first_seq = log.earliest_seq()
        if log.log_id not in self._holes_before:
            log.low = log.evict_floor = first_seq
            if first_seq > 1:
                log.lost = {**log.lost, Reason.DAMAGE: first_seq - 1}
        elif first_seq > log.low and self._expires(log):
            # Some of it may have expired, of which readers would have been told.
            self._passed[log.log_id] = log.low
            log.lost = {**log.lost, Reason.DAMAGE: first_seq - 1}
            log.low = log.evict_floor = first_seq
        present = sorted([*_bounds(log.runs), *gone, *_hole_bounds(log)])
        for gap in missing_ranges(log.low, log.next_seq - 1, present):
            _insert_hole(log, *gap)

    def _expires(self, log: Log) -> bool:
        topic = self.machine.topics.get(log.topic)
        config = topic.config if topic is not None else TopicConfig()
        return bool(config.ttl_ms or config.cap_records or config.cap_bytes)

    # ---- the WAL

    def _wal_recovery(self) -> WalRecovery:
        store = self._store
        all_known = self._trust.whole or (self._trust.knows_owners and self._trust.is_newest(images.META_KEY))
        covered = Covered(
            self.checkpointer.covered | self._trust.gone_logs(self.state), self.machine.next_log_id if all_known else 0
        )
        return WalRecovery(
            store.fs,
            store.wal_dir,
            self._options.wal,
            store.clock,
            store.salt_source,
            covered,
            store.snapshots.number,
            salvage=True,
        )

    def _drop_what_is_gone(self) -> None:
        """Topics and stages whose own end cannot be read, and that of their logs can."""
        gone = self._trust.gone_logs(self.state).keys()
        for topic in list(self.machine.topics):
            if not gone.isdisjoint(topic.log_ids()):
                self.machine.apply_meta(TopicDropped(topic.name))
        for stage in list(self.machine.batches.stages.values()):
            if stage.log.log_id in gone:
                self.machine.apply_meta(StageDropped(stage.stage))

    def _replay(self) -> WalRecovery:
        store = self._store
        number = store.snapshots.number
        recovery = self._wal_recovery()
        replay = Replay(
            store.fs,
            recovery,
            self.machine,
            self.positions,
            self._topics,
            self.found,
            self._options.wal.file_bytes,
            self._trust.whole,
        )
        if (number or self._remains.segments) and not recovery.shards_on_disk:
            damage = Damaged(f"{store.wal_dir}: the WAL is missing", file=store.wal_dir, offset=0)
            self.found.add(Kind.WAL, damage, "begun anew; what it held is lost")
            replay.lose_all()
        replay.run(self._on_bytes)
        machine_logs = self.machine.logs
        self._meta_lost = replay.meta_lost
        self._ids_lost = replay.meta_lost or not self._trust.whole
        self._appended = replay.appended
        for log_id in (replay.unsettled | replay.adopted) & machine_logs.keys():
            self._doubts.of_facts(machine_logs[log_id])
        if replay.meta_lost:
            self._doubts.of_topics(self.machine.topics)
        self._lost_copies = replay.lost_copies
        return recovery

    # ---- the end

    def _settle(self, recovery: WalRecovery) -> None:
        machine = self.machine
        for log_id, tail in recovery.tails.items():
            self.positions[log_id] = max(self.positions.get(log_id, 0), tail)
        if self._ids_lost:
            machine.next_log_id += IDS_SKIPPED
            machine.next_epoch += IDS_SKIPPED
        if self.found.items:
            self._forget_places()
        for log in machine.logs.values():
            if log.epoch and not self._is_sure(log.log_id) and log.log_id not in self._appended:
                log.add_hole(log.next_seq, log.next_seq + SEQS_SKIPPED - 1, Reason.DAMAGE)
            if recovery.last_stop.may_have_lost and log.granted_ceiling > log.head_seq:
                log.add_hole(log.next_seq, log.granted_ceiling, Reason.RESTART)
            log.recount()
            log.visible_seq = log.ready_seq = log.synced_seq = log.head_seq
            self.checkpointer.covered.setdefault(log.log_id, 0)
            self.now_ms = max(self.now_ms, log.last_ts)
        for name in routing.prune(machine):
            self.found.notes.append(f"router {name} leads from or to a topic that is lost: it is lost with it")
        for batch in machine.batches.unfinished():
            batch.stages = [stage for stage in batch.stages if stage in machine.batches.stages]
        if self._meta_lost or not self._trust.knows_topics:
            self.found.notes.append(TOPICS_MISSING)
        if not self._trust.knows_owners:
            self.found.notes.append("routers and open stages may be lost, and some that were gone may be back")
        if self._trust.lost_batches:
            self.found.notes.append("batches whose answer is lost are published again when they are repeated")
        self.found.notes += [f"{torn}" for torn in recovery.torn]

    def _forget_places(self) -> None:
        """Where queues and heaps look for what was never handed out: all that is live and that nobody has is."""
        for log in self.machine.logs.values():
            if isinstance(log.queue, Heap):
                log.queue.order = Order()
            if log.queue is not None:
                log.queue.cursor = 1

    def may_be_back(self) -> list[MayBeBack]:
        """What users may meet again, by topic; nothing of a directory without findings."""
        if not self.found.items:
            return []
        if not self._trust.whole:
            for log in self.machine.logs.values():
                if not self._is_sure(log.log_id):
                    self._doubts.of_progress(log)
            unsure = (topic for topic in self.machine.topics if not self._trust.is_newest(images.topic_key(topic.name)))
            self._doubts.of_topics(unsure)
            self._doubt_routers()
        return self._doubts.told()

    def _doubt_routers(self) -> None:
        """Those that may have been deleted, and topics into which one led that is lost."""
        machine = self.machine
        numbers = {router.number for router in machine.routers}
        dests = {r.config.dest for r in machine.routers if not self._trust.is_newest(routerimages.router_key(r.name))}
        for log in machine.logs.values():
            if log.inflow is not None and any(route.router not in numbers for route in log.inflow.routes):
                self.found.notes.append(f"a router into topic {log.topic} is lost; put it again")
                dests.add(log.topic)
        self._doubts.of_topics(topic for topic in machine.topics if topic.name in dests)

    def lost(self) -> list[Lost]:
        """The ranges that are given up, which were not before."""
        found = []
        for name, log in self._logs():
            if log.log_id not in self._holes_before and Reason.DAMAGE in log.lost:
                self._passed[log.log_id] = 1
            told_upto = 0
            if log.log_id in self._passed:
                # Readers are told of all that is not there behind the floor.
                told_upto = log.earliest_seq() - 1
                found.append(Lost(name, log.partition, self._passed[log.log_id], told_upto))
            before = set(self._holes_before.get(log.log_id, ()))
            found += [
                Lost(name, log.partition, hole.gap_from, hole.gap_to)
                for hole in log.holes
                if hole.reason is Reason.DAMAGE and hole not in before and hole.gap_to > told_upto
            ]
            if self.found.items:
                ranges = [(lost.first_seq, lost.last_seq) for lost in self._lost_copies if lost.log is log]
                found += [Lost(name, log.partition, *lost, Reason.SOURCE_TRIM) for lost in ranges]
        return found

    def kept(self) -> list[Kept]:
        return [Kept(name, log.partition, log.count, log.earliest_seq(), log.head_seq) for name, log in self._logs()]

    def _logs(self) -> list[tuple[str, Log]]:
        topics = sorted(self.machine.topics, key=lambda topic: topic.name)
        logs = [(topic.name, self.machine.logs[log_id]) for topic in topics for log_id in topic.log_ids()]
        return logs + [(f"stage {stage.stage}", stage.log) for stage in self.machine.batches.stages.values()]


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _overlap(run: Run, other: Run) -> bool:
    return run.first_seq <= other.last_seq and other.first_seq <= run.last_seq


def _bounds(runs: Iterable[Run]) -> list[tuple[int, int]]:
    return [(run.first_seq, run.last_seq) for run in runs]


def _hole_bounds(log: Log) -> list[tuple[int, int]]:
    return [(hole.gap_from, hole.gap_to) for hole in log.holes]


def _insert_hole(log: Log, gap_from: int, gap_to: int) -> None:
    """A hole among those there are, in order; neighbours of damage become one."""
    holes: list[Hole] = []
    for hole in sorted([*log.holes, Hole(gap_from, gap_to, Reason.DAMAGE)], key=lambda hole: hole.gap_from):
        last = holes[-1] if holes else None
        if last is not None and last.reason is hole.reason and last.gap_to + 1 >= hole.gap_from:
            holes[-1] = Hole(last.gap_from, max(last.gap_to, hole.gap_to), last.reason)
        else:
            holes.append(hole)
    log.holes = holes
