"""Everything that can still be read of a damaged directory, as the state of an engine.

It is the order of an ordinary recovery (snapshot, segments, WAL), but nothing that is unreadable stops it:

    snapshot   as it is when it is undamaged. Otherwise its images are only lower bounds: whose records there are is
               taken from the sections of all segments, and what the WAL holds already is not taken twice
    segments   what the images name, or all; blocks that cannot be read become holes
    WAL        every readable fact. The seqs that a log misses between two of them become a hole; behind its last one
               the unreadable bytes bound how many seqs may have been assigned, and those are never assigned again
    topics     whose creation is lost are restored: under the name a section or a later fact knows, or a made-up one

A healthy directory gives the same state as opening it and not one finding, so this is also how it is checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from topics.core.facts import (
    Appended,
    BatchDecided,
    BatchFinished,
    MetaFact,
    SeqsSkipped,
    StageDropped,
    StageOpened,
    TopicConfigured,
    TopicCreated,
    TopicDropped,
    parse_log_fact,
    parse_meta_fact,
)
from topics.core.log import Hole, Log
from topics.core.machine import Machine
from topics.core.registry import META_LOG_ID
from topics.core.run import Run
from topics.engine.checkpoint import Checkpointer
from topics.engine.findings import Finding, Kept, Kind, Lost
from topics.engine.images import LogImage
from topics.engine.recovery import Options
from topics.engine.remains import OnBytes, Remains, missing_ranges
from topics.engine.restore import Restorer, check_run
from topics.engine.suspects import RECORD_BYTES_MIN, Suspect, suspects
from topics.errors import Damaged
from topics.model import Reason, TopicConfig
from topics.storage import frame
from topics.storage.commitlog import Covered
from topics.storage.segmentfile import SectionKey, data_name
from topics.storage.segmentrun import SegmentRun
from topics.storage.store import Store
from topics.storage.walfile import parse_name
from topics.storage.walrecovery import LastStop, WalRecovery
from topics.storage.walscan import Loss

IDS_SKIPPED = 1 << 20
"""Ids and epochs passed over when some may have been given out that nothing tells of any more."""


_FORGETTABLE = re.compile(rb"d/\d+/\d+|b/\d+/.+", re.DOTALL)
"""Keys of images that nothing hangs on: answers to repeated writes and publishes."""
_NOT_A_TOPIC = re.compile(rb"m|[ld]/\d+(/\d+)?|b/\d+/.+|s/.+", re.DOTALL)

Orphans = dict[int, list[tuple[int, int, bytes]]]
"""Facts of logs that nothing has created: position, kind and body, by log."""


class Salvage:
    def __init__(self, store: Store, options: Options, rebuild_indexes: bool, on_bytes: OnBytes) -> None:
        self.machine = Machine(options.bounds)
        self.positions: dict[int, int] = {}
        self.checkpointer = Checkpointer(store, self.machine, self.positions, options.segments)
        self.findings: list[Finding] = []
        self.notes: list[str] = []
        self.state: dict[bytes, bytes] = {}
        """The images the snapshot holds, as far as they can be read."""
        self.now_ms = store.clock.now_ms()
        self._store = store
        self._options = options
        self._on_bytes = on_bytes
        self._remains = Remains(store, rebuild_indexes, on_bytes)
        self._trusted = True
        """Whether the snapshot is all there: then what it does not name does not exist."""
        self._topics_complete = True
        """Whether every topic that exists is known."""
        self._meta_lost = False
        self._holes_before: dict[int, list[Hole]] = {}
        self._nameless: dict[str, TopicConfig] = {}
        """Topics that a fact configures and none creates."""

    def read(self) -> WalRecovery:
        """Read everything; the WAL's recovery, to be started anew from what was saved."""
        self._remains.read()
        self.findings += self._remains.findings
        self._load_snapshot()
        recovery = self._replay()
        if self._trusted and recovery.needed_snapshot_no > self._store.snapshots.number:
            # Only the WAL knows that the newest snapshot is missing. With that known, begin again.
            return self._again(recovery.needed_snapshot_no)
        self._settle(recovery)
        return recovery

    def _again(self, needed_snapshot_no: int) -> WalRecovery:
        self.release()
        self.machine = Machine(self._options.bounds)
        self.positions = {}
        self.checkpointer = Checkpointer(self._store, self.machine, self.positions, self._options.segments)
        self.findings = list(self._remains.findings)
        self._trusted = self._topics_complete = False
        self._holes_before = {}
        self._load_snapshot()
        recovery = self._replay()
        self._store.snapshots.number = max(self._store.snapshots.number, needed_snapshot_no)
        self._settle(recovery)
        return recovery

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
            self._note(Kind.SNAPSHOT, damage, "what it names is rebuilt from the segments and the WAL")
            self._distrust(damage.detail.get("lost_keys"))
        if self._remains.segments and not self._store.snapshots.number:
            self._distrust(None)
        restorer = Restorer(self._store, self.machine, self.checkpointer, self.positions, self._take_runs)
        restorer.load(self.state)
        self.now_ms = restorer.now_ms
        self._store.next_segment = max([self._store.next_segment, *(n + 1 for n in self._remains.segments)])
        if not self._trusted:
            self._adopt_sections()

    def _distrust(self, lost_keys: tuple[bytes, ...] | None) -> None:
        """Some images are lost, or older than they should be: those of these keys, any when they cannot be told.

        The key is read from damaged bytes. One flipped bit does not make a wrong one of another kind, as each kind has
        a form of its own; which topic or log it names is not relied on.
        """
        for key in lost_keys if lost_keys is not None else (b"",):
            if not _FORGETTABLE.fullmatch(key):
                self._trusted = False
            self._topics_complete = self._topics_complete and _NOT_A_TOPIC.fullmatch(key) is not None

    def _take_runs(self, log: Log, image: LogImage) -> list[Run]:
        """The runs an image names, or what is left of them."""
        self._holes_before[log.log_id] = list(log.holes)
        if not self._trusted:
            return []
        found: list[Run] = []
        for place in image.runs:
            if self._remains.usable(place.segment):
                run = self._store.run(place.segment, place.section)
                try:
                    check_run(self._store, log, run, place)
                except Damaged as doubt:
                    self._note(Kind.MARKS, doubt, "the flags in the file are believed: deleted records may be back")
                found.append(run)
                continue
            if place.segment not in self._remains.segments:
                path = f"{self._store.segment_dir}/{data_name(place.segment)}"
                damage = Damaged(
                    f"{path} is missing, which holds seqs {place.first_seq}..{place.last_seq} of topic {log.topic}",
                    file=path,
                    topic=log.topic,
                    first_seq=place.first_seq,
                    last_seq=place.last_seq,
                )
                self._note(Kind.SEGMENT, damage, "its records become a hole")
            pieces = self._remains.pieces(place.segment, place.section, log.log_id)
            found += pieces
            for gap in missing_ranges(max(place.first_seq, log.low), place.last_seq, _bounds(pieces)):
                _insert_hole(log, *gap)
        return found

    def _adopt_sections(self) -> None:
        """Without a snapshot to go by: every section belongs to the log it names. Newer segments come first."""
        for number in sorted(self._remains.segments, reverse=True):
            for log_id, key, runs in self._remains.whole_runs(self._remains.segments[number]):
                log = self.machine.logs.get(log_id) or self._log_of(log_id, key)
                self._add_runs(log, runs)
        for log in self.machine.logs.values():
            if not log.runs:
                continue
            first_seq, last_seq = log.runs[0].first_seq, log.runs[-1].last_seq
            if log.log_id not in self._holes_before:
                log.low = log.evict_floor = first_seq
                if first_seq > 1:
                    log.lost[Reason.DAMAGE] = first_seq - 1
            log.next_seq = max(log.next_seq, last_seq + 1)
            log.last_ts = max(log.last_ts, log.runs[-1].last_ts)
            log.last_write_ts = max(log.last_write_ts or 0, log.last_ts)
            present = sorted([*_bounds(log.runs), *((hole.gap_from, hole.gap_to) for hole in log.holes)])
            for gap in missing_ranges(log.low, log.next_seq - 1, present):
                _insert_hole(log, *gap)

    def _add_runs(self, log: Log | None, runs: Iterable[Run]) -> None:
        """Take runs that do not overlap what a newer segment gave already: after a merge both may be there."""
        for run in runs:
            if log is not None and not any(_overlap(run, other) for other in log.runs):
                log.runs.append(run)
                log.runs.sort(key=lambda run: run.first_seq)
            elif isinstance(run, SegmentRun):
                self._store.release(run)

    def _log_of(self, log_id: int, key: SectionKey | None) -> Log | None:
        """The log of a section that no image knows: its topic is made again, if there is none that came after it."""
        if self._topics_complete:
            return None
        if key is None:
            return self._restore_topic(f"recovered-{log_id}", log_id, 0, 0)
        if not key.epoch:
            self.notes.append(
                f"the records of a stage for topic {key.topic} (log {log_id}) were not published: left out"
            )
            return None
        existing = self.machine.topics.get(key.topic)
        if existing is not None and existing.epoch >= key.epoch:
            return None
        if existing is not None:
            self._drop_topic(existing.name)
        return self._restore_topic(key.topic, log_id, key.partition, key.epoch)

    def _restore_topic(self, name: str, log_id: int, partition: int, epoch: int) -> Log:
        """A topic whose creation is lost; its config is a default one until a fact tells otherwise."""
        partitions = 1 + max(
            (
                key.partition
                for remnant in self._remains.segments.values()
                for _, key in remnant.sections.values()
                if key is not None and (key.topic, key.epoch) == (name, epoch)
            ),
            default=partition,
        )
        machine = self.machine
        config = self._nameless.pop(name, TopicConfig(partitions=partitions))
        fact = TopicCreated(name, epoch or machine.next_epoch, log_id - partition, config, self.now_ms)
        machine.apply_meta(fact)
        self._finding(
            Kind.TOPIC,
            "",
            0,
            f"the creation of topic {name} is lost, its records (log {log_id}) are not",
            "the topic is made again; its config is the default one unless a later fact tells it",
            topic=name,
        )
        return machine.logs[log_id]

    def _drop_topic(self, name: str) -> None:
        self.machine.apply_meta(TopicDropped(name))

    # ---- the WAL

    def _replay(self) -> WalRecovery:
        store = self._store
        covered = Covered(dict(self.checkpointer.covered), self.machine.next_log_id if self._trusted else 0)
        number = store.snapshots.number
        recovery = WalRecovery(
            store.fs, store.wal_dir, self._options.wal, store.clock, store.salt_source, covered, number, salvage=True
        )
        if (number or self._remains.segments) and not recovery.shards_on_disk:
            self._finding(
                Kind.WAL, store.wal_dir, 0, f"{store.wal_dir}: the WAL is missing", "begun anew; what it held is lost"
            )
            self._lose_meta()
            self.notes.append("the deletes that were in the WAL are lost with it")
            for log in self.machine.logs.values():
                log.add_hole(
                    log.next_seq, log.next_seq + self._options.wal.file_bytes // RECORD_BYTES_MIN, Reason.DAMAGE
                )
        appended_after: dict[int, int] = {}
        orphans: Orphans = {}
        done_bytes = 0
        for log_id, position, kind, body in recovery.replay():
            if recovery.progress[0] != done_bytes:
                self._on_bytes(recovery.progress[0] - done_bytes)
                done_bytes = recovery.progress[0]
            if kind == frame.Kind.APPENDED or log_id == META_LOG_ID:
                appended_after[log_id] = len(recovery.losses)
            if log_id == META_LOG_ID:
                self._apply_meta(parse_meta_fact(body))
            elif (log := self.machine.logs.get(log_id)) is not None:
                self._apply(log, kind, body)
            else:
                orphans.setdefault(log_id, []).append((position, kind, bytes(body)))
                continue
            self.positions[log_id] = position
        self._on_bytes(recovery.progress[1] - done_bytes)
        self._judge(recovery, appended_after, orphans)
        return recovery

    def _apply(self, log: Log, kind: int, body: memoryview | bytes) -> None:
        """A fact of a log; what a segment holds already is left alone."""
        if kind != frame.Kind.APPENDED:
            fact = parse_log_fact(body)
            if not (isinstance(fact, SeqsSkipped) and fact.gap_to < log.next_seq):
                log.apply(fact)
            return
        appended = Appended.parse(memoryview(body))
        if appended.records.first_seq >= log.next_seq:
            log.apply_appended(appended)
        else:
            log.remember(appended)

    def _apply_meta(self, fact: MetaFact) -> None:
        """A fact about topics and batches, as far as what it builds on is there."""
        machine, batches = self.machine, self.machine.batches
        match fact:
            case TopicCreated():
                existing = machine.topics.get(fact.topic)
                if existing is not None and existing.epoch == fact.epoch:
                    existing.config = fact.config
                    return
                if existing is not None:
                    self._drop_topic(fact.topic)
            case TopicConfigured():
                if machine.topics.get(fact.topic) is None:
                    self._nameless[fact.topic] = fact.config
                    return
            case TopicDropped():
                if machine.topics.get(fact.topic) is None:
                    self._nameless.pop(fact.topic, None)
                    return
            case BatchDecided():
                missing = [stage for stage in fact.stages if stage not in batches.stages]
                if missing:
                    self.notes.append(f"stages {missing} of a batch of {fact.producer_id} are lost")
                    fact = BatchDecided(
                        fact.producer_id, fact.epoch, [s for s in fact.stages if s in batches.stages], fact.decided_ms
                    )
            case BatchFinished():
                if (fact.producer_id, fact.epoch) not in batches.by_producer:
                    stages: list[str] = []
                    batches.apply(machine, BatchDecided(fact.producer_id, fact.epoch, stages, fact.finished_ms))
            case StageOpened() | StageDropped():
                pass
        machine.apply_meta(fact)

    def _judge(self, recovery: WalRecovery, appended_after: dict[int, int], orphans: Orphans) -> None:
        """Turn the WAL's losses into findings, and keep every seq from being assigned twice."""
        told = [self._suspects(loss, recovery) for loss in recovery.losses]
        for index, (loss, found) in enumerate(zip(recovery.losses, told, strict=True)):
            if not (self._trusted or loss.end or loss.whole_file):
                continue  # a jump over what the lost snapshot covered
            todo = "facts behind it are kept, the seqs it held become a hole"
            self._finding(Kind.WAL, loss.file, loss.offset, loss.message, todo)
            if found is None and META_LOG_ID in self._in_doubt(recovery, index, loss, appended_after, {META_LOG_ID}):
                self._lose_meta()
            named = [suspect.log_id for suspect in found or ()] + [log_id for log_id, _, _ in loss.at_risk]
            if META_LOG_ID in named:
                self._lose_meta()
        self._adopt_orphans(orphans)
        for index, (loss, found) in enumerate(zip(recovery.losses, told, strict=True)):
            if found is not None:
                for suspect in found:
                    self._doubt(loss, suspect, appended_after.get(suspect.log_id, 0) > index)
                continue
            lost_bytes = loss.end - loss.offset if loss.end else self._options.wal.file_bytes
            for log_id in self._in_doubt(recovery, index, loss, appended_after, set(self.machine.logs)):
                log = self.machine.logs[log_id]
                log.add_hole(log.next_seq, log.next_seq + lost_bytes // RECORD_BYTES_MIN, Reason.DAMAGE)
            if loss.end or loss.whole_file:
                self.notes.append(
                    f"{loss.file} offset {loss.offset}: deletes of any topic may be lost with these bytes"
                )

    def _suspects(self, loss: Loss, recovery: WalRecovery) -> list[Suspect] | None:
        """The entries that stood in unreadable bytes; None when the bytes do not tell, or not what can be."""
        if not loss.end:
            return None
        mapping = self._store.fs.map(loss.file)
        try:
            found = suspects(mapping.view, loss.offset, loss.end)
        finally:
            mapping.release()
        missing = {
            (log_id, position)
            for other in recovery.losses
            for log_id, first, last in other.at_risk
            for position in range(first, min(last, first + len(found or ())) + 1)
        }
        tails = dict(recovery.tails)
        for suspect in found or ():
            place = (suspect.log_id, suspect.position)
            if suspect.position == tails.get(suspect.log_id, self.positions.get(suspect.log_id, 0)) + 1:
                tails[suspect.log_id] = suspect.position
            elif place not in missing:
                return None
        return found

    def _doubt(self, loss: Loss, suspect: Suspect, appended_behind: bool) -> None:
        """A lost entry whose owner is known; what was appended behind it shows the gap by itself."""
        log = self.machine.logs.get(suspect.log_id)
        if log is None:
            return
        if not suspect.appended:
            self.notes.append(f"{loss.file} offset {loss.offset}: a delete in topic {log.topic} may be lost")
        elif not appended_behind:
            log.add_hole(log.next_seq, log.next_seq + suspect.records_max - 1, Reason.DAMAGE)
        self.positions[log.log_id] = max(self.positions.get(log.log_id, 0), suspect.position)

    def _in_doubt(
        self, recovery: WalRecovery, index: int, loss: Loss, appended_after: dict[int, int], log_ids: set[int]
    ) -> set[int]:
        """Bytes that tell nothing: those logs of the shard that have no record behind them may have had some there."""
        parsed = parse_name(loss.file.rpartition("/")[2])
        if parsed is None or not (loss.end or loss.whole_file):
            return set()
        shard, number = parsed
        concerned = {log_id for log_id in log_ids if log_id % recovery.shards_on_disk == shard}
        if loss.whole_file:
            return concerned - recovery.logs_behind(shard, number)
        return {log_id for log_id in concerned if appended_after.get(log_id, 0) <= index}

    def _lose_meta(self) -> None:
        if not self._meta_lost:
            self._meta_lost = True
            self.notes.append("facts about topics are lost: a topic created, configured or dropped then may be wrong")

    def _adopt_orphans(self, orphans: Orphans) -> None:
        """Facts of logs that do not exist: of no account in a healthy directory, of lost topics in a damaged one."""
        self.machine.next_log_id = max([self.machine.next_log_id, *(log_id + 1 for log_id in orphans)])
        for log in self.machine.dropped_logs:
            orphans.pop(log.log_id, None)
        if not self._meta_lost and self._trusted:
            return
        names = list(self._nameless)
        for log_id in sorted(orphans):
            name = names[0] if len(names) == 1 and len(orphans) == 1 else f"recovered-{log_id}"
            log = self._restore_topic(name, log_id, 0, 0)
            for position, kind, body in orphans[log_id]:
                self._apply(log, kind, body)
                self.positions[log_id] = position

    # ---- the end

    def _settle(self, recovery: WalRecovery) -> None:
        machine = self.machine
        for log_id, tail in recovery.tails.items():
            self.positions[log_id] = max(self.positions.get(log_id, 0), tail)
        if self._meta_lost or not self._trusted:
            machine.next_log_id += IDS_SKIPPED
            machine.next_epoch += IDS_SKIPPED
        for log in machine.logs.values():
            if recovery.last_stop is LastStop.POWER_LOST and log.granted_ceiling > log.head_seq:
                log.add_hole(log.next_seq, log.granted_ceiling, Reason.RESTART)
            log.recount()
            log.visible_seq = log.ready_seq = log.synced_seq = log.head_seq
            self.checkpointer.covered.setdefault(log.log_id, 0)
            self.now_ms = max(self.now_ms, log.last_ts)
        for batch in machine.batches.unfinished():
            batch.stages = [stage for stage in batch.stages if stage in machine.batches.stages]
        self.notes += [f"{torn}" for torn in recovery.torn]

    def lost(self) -> list[Lost]:
        """The ranges that are given up, which were not before."""
        found = []
        for name, log in self._logs():
            before = set(self._holes_before.get(log.log_id, ()))
            found += [
                Lost(name, log.partition, hole.gap_from, hole.gap_to)
                for hole in log.holes
                if hole.reason is Reason.DAMAGE and hole not in before
            ]
            if log.log_id not in self._holes_before and Reason.DAMAGE in log.lost:
                found.append(Lost(name, log.partition, 1, log.lost[Reason.DAMAGE]))
        return found

    def kept(self) -> list[Kept]:
        return [Kept(name, log.partition, log.count, log.earliest_seq(), log.head_seq) for name, log in self._logs()]

    def _logs(self) -> list[tuple[str, Log]]:
        topics = sorted(self.machine.topics, key=lambda topic: topic.name)
        logs = [(topic.name, self.machine.logs[log_id]) for topic in topics for log_id in topic.log_ids()]
        return logs + [(f"stage {stage.stage}", stage.log) for stage in self.machine.batches.stages.values()]

    def _note(self, kind: Kind, damage: Damaged, todo: str) -> None:
        detail = damage.detail
        self._finding(
            kind,
            str(detail.get("file", "")),
            int(detail.get("offset") or 0),
            damage.message,
            todo,
            detail.get("topic"),
            detail.get("first_seq"),
            detail.get("last_seq"),
        )

    def _finding(
        self,
        kind: Kind,
        file: str,
        offset: int,
        message: str,
        todo: str,
        topic: str | None = None,
        first_seq: int | None = None,
        last_seq: int | None = None,
    ) -> None:
        self.findings.append(Finding(kind, file, offset, message, todo, topic, None, first_seq, last_seq))


def _overlap(run: Run, other: Run) -> bool:
    return run.first_seq <= other.last_seq and other.first_seq <= run.last_seq


def _bounds(runs: Iterable[Run]) -> list[tuple[int, int]]:
    return [(run.first_seq, run.last_seq) for run in runs]


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
