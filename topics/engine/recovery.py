"""Opening a data directory: the snapshot, then what the WAL has behind it, through the same `apply` as ever.

The outcome does not depend on how often a recovery was interrupted: nothing is changed on disk before the WAL's new
files are begun, and what is concluded from a power loss is stored as facts before anything is acked.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from topics import freed
from topics.clock import Clock
from topics.core import batch, facts, volatile
from topics.core.derive import Derivation
from topics.core.log import Log
from topics.core.machine import Bounds, Machine
from topics.core.outcome import Outcome, StoredFact
from topics.core.registry import META_LOG_ID
from topics.core.rewind import rewind
from topics.core.routerfacts import CopiesLost
from topics.engine.checkpoint import Checkpointer
from topics.engine.engine import Engine, EngineLimits
from topics.engine.job import SegmentLimits
from topics.engine.report import RecoveryReport
from topics.engine.reports import Reports
from topics.engine.restore import Restorer, stored_runs
from topics.engine.turn import Turn
from topics.errors import Damaged, LogStopped, NotUnderstood
from topics.model import Durability, Reason
from topics.storage.commitlog import Covered
from topics.storage.committer import Post
from topics.storage.frame import UNREADABLE, Kind
from topics.storage.fs import FileSystem
from topics.storage.gone import flag_gone, unnamed
from topics.storage.store import Store
from topics.storage.wal import Wal, WalSettings
from topics.storage.walrecovery import WalRecovery, not_understood


@dataclass(frozen=True, slots=True)
class Options:
    """How an engine is opened; see `settings.py` for what an operator sets of it."""

    bounds: Bounds = field(default_factory=Bounds)
    limits: EngineLimits = field(default_factory=EngineLimits)
    segments: SegmentLimits = field(default_factory=SegmentLimits)
    wal: WalSettings = field(default_factory=WalSettings)
    hot_bytes: int = 256 << 20
    cold_dir: str | None = None


Progress = Callable[[float], None]
PROGRESS_EVERY_FACTS = 10_000
SNAPSHOT_BYTES_GIVEN_BACK = 16 << 20
INCARNATION_BITS = 24


def recover(
    fs: FileSystem,
    directory: str,
    clock: Clock,
    salt_source: Callable[[], int],
    options: Options,
    post: Post | None,
    on_progress: Progress = lambda done: None,
) -> Engine:
    """An engine on a directory. With `post` the WAL has threads; without, the caller runs `engine.wal.work`."""
    store = Store(fs, directory, clock, salt_source, options.hot_bytes, options.cold_dir)
    # Nearly all that is made here stays: to look for garbage among it, time and again, is a fifth of the start.
    collects = gc.isenabled()
    gc.disable()
    try:
        engine = _Recovery(store, options, on_progress).run(post)
        if store.snapshots.size_bytes >= SNAPSHOT_BYTES_GIVEN_BACK:
            # The bytes of the snapshot were in memory beside all that was made of them.
            freed.give_back()
        return engine
    except BaseException:
        store.close()
        raise
    finally:
        if collects:
            gc.enable()


class _Recovery:
    def __init__(self, store: Store, options: Options, on_progress: Progress) -> None:
        self._store = store
        self._options = options
        self._on_progress = on_progress
        self._machine = Machine(options.bounds)
        self._machine.incarnation = store.salt_source() % (1 << INCARNATION_BITS)
        self._positions: dict[int, int] = {}
        self._checkpointer = Checkpointer(store, self._machine, self._positions, options.segments)
        self._report = RecoveryReport()
        self._now_ms = store.clock.now_ms()
        self._named: dict[tuple[int, int], int] = {}
        """What the snapshot holds of logs."""

    def run(self, post: Post | None) -> Engine:
        reports = None if post is None else Reports(post)
        self._load_snapshot()
        try:
            recovery = self._replay()
        except NotUnderstood:
            raise
        except Damaged as damage:
            raise self._naming_seqs(damage) from damage
        # A mark may have reached a segment and its snapshot not: then the counts are those of the marks.
        for log in self._machine.logs.values():
            log.recount()
            self._now_ms = max(self._now_ms, log.last_ts)
        self._now_ms = max(self._now_ms, recovery.noted_ms)
        for topic in self._machine.topics:
            for log_id in topic.log_ids():
                # A smaller cap may have been kept and what it evicted not.
                self._machine.logs[log_id].evict(topic.config)
                if topic.config.durability is Durability.EPHEMERAL:
                    volatile.change(self._machine.logs[log_id], stored=False)
        self._forget_published()
        turn = Turn(
            self._positions, self._machine.unborn, lambda log: engine.shown(log), self._options.wal.queue_bytes_max
        )
        engine = Engine(
            self._store,
            self._machine,
            self._checkpointer,
            turn,
            self._store.clock,
            self._options.limits,
            self._report,
            self._now_ms,
        )
        covered = Covered(dict(self._checkpointer.covered), self._machine.next_log_id)
        self._store.snapshots.settle()
        if recovery.needed_snapshot_no < self._store.snapshots.number:
            self._finish_checkpoint()
        wal = recovery.start(engine, covered, self._store.snapshots.number, None if reports is None else reports.post)
        turn.attach(wal)
        engine.time.on_look = wal.note_time
        self._show_everything()
        # A batch that is in a log in part goes on where it was, so that its seqs have no gap: that log skips after it.
        logs = list(self._machine.logs.values())
        begun = [log for log in logs if log.published]
        if recovery.last_stop.may_have_lost:
            self._skip_seqs(engine, [log for log in logs if not log.published])
        self._report.notes += [
            segment.index_rebuilt for segment in self._store.open_segments() if segment.index_rebuilt
        ]
        self._report.notes += [f"removed {path}" for path in self._store.sweep()]
        self._conclude(engine, wal, wal.work if reports is None else reports.work)
        engine.resume()
        if recovery.last_stop.may_have_lost:
            self._skip_seqs(engine, begun)
        engine.flush()
        if reports is not None:
            reports.hand_over()
        return engine

    # ---- the snapshot

    def _load_snapshot(self) -> None:
        store, snapshots = self._store, self._store.snapshots
        state = snapshots.load()
        self._report.snapshot_no = snapshots.number
        if (snapshots.number or store.tiers.numbers()) and not store.fs.list(store.wal_dir):
            message = f"{store.wal_dir} is empty, but there is a snapshot or a segment: the WAL is missing"
            raise Damaged(message, file=store.wal_dir, offset=0)
        restorer = Restorer(
            store,
            self._machine,
            self._checkpointer,
            self._positions,
            lambda log, image: stored_runs(store, log, image),
        )
        restorer.load(state, consume=True)
        self._now_ms = restorer.now_ms
        self._named = restorer.named

    def _finish_checkpoint(self) -> None:
        """Its process died before it had set all flags, or before it said that it had."""
        named, self._named = self._named, {}
        flag_gone(self._store.fs, self._store.tiers, None, unnamed(self._store.open_segments(), named))

    # ---- the WAL

    def _replay(self) -> WalRecovery:
        store, machine = self._store, self._machine
        covered = Covered(dict(self._checkpointer.covered), machine.next_log_id)
        recovery = WalRecovery(
            store.fs,
            store.wal_dir,
            self._options.wal,
            store.clock,
            store.salt_source,
            covered,
            store.snapshots.number,
        )
        highest = facts_read = 0
        logs, positions, dirty = machine.logs, self._positions, self._checkpointer.dirty
        derivation = self._derivation = Derivation(machine, self._apply)
        appended = Kind.APPENDED
        for facts_read, (log_id, position, kind, body) in enumerate(recovery.replay(), 1):
            if not facts_read % PROGRESS_EVERY_FACTS:
                done, total = recovery.progress
                self._on_progress(done / total if total else 1.0)
            try:
                if log_id == META_LOG_ID:
                    machine.replay_meta(body)
                    derivation.born()
                elif (log := logs.get(log_id)) is not None:
                    if kind != appended:
                        derivation.take_fact(log, body)
                    elif log_id in derivation.aside:
                        derivation.take_appended(log, body)
                    else:
                        machine.replay_log(log, True, body)
                else:
                    self._report.orphans += 1
                    highest = max(highest, log_id)
                    derivation.take_ghost(log_id, kind == appended, body)
                    continue
            except UNREADABLE as error:
                raise not_understood(store.wal_dir, log_id, position, error) from error
            positions[log_id] = position
            dirty.add(log_id)
        derivation.finish()
        # Ids are never used twice, also those of logs whose creation was lost.
        machine.next_log_id = max(machine.next_log_id, highest + 1)
        for log_id in logs:
            self._checkpointer.covered.setdefault(log_id, 0)
        self._report.facts = facts_read
        self._report.last_stop = recovery.last_stop.value
        self._report.notes += [f"{torn}" for torn in recovery.torn]
        self._on_progress(1.0)
        return recovery

    def _apply(self, log: Log, fact: facts.LogFact | bytes | memoryview) -> None:
        if isinstance(fact, bytes | memoryview):
            self._machine.replay_log(log, True, memoryview(fact))
        else:
            log.apply(fact)

    def _naming_seqs(self, damage: Damaged) -> Damaged:
        """The WAL knows logs and positions; people know topics and seqs. Says what to do next as well."""
        positions = {log_id: last - first + 1 for log_id, first, last in damage.detail.get("at_risk", ())}
        risks = [
            {"topic": log.topic, "partition": log.partition, "from_seq": log.next_seq, "facts": positions[log_id]}
            for log_id, log in self._machine.logs.items()
            if log_id in positions
        ]
        told = ", ".join(
            f"{r['topic']}/{r['partition']} from seq {r['from_seq']} on ({r['facts']} facts)" for r in risks
        )
        if META_LOG_ID in positions:
            told = ", ".join(part for part in (told, "which topics there are") if part)
        message = (
            f"{damage.message}. At risk: {told or 'what was written last'}. "
            f"`topics fsck {self._store.directory}` says more, `--repair` keeps everything readable"
        )
        return Damaged(message, **{**damage.detail, "seqs_at_risk": risks})

    def _forget_published(self) -> None:
        """The meta log is replayed before most others, so a batch may have been finished before its parts came."""
        open_logs = {stage.log.log_id for stage in self._machine.batches.stages.values()}
        for log in self._machine.logs.values():
            if log.published:
                log.published = {stage: part for stage, part in log.published.items() if stage in open_logs}

    def _show_everything(self) -> None:
        """What was recovered is durable by now: the WAL's old files were synced when its new ones began."""
        for log in self._machine.logs.values():
            log.visible_seq = log.ready_seq = log.synced_seq = log.head_seq
            log.durable_ceiling = log.granted_ceiling

    def _conclude(self, engine: Engine, wal: Wal, work: Callable[[], object]) -> None:
        """What a crash means for routers and for stages: copies that nothing holds any more are told as gaps, a router
        that stands behind the end of its source goes back to it, and stages that were in memory are dropped.

        Durable before any log takes anything: the seqs that a source lost may be given out again, and after another
        crash would be taken for what they were before.
        """
        outcome = Outcome(None, must_sync=True)
        for found in self._derivation.lost:
            if found.log.log_id in self._machine.logs:
                fact = CopiesLost(found.first_seq, found.last_seq)
                outcome.facts.append(StoredFact(found.log.log_id, False, [facts.encode(fact)]))
        for router in list(self._machine.routers):
            outcome.facts += rewind(self._machine, router)
        # Their records were in the memory of the process before: published now, the batch would lack them.
        outcome.facts += batch.abort(self._machine, tuple(self._machine.batches.lost())).facts
        if not outcome.facts:
            return
        ticket = engine.add(outcome)
        engine.flush()
        while not ticket.done:
            work()
        if ticket.error is not None:
            with suppress(LogStopped):
                wal.close()
            raise ticket.error

    def _skip_seqs(self, engine: Engine, logs: Iterable[Log]) -> None:
        """After a stop that may have lost writes: assign no seq twice, and tell readers of the skipped range."""
        outcome = Outcome(None, must_sync=True)
        for log in logs:
            if log.granted_ceiling > log.head_seq:
                fact = facts.SeqsSkipped(log.next_seq, log.granted_ceiling, Reason.RESTART)
                log.apply(fact)
                log.ready_seq = log.synced_seq = log.head_seq
                engine.turn.show_ready(log)
                outcome.facts.append(StoredFact(log.log_id, False, [facts.encode(fact)]))
        if outcome.facts:
            engine.add(outcome)
