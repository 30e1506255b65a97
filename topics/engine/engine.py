"""The engine: where commands, the log and the clock meet. No thread and no event loop of its own.

A host drives it: it submits commands, flushes once a turn, passes on what the commit log reports, runs checkpoints
when they are due, and calls `tick` at `next_deadline_ms`. The asyncio host is `host.py`; tests and the simulator
drive it by hand, with the same calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from topics.clock import Clock
from topics.core import archiving, priority, settle
from topics.core.commands import Abort, Acks, Append, Claimer, Command, Complete, Drop, Publish, Redrive
from topics.core.cut import PLAIN, Render, Shape, cut
from topics.core.groupcommands import AckGroup, DropGroup, NackGroup, PauseGroup, ResetGroup
from topics.core.heap import Heap
from topics.core.heapcommands import MoveToDlq, NackMessages, ReplayDead
from topics.core.log import Log
from topics.core.machine import Machine
from topics.core.match import Match
from topics.core.outcome import Outcome
from topics.core.read import cursor_at, plan_read
from topics.core.registry import META_LOG_ID, Topic
from topics.core.run import seq_range
from topics.engine import admission, writing
from topics.engine.checkpoint import Checkpointer
from topics.engine.claiming import Claiming
from topics.engine.forwarding import Forwarding
from topics.engine.freshness import Freshness
from topics.engine.grouping import Grouping
from topics.engine.heaping import Heaping
from topics.engine.job import Job
from topics.engine.leasing import Leasing
from topics.engine.moving import Moving
from topics.engine.publishing import Publishing
from topics.engine.report import RecoveryReport
from topics.engine.routing import Routing
from topics.engine.ticket import Ticket
from topics.engine.turn import Turn
from topics.engine.watch import Watch
from topics.errors import Damaged, Internal, InvalidRequest, ShuttingDown, Throttled, TopicsError
from topics.limits import BYTE_BUDGET_DEFAULT, BYTE_BUDGET_MAX, LIMIT_DEFAULT
from topics.model import Page, QueueState, TopicState
from topics.steadyclock import SteadyClock
from topics.storage.commitlog import CommitLog, Covered
from topics.storage.store import Store

DIRTY_FACTOR = 4


@dataclass(frozen=True, slots=True)
class EngineLimits:
    limit_max: int = 1000
    buffer_grace_ms: int = 5000
    checkpoint_ms: int = 60_000
    dirty_bytes_max: int = 64 << 20
    """Bytes written since the last checkpoint that make one due; at `DIRTY_FACTOR` times as many, writes wait."""
    backup_held_bytes_max: int = 16 << 30
    """Files that only a running backup needs: one that holds more is interrupted."""


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
        self.last_backup_ms = 0
        """The moment of the last backup that was read to its end; 0 for none since the start."""
        self.problems: list[str] = []
        """What the last checkpoint could not clean up, in words; the next one tries again."""
        turn.ticks_ns = clock.ticks_ns
        self.time = SteadyClock(clock)
        self.time.reach(now_ms)
        self.now_ms: Callable[[], int] = self.time.now_ms
        """The time of the engine: the wall clock, without its jumps. It never goes back, also not over a restart."""
        self.watch = Watch(
            machine, self.now_ms, clock.ticks_ns, checkpointer.dirty.add, limits.limit_max, limits.buffer_grace_ms
        )
        self.on_visible: Callable[[Log], None] = self.watch.note
        turn.sync_followed, turn.on_synced = self.watch.strong_logs, self.watch.note
        self._publishing = Publishing(machine, turn, self.now_ms, self.checkpointer.dirty.add)
        self.moving = Moving(machine, self._add_born, self.now_ms)
        self.claiming = Claiming(machine, self.add, self._check_fact, self.now_ms, lambda: turn.wanted())
        self.leasing = Leasing(machine, self.now_ms)
        self.groups = Grouping(machine, self.add, self._check_consume, self.now_ms, lambda: turn.wanted())
        self.heaps = Heaping(
            machine, self.add, self.submit, self._check_consume, turn.stopped, self.now_ms, lambda: turn.wanted()
        )
        mark_dirty, bytes_max = checkpointer.dirty.add, limits.dirty_bytes_max
        self.forwarding = Forwarding(machine, self.add, self._check_fact, mark_dirty, self.now_ms, clock, bytes_max)
        self.routing = Routing(machine, self.forwarding, self.now_ms)
        self.freshness = Freshness(machine, self.forwarding, self.moving, turn.stopped, self.now_ms, clock.ticks_ns)
        self.watch.fresh = lambda topic: self.freshness.of((topic,))
        self._timed = (self.claiming, self.groups, self.heaps, self.forwarding, self.freshness)
        self._next_checkpoint_ms = self.now_ms() + limits.checkpoint_ms
        self._dirty_bytes = 0
        self._captured_bytes = 0
        """What was dirty when the last checkpoint began: still so if it fails."""
        self.closing = False

    @property
    def wal(self) -> CommitLog:
        return self.turn.commit_log

    # ---- commands

    def submit(self, command: Command) -> Ticket:
        """Decide a command now; its ticket is done when the answer may go out. Raises when it is refused."""
        if self.closing:
            raise ShuttingDown("the engine is closing")
        if isinstance(command, Append) and (topic := self.machine.topics.get(command.topic)) is not None:
            self._check_dirty()
            self.turn.check(topic.first_log_id + command.partition, command.records.payload_bytes)
            return self.add(self.machine.append(command, self.now_ms()))
        if isinstance(command, Acks):
            # What workers say most often takes none of the steps below.
            admission.check(self.machine, self.turn, command)
            ticket = self.add(settle.ack_together(self.machine, command, self.now_ms()))
            self.forwarding.follow(command, ticket.reply)
            return ticket
        if admission.adds_bytes(command):
            self._check_dirty()
        admission.check(self.machine, self.turn, command)
        if isinstance(command, AckGroup | NackGroup):
            return self.groups.settle(command)
        if isinstance(command, Publish):
            return self._publishing.begin(command)
        dropped = self._logs_of(command.topic) if isinstance(command, Drop) else ()
        next_log_id = self.machine.next_log_id
        outcome = self.machine.step(command, self.now_ms())
        self.forwarding.follow(command, outcome.reply)
        if isinstance(command, Complete | Redrive | MoveToDlq | NackMessages | ReplayDead):
            return self.moving.carry(outcome)
        ticket = self._add_born(outcome, range(next_log_id, self.machine.next_log_id))
        self.watch.dropped(dropped)
        self.claiming.dropped(dropped)
        self.groups.dropped(dropped)
        self.heaps.dropped(dropped)
        if isinstance(command, ResetGroup | PauseGroup | DropGroup):
            self.groups.changed(command, self._logs_of(command.topic), ticket)
        return ticket

    def claim(self, topic: str, claimer: Claimer, partition: int = 0, wait_ms: int = 0) -> Ticket:
        """Jobs for one worker, now or within `wait_ms`; the ticket's reply is `ClaimedJobs`."""
        self.check_claims()
        return self.claiming.claim(topic, claimer, partition, wait_ms)

    def check_claims(self) -> None:
        """Raises when nothing may be leased just now."""
        if self.closing:
            raise ShuttingDown("the engine is closing")
        self._check_dirty()

    def _add_born(self, outcome: Outcome, born: Sequence[int] = ()) -> Ticket:
        ticket = self.add(outcome, born)
        self.watch.born(born)
        self.claiming.born(born)
        return ticket

    def _logs_of(self, topic_name: str) -> Sequence[int]:
        topic = self.machine.topics.get(topic_name)
        return () if topic is None else topic.log_ids()

    def add(self, outcome: Outcome, born: Sequence[int] = ()) -> Ticket:
        """Queue an outcome; `born` names the logs that it created."""
        dirty = self.checkpointer.dirty
        for fact in outcome.facts:
            dirty.add(fact.log_id)
            self._dirty_bytes += len(fact.body[-1])
        log = outcome.log
        if log is not None:
            dirty.add(log.log_id)
            if log.queue is not None and not outcome.seq:
                # What was appended is news when it is shown.
                self._note_taken(log)
                self.leasing.note(log)
            if log.has_groups:
                self.groups.note(log)
        ticket = self.turn.add(outcome, born)
        for begun in outcome.moves:
            self.moving.begin(begun)
        return ticket

    def shown(self, log: Log) -> None:
        """Readers see more of a log than before."""
        if isinstance(log.queue, Heap):
            self.heaps.came(log)
        elif log.queue is not None:
            self.claiming.note(log)
        if log.has_groups:
            self.groups.note(log)
        self.forwarding.note(log)
        self.on_visible(log)

    def _note_taken(self, log: Log) -> None:
        """Something about a queue or a heap changed."""
        (self.heaps if isinstance(log.queue, Heap) else self.claiming).note(log)

    def _check_fact(self, log_id: int) -> None:
        self.turn.check(log_id, admission.FACT_BYTES)

    def _check_consume(self, log_id: int) -> None:
        if self.closing:
            raise ShuttingDown("the engine is closing")
        self._check_dirty()
        self._check_fact(log_id)

    def _check_dirty(self) -> None:
        if self._dirty_bytes > DIRTY_FACTOR * self.limits.dirty_bytes_max:
            raise Throttled(
                "writes are ahead of the checkpoint that makes room for them; try again",
                limit="dirty_bytes",
                retry_after_ms=100,
            )

    def flush(self) -> None:
        self.claiming.serve()
        self.groups.serve()
        self.heaps.serve()
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
        render: Render = cut,
        limit_max: int = 0,
    ) -> Page:
        """A page of records behind a cursor, wire-ready. Limits above the allowed are clamped, 0 is the default.

        With `from_ts`, records stamped before that time are passed over, too. `limit_max` allows for more records
        than a reader of JSON gets.
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
            min(limit or LIMIT_DEFAULT, limit_max or self.limits.limit_max),
            min(byte_budget or BYTE_BUDGET_DEFAULT, BYTE_BUDGET_MAX),
            [node.encode() for node in nodes] if topic.config.dedupe_node else (),
            match,
        )
        spans = plan.spans
        return Page(
            topic=topic.name,
            partition=partition,
            body=render(spans, shape),
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
                topic.config.priority, topic.config.auto_priority, self.time.latest_ms, topic.last_read_ts
            ),
            last_write_ts=log.last_write_ts,
            last_read_ts=topic.last_read_ts,
            stopped=None if stopped is None else str(stopped),
            queue=self._queue_state(topic, log),
            archives=archiving.archives(log),
            holding=archiving.holding(log, topic.config),
        )

    def _queue_state(self, topic: Topic, log: Log) -> QueueState | None:
        if log.queue is None:
            return None
        with suppress(Damaged):  # Whoever needs what cannot be read is told; the numbers are the last known ones.
            log.queue.look(log, topic.config, self.time.latest_ms)
        return log.queue.state(log)

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
        for timed in self._timed:
            timed.tick()

    def next_deadline_ms(self) -> int | None:
        """When `tick` and `checkpoint_due` want to be asked next; None while nothing is waiting for a time."""
        deadlines = []
        if self.turn.stopped(META_LOG_ID) is None:
            deadlines += [stage.expires_ms for stage in self.machine.batches.stages.values() if not stage.decided]
        if self.checkpointer.dirty and self.checkpoint_possible():
            deadlines.append(self._next_checkpoint_ms)
        deadlines += [due_ms for timed in self._timed if (due_ms := timed.next_deadline_ms()) is not None]
        return min(deadlines, default=None)

    def resume(self) -> None:
        """After a recovery: finish the batches and moves that were decided and not finished, count what is out."""
        self._publishing.resume()
        self.moving.resume()
        self.leasing.resume()
        self.groups.resume()
        self.heaps.resume()
        self.forwarding.resume()

    # ---- checkpoints

    def checkpoint_due(self) -> bool:
        # After a failure the next one waits its time: a disk that is full stays so for a while.
        dirty_bytes = self._dirty_bytes + self.forwarding.dirty_bytes
        much = dirty_bytes >= self.limits.dirty_bytes_max and self.checkpoint_error is None
        due = much or self.now_ms() >= self._next_checkpoint_ms
        return due and bool(self.checkpointer.dirty) and self.checkpoint_possible()

    def begin_checkpoint(self, erase: set[int] | None = None) -> Iterator[Job]:
        """The slices of a capture; the last job it yields is for `write_job`. `LogStopped` when none may be taken."""
        for shard in range(self.wal.shards):
            self.turn.check_running(shard)
        if erase is not None:
            self._interrupt_backup()
        self._next_checkpoint_ms = self.now_ms() + self.limits.checkpoint_ms
        self._captured_bytes, self._dirty_bytes = self._dirty_bytes, 0
        return self.forwarding.held_during(self.checkpointer.capture(self.now_ms(), erase))

    def write_job(self, job: Job) -> None:
        """Make a job durable. On any thread."""
        writing.write(self.store, self.checkpointer.limits, job)

    def clean_job(self, job: Job) -> None:
        """Remove what an installed job left over. On any thread; `cleaned` afterwards, on the loop."""
        writing.clean(self.store, job)

    def cleaned(self, job: Job, trimmed: Callable[[Exception | None], None] = lambda error: None) -> None:
        """Let the WAL drop what it need not hold any more, and call `trimmed` when it has: a file that outlives its
        place in the snapshot must not outlive the facts that say so. Raises when bytes that were to be erased are
        still there.
        """
        self.checkpointer.cleaned(job)
        self.problems = job.problems
        assert job.replaces is not None, "an installed job says what the WAL need not hold"
        self.wal.trim(job.replaces, job.snapshot_no, job.erase, trimmed)
        left = (job.rewritten | job.unneeded) - job.removed
        if job.erase and left:
            reasons = "; ".join(job.problems)
            raise Internal(f"deleted, but not erased: {reasons}. The next erasure tries again", segments=sorted(left))

    def end_checkpoint(self, job: Job, error: Exception | None) -> None:
        """Put what was written in place; `clean_job` is next."""
        self.checkpoint_error = error
        if error is not None:
            self.checkpointer.failed(job, error)
            self._dirty_bytes += self._captured_bytes
            self.forwarding.unsettle()
            return
        job.replaces = self.checkpointer.install(job)

    def checkpoint_possible(self) -> bool:
        """Whether a snapshot may be taken: not of a log that has stopped, whose memory is ahead of what was acked."""
        return not self.turn.any_stopped

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
        self._interrupt_backup()
        self.wal.trim(Covered(dict(self.checkpointer.covered)), self.store.snapshots.number, True, done)

    def _interrupt_backup(self) -> None:
        """An erasure overwrites files that a backup may be reading."""
        if self.store.pins is not None:
            self.store.pins.interrupt("records are being erased, in files that it had not read yet")

    # ---- the end

    def unsettled(self) -> list[Ticket]:
        """Tickets that need further turns: they are waited for before the commit log is closed."""
        return [*self.turn.unflushed(), *self._publishing.asking(), *self.moving.under_way()]

    def stop(self) -> None:
        """Take no more commands. The host flushes, checkpoints, and then closes."""
        self.closing = True
        self.claiming.end_waiting()
        self.groups.end_waiting()
        self.heaps.close()
        self.forwarding.stop()
        self.freshness.close()

    def close(self) -> None:
        try:
            self.wal.close()
        finally:
            self.store.close()
