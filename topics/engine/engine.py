"""The engine: where commands, the log and the clock meet. No thread and no event loop of its own.

A host drives it: it submits commands, flushes once a turn, passes on what the commit log reports, runs checkpoints
when they are due, and calls `tick` at `next_deadline_ms`. The asyncio host is `host.py`; tests and the simulator
drive it by hand, with the same calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import assert_never

from topics.clock import Clock
from topics.core import priority
from topics.core.commands import Abort, Append, Command, Configure, Delete, Drop, Publish, Stage
from topics.core.cut import PLAIN, Shape, cut
from topics.core.log import Log
from topics.core.machine import Machine
from topics.core.match import Match
from topics.core.outcome import Outcome
from topics.core.read import cursor_at, plan_read
from topics.core.registry import META_LOG_ID, Topic
from topics.core.run import seq_range
from topics.engine import writing
from topics.engine.checkpoint import Checkpointer
from topics.engine.job import Job
from topics.engine.publishing import Publishing
from topics.engine.report import RecoveryReport
from topics.engine.ticket import Ticket
from topics.engine.turn import Turn
from topics.errors import Internal, InvalidRequest, ShuttingDown, Throttled, TopicsError
from topics.model import Page, TopicState
from topics.storage.commitlog import CommitLog, Covered
from topics.storage.store import Store

BYTE_BUDGET_DEFAULT = 1 << 20
BYTE_BUDGET_MAX = 8 << 20
LIMIT_DEFAULT = 256
DIRTY_FACTOR = 4
FACT_BYTES = 1024
"""What a fact without payload may take in the commit log, at most."""


@dataclass(frozen=True, slots=True)
class EngineLimits:
    limit_max: int = 1000
    checkpoint_ms: int = 60_000
    dirty_bytes_max: int = 64 << 20
    """Bytes written since the last checkpoint that make one due; at `DIRTY_FACTOR` times as many, writes wait."""


class Engine:
    def __init__(
        self,
        store: Store,
        machine: Machine,
        checkpointer: Checkpointer,
        turn: Turn,
        clock: Clock,
        limits: EngineLimits,
        report: RecoveryReport,
        now_ms: int,
    ) -> None:
        self.store = store
        self.machine = machine
        self.checkpointer = checkpointer
        self.turn = turn
        self.limits = limits
        self.report = report
        self.checkpoint_error: Exception | None = None
        """Why the last checkpoint failed; None when it did not."""
        self.problems: list[str] = []
        """What the last checkpoint could not clean up, in words; the next one tries again."""
        self.on_visible: Callable[[Log], None] = lambda log: None
        turn.ticks_ns = clock.ticks_ns
        self._clock = clock
        self._now_ms = now_ms
        self._publishing = Publishing(machine, turn, self.now_ms, self.checkpointer.dirty.add)
        self._next_checkpoint_ms = self.now_ms() + limits.checkpoint_ms
        self._dirty_bytes = 0
        self._captured_bytes = 0
        """What was dirty when the last checkpoint began: still so if it fails."""
        self.closing = False

    @property
    def wal(self) -> CommitLog:
        return self.turn.commit_log

    def now_ms(self) -> int:
        """The wall clock, never going back."""
        now_ms = self._clock.now_ms()
        if now_ms > self._now_ms:
            self._now_ms = now_ms
        return self._now_ms

    # ---- commands

    def submit(self, command: Command) -> Ticket:
        """Decide a command now; its ticket is done when the answer may go out. Raises when it is refused."""
        if self.closing:
            raise ShuttingDown("the engine is closing")
        if isinstance(command, Append) and (topic := self.machine.topics.get(command.topic)) is not None:
            self._check_dirty()
            self.turn.check(topic.first_log_id + command.partition, command.records.payload_bytes)
            return self.add(self.machine.append(command, self.now_ms()))
        self._check_shards(command)
        if isinstance(command, Publish):
            return self._publishing.begin(command)
        next_log_id = self.machine.next_log_id
        outcome = self.machine.step(command, self.now_ms())
        return self.add(outcome, range(next_log_id, self.machine.next_log_id))

    def add(self, outcome: Outcome, born: Sequence[int] = ()) -> Ticket:
        """Queue an outcome; `born` names the logs that it created."""
        dirty = self.checkpointer.dirty
        for fact in outcome.facts:
            dirty.add(fact.log_id)
            self._dirty_bytes += len(fact.body[-1])
        if outcome.log is not None:
            dirty.add(outcome.log.log_id)
        return self.turn.add(outcome, born)

    def _check_shards(self, command: Command) -> None:
        """A command is refused before it changes anything when a log it writes to has stopped or is too far behind."""
        match command:
            case Append() | Delete() | Stage():
                self._check_dirty()
                size = FACT_BYTES if isinstance(command, Delete) else command.records.payload_bytes
                for log_id in self._written_by(command):
                    self.turn.check(log_id, size)
            case Configure() | Drop() | Publish() | Abort():
                for log_id in self._written_by(command):
                    self.turn.check(log_id, FACT_BYTES)

    def _check_dirty(self) -> None:
        if self._dirty_bytes > DIRTY_FACTOR * self.limits.dirty_bytes_max:
            raise Throttled(
                "writes are ahead of the checkpoint that makes room for them; try again",
                limit="dirty_bytes",
                retry_after_ms=100,
            )

    def _written_by(self, command: Command) -> list[int]:
        """The logs that get a fact of a command, as far as it can be told before it is decided."""
        machine = self.machine
        match command:
            case Append() | Delete():
                topic = machine.topics.get(command.topic)
                if topic is None:
                    return [META_LOG_ID, machine.next_log_id + command.partition]
                return [topic.first_log_id + command.partition]
            case Stage():
                stage = machine.batches.stages.get(command.stage)
                return [META_LOG_ID, machine.next_log_id] if stage is None else [stage.log.log_id]
            case Publish():
                stages = [machine.batches.stages.get(name) for name in command.stages]
                topics = [(machine.topics.get(stage.topic), stage.partition) for stage in stages if stage is not None]
                return [META_LOG_ID, *(topic.first_log_id + at for topic, at in topics if topic is not None)]
            case Configure():
                topic = machine.topics.get(command.topic)
                return [META_LOG_ID, *(topic.log_ids() if topic is not None else ())]
            case Drop() | Abort():
                return [META_LOG_ID]
            case _:
                assert_never(command)

    def flush(self) -> None:
        self.turn.flush()

    # ---- reads

    def read(
        self,
        topic_name: str,
        from_seq: int = 0,
        *,
        from_ts: int | None = None,
        partition: int = 0,
        limit: int = LIMIT_DEFAULT,
        byte_budget: int = BYTE_BUDGET_DEFAULT,
        nodes: Sequence[str] = (),
        match: Match | None = None,
        shape: Shape = PLAIN,
        touch: bool = True,
    ) -> Page:
        """A page of records behind a cursor, wire-ready. Limits above the allowed are clamped, 0 is the default.

        With `from_ts`, records stamped before that time are passed over, too.
        """
        if from_seq < 0:
            raise InvalidRequest("from_seq must be 0 or more", field="from_seq", expected="a whole number from 0")
        topic, log = self._look(topic_name, partition, touch)
        if from_ts is not None:
            from_seq = max(from_seq, cursor_at(log, from_ts))
        plan = plan_read(
            log,
            log.visible_seq,
            from_seq,
            min(limit or LIMIT_DEFAULT, self.limits.limit_max),
            min(byte_budget or BYTE_BUDGET_DEFAULT, BYTE_BUDGET_MAX),
            [node.encode() for node in nodes] if topic.config.dedupe_node else (),
            match,
        )
        spans = plan.spans
        return Page(
            topic=topic.name,
            partition=partition,
            body=cut(spans, shape),
            count=sum(span.end - span.start if span.chosen is None else len(span.chosen) for span in spans),
            next_from_seq=plan.next_from_seq,
            head_seq=log.visible_seq,
            earliest_seq=log.earliest_seq(),
            tombstone=plan.tombstone,
            scanned=plan.scanned,
            epoch=topic.epoch,
        )

    def state(self, topic_name: str, partition: int = 0, touch: bool = True) -> TopicState:
        topic, log = self._look(topic_name, partition, touch)
        return self.state_of(topic, log)

    def state_of(self, topic: Topic, log: Log) -> TopicState:
        stopped = self.turn.stopped(log.log_id)
        return TopicState(
            topic=topic.name,
            partition=log.partition,
            partitions=topic.config.partitions,
            epoch=topic.epoch,
            head_seq=log.visible_seq,
            earliest_seq=log.earliest_seq(),
            evict_floor=log.evict_floor,
            count=log.count,
            bytes=log.bytes,
            config=topic.config,
            effective_priority=priority.effective(
                topic.config.priority, topic.config.auto_priority, self._now_ms, topic.last_read_ts
            ),
            last_write_ts=log.last_write_ts,
            last_read_ts=topic.last_read_ts,
            stopped=None if stopped is None else str(stopped),
        )

    def topics(self, prefix: str = "", after: str = "", limit: int = 100) -> list[TopicState]:
        """Topics in order of their names, behind `after`: the state of each one's first partition."""
        found = self.machine.topics.page(after, prefix, limit)
        return [self.state(topic.name, touch=False) for topic in found]

    def _look(self, topic_name: str, partition: int, touch: bool) -> tuple[Topic, Log]:
        topic = self.machine.topic(topic_name)
        log = self.machine.log(topic, partition)
        now_ms = self.now_ms()
        log.observe(topic.config, now_ms)
        if log.released:
            self.checkpointer.dirty.add(log.log_id)
        if touch:
            topic.last_read_ts = now_ms
        return topic, log

    # ---- the commit log's listener

    def written(self, shard: int, group: int) -> None:
        self.turn.written(shard, group)

    def synced(self, shard: int, group: int) -> None:
        self.turn.synced(shard, group)

    def failed(self, shard: int, error: OSError | TopicsError) -> None:
        self.turn.failed(shard, error)

    # ---- time

    def tick(self) -> None:
        """What is due by now: stages that nobody published, answers that nobody asks for again."""
        now_ms = self.now_ms()
        due = self.machine.batches.due(now_ms)
        if due and self.turn.stopped(META_LOG_ID) is None:
            # Not held back when the disk is behind: this makes room.
            self.add(self.machine.step(Abort(tuple(due)), now_ms))
        self.machine.batches.forget_before(now_ms)

    def next_deadline_ms(self) -> int | None:
        """When `tick` and `checkpoint_due` want to be asked next; None while nothing is waiting for a time."""
        deadlines = []
        if self.turn.stopped(META_LOG_ID) is None:
            deadlines += [stage.expires_ms for stage in self.machine.batches.stages.values() if not stage.decided]
        if self.checkpointer.dirty and self.checkpoint_possible():
            deadlines.append(self._next_checkpoint_ms)
        return min(deadlines, default=None)

    def resume(self) -> None:
        """After a recovery: finish the batches that were decided and not finished."""
        self._publishing.resume()

    # ---- checkpoints

    def checkpoint_due(self) -> bool:
        # After a failure the next one waits its time: a disk that is full stays so for a while.
        much = self._dirty_bytes >= self.limits.dirty_bytes_max and self.checkpoint_error is None
        due = much or self.now_ms() >= self._next_checkpoint_ms
        return due and bool(self.checkpointer.dirty) and self.checkpoint_possible()

    def begin_checkpoint(self, erase: set[int] | None = None) -> Iterator[Job]:
        """The slices of a capture; the last job it yields is for `write_job`. `LogStopped` when none may be taken."""
        for shard in range(self.wal.shards):
            self.turn.check_running(shard)
        self._next_checkpoint_ms = self.now_ms() + self.limits.checkpoint_ms
        self._captured_bytes, self._dirty_bytes = self._dirty_bytes, 0
        return self.checkpointer.capture(self.now_ms(), erase)

    def write_job(self, job: Job) -> None:
        """Make a job durable. On any thread."""
        writing.write(self.store, self.checkpointer.limits, job)

    def clean_job(self, job: Job) -> None:
        """Remove what an installed job left over. On any thread; `cleaned` afterwards, on the loop."""
        writing.clean(self.store, job)

    def cleaned(self, job: Job) -> None:
        """Raises when bytes that were to be erased are still there."""
        self.checkpointer.cleaned(job)
        self.problems = job.problems
        left = (job.rewritten | job.unneeded) - job.removed
        if job.erase and left:
            reasons = "; ".join(job.problems)
            raise Internal(f"deleted, but not erased: {reasons}. The next erasure tries again", segments=sorted(left))

    def end_checkpoint(
        self, job: Job, error: Exception | None, trimmed: Callable[[Exception | None], None] = lambda error: None
    ) -> None:
        """Put what was written in place; `trimmed` is called when the WAL has dropped what it need not hold."""
        self.checkpoint_error = error
        if error is not None:
            self.checkpointer.failed(job, error)
            self._dirty_bytes += self._captured_bytes
            return
        covered = self.checkpointer.install(job)
        self.wal.trim(covered, job.snapshot_no, job.erase, trimmed)

    def checkpoint_possible(self) -> bool:
        """Whether a snapshot may be taken: not of a log that has stopped, whose memory is ahead of what was acked."""
        return all(self.turn.stopped(shard) is None for shard in range(self.wal.shards))

    def checkpoint(self, erase: set[int] | None = None) -> None:
        """A whole checkpoint on the calling thread."""
        *_, job = self.begin_checkpoint(erase)
        try:
            self.write_job(job)
            for _ in self.checkpointer.install_logs(job):
                pass
        except Exception as error:
            self.end_checkpoint(job, error)
            raise
        self.end_checkpoint(job, None)
        self.clean_job(job)
        self.cleaned(job)

    def erasable(self, topic_name: str, partition: int) -> set[int]:
        """The segments that may hold bytes of deleted records of a log; all that is below its floor is marked."""
        log = self.machine.log(self.machine.topic(topic_name), partition)
        for run in log.parts():
            below = min(log.low, run.last_seq + 1)
            if run.first_seq < below:
                run.mark(seq_range(run.first_seq, below))
        # By name: a stage that was published, or an earlier life of the topic, may have left its bytes as well.
        return {
            segment.number
            for segment in self.store.open_segments()
            if any((section.topic, section.partition) == (log.topic, log.partition) for section in segment.sections)
        }

    def rotate(self, done: Callable[[Exception | None], None]) -> None:
        """Begin new WAL files: then what is written during an erasure does not keep those that have to go."""
        self.wal.trim(Covered(dict(self.checkpointer.covered)), self.store.snapshots.number, True, done)

    # ---- the end

    def unsettled(self) -> list[Ticket]:
        """Tickets that need further turns: they are waited for before the commit log is closed."""
        return [*self.turn.unflushed(), *self._publishing.asking()]

    def stop(self) -> None:
        """Take no more commands. The host flushes, checkpoints, and then closes."""
        self.closing = True

    def close(self) -> None:
        try:
            self.wal.close()
        finally:
            self.store.close()
