"""From outcomes to the commit log, and from its progress back to tickets and readers.

All commands of one turn of the loop become one group a shard. The group's progress decides everything after that:

    written   memory and disk records become visible; tickets that need no sync are answered
    synced    the other tickets are answered; fsync records become visible; ceilings become durable
    failed    every waiting ticket fails, and the shard takes no more

An answer goes out when each shard that got one of its facts has got far enough. What a log itself has reached is told
by its own shard alone. A disk-class write is answered and shown at `written` only while its seq is below the log's
durable ceiling, so that no seq that was acked or read can ever be assigned again.

A log is *unborn* until the meta log's fact of its creation is durable. Whatever is written to it meanwhile waits for
that fact, too: without it, a recovery would find records of a log that never was.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from topics.core.log import Log
from topics.core.outcome import Outcome, StoredFact
from topics.core.registry import META_LOG_ID
from topics.engine.copysync import CopySync
from topics.engine.ticket import Ticket
from topics.errors import LogStopped, Throttled, TopicsError
from topics.model import Durability
from topics.storage.commitlog import CommitLog, Entry
from topics.storage.frame import Kind

# Looking a member up in its enum takes several times as long as comparing it: named once for the paths of every write.
_DISK: Final = Durability.DISK
_FSYNC: Final = Durability.FSYNC
_APPENDED: Final = Kind.APPENDED
_FACT: Final = Kind.FACT


@dataclass(slots=True)
class _Shard:
    entries: list[Entry] = field(default_factory=list)
    tickets: list[Ticket] = field(default_factory=list)
    size_bytes: int = 0
    sync: bool = False
    last_group: int = 0
    written_group: int = 0
    synced_group: int = 0
    to_write: deque[tuple[int, list[Ticket]]] = field(default_factory=deque)
    to_sync: deque[tuple[int, list[Ticket]]] = field(default_factory=deque)
    error: TopicsError | None = None


class Turn:
    def __init__(
        self, positions: dict[int, int], unborn: set[int], on_visible: Callable[[Log], None], queue_bytes_max: int
    ) -> None:
        self.positions = positions
        """The last position of each log, what this turn adds included."""
        self._on_visible = on_visible
        self._queue_bytes_max = queue_bytes_max
        self._shards: list[_Shard] = []
        self._unborn = unborn
        self._copies = CopySync()
        self.wanted: Callable[[], None] = lambda: None
        """Called when something was added to a turn that was empty, so that the host flushes it."""
        self.sync_followed: Collection[int] = ()
        """Logs whose syncs are news to somebody: `on_synced` is called for them."""
        self.on_synced: Callable[[Log], None] = lambda log: None
        self.before_answers: Callable[[], None] = lambda: None
        """Called when readers can see what was written, and its writers are not answered yet."""
        self.any_stopped = False
        """Whether a shard has failed."""
        self.ticks_ns: Callable[[], int] = lambda: 0
        """The steady clock that says when a group was written."""

    def attach(self, commit_log: CommitLog) -> None:
        """The commit log reports to this turn, so it is started with it and attached then."""
        self.commit_log = commit_log
        self._shards = [_Shard() for _ in range(commit_log.shards)]

    # ---- this turn

    def check(self, log_id: int, size_bytes: int) -> None:
        """Refuse before anything has changed: `LogStopped`, or `Throttled` when the disk cannot keep up."""
        number = self.commit_log.shard_of(log_id)
        shard = self._shards[number]
        if shard.error is not None:
            raise self._stopped(number)
        if log_id in self._unborn:
            self.check_running(self.commit_log.shard_of(META_LOG_ID))
        waiting = shard.size_bytes + self.commit_log.queued_bytes(number)
        if waiting and waiting + size_bytes > self._queue_bytes_max:
            raise Throttled(
                f"{waiting} bytes are waiting for the disk; try again when some are written",
                limit="queue_bytes",
                retry_after_ms=50,
            )

    def fullness(self) -> float:
        """How much of what may wait for the disk does so, in the shard where it is most; writes are refused at 1."""
        waiting = [shard.size_bytes + self.commit_log.queued_bytes(at) for at, shard in enumerate(self._shards)]
        return max(waiting) / self._queue_bytes_max

    def stopped(self, log_id: int) -> TopicsError | None:
        """Why a log takes no writes any more; None while it does."""
        return self._shards[self.commit_log.shard_of(log_id)].error

    def check_running(self, number: int) -> None:
        if self._shards[number].error is not None:
            raise self._stopped(number)

    def _stopped(self, number: int) -> LogStopped:
        cause = self._shards[number].error
        return LogStopped(
            f"this log takes no writes since its disk failed ({cause}); reads go on. Mend the disk and restart",
            shard=number,
        )

    def add(self, outcome: Outcome, born: Sequence[int] = ()) -> Ticket:
        """Queue an outcome's facts; the ticket for its reply. `born` names the logs that it created."""
        log, facts = outcome.log, outcome.facts
        ticket = Ticket(outcome.reply, needs_sync=outcome.must_sync or _seen_when_synced(outcome))
        if log is not None and outcome.seq:
            ticket.log = log
            ticket.shard = self.commit_log.shard_of(log.log_id)
            ticket.seq = outcome.seq
            ticket.ceiling = log.granted_ceiling
            if outcome.source is not None:
                return self._add_copies(outcome, log, outcome.source, ticket)
            if (
                len(facts) == 1
                and facts[0].log_id == log.log_id
                and not born
                and log.log_id not in self._unborn
                and log.log_id not in self._copies.logs
            ):
                # Nearly every write: one fact, in the log it is about, and no other shard to wait for.
                self._queue(facts[0], ticket.shard)
                ticket.visible_at_sync = _seen_when_synced(outcome)
                self._wait_for((ticket.shard,), ticket)
                return ticket
        elif log is not None and len(facts) == 1 and not born and not self._unborn:
            # A fact about records that are there: nothing new is shown with it.
            number = self.commit_log.shard_of(facts[0].log_id)
            self._queue(facts[0], number)
            self._wait_for((number,), ticket)
            return ticket
        shards = {self.commit_log.shard_of(fact.log_id) for fact in facts}
        for fact in facts:
            self._queue(fact, self.commit_log.shard_of(fact.log_id))
        if not shards and self._is_on_its_way(ticket, outcome):
            shards.add(ticket.shard)
        if log is not None and outcome.follows:
            shards.add(self.commit_log.shard_of(log.log_id))
        self._bear(born)
        if log is not None and shards and log.log_id in self._unborn:
            shards |= {self.commit_log.shard_of(log.log_id), self.commit_log.shard_of(META_LOG_ID)}
            ticket.needs_sync = True
        if log is not None and outcome.seq and outcome.durability is _FSYNC and shards:
            # Readers see a log as a prefix: copies in front of these records must be durable, too.
            shards |= self._copies.shards_of(log.log_id, outcome.seq)
        ticket.visible_at_sync = _seen_when_synced(outcome) or len(shards) > 1
        self._wait_for(shards, ticket)
        return ticket

    def _add_copies(self, outcome: Outcome, log: Log, source: Log, ticket: Ticket) -> Ticket:
        """They are durable when their fact and their source are; `fsync` shows them only then."""
        for fact in outcome.facts:
            self._queue(fact, ticket.shard)
        shards = {ticket.shard}
        if log.log_id in self._unborn:
            shards.add(self.commit_log.shard_of(META_LOG_ID))
            ticket.needs_sync = True
        if source.synced_seq < outcome.source_seq:
            needed = {self.commit_log.shard_of(source.log_id)}
            needed |= self._copies.shards_of(source.log_id, outcome.source_seq)
            needed.discard(ticket.shard)
            if needed:
                self._follow(log, ticket, outcome.first_seq, needed)
            if outcome.durability is _FSYNC:
                shards |= needed
        ticket.visible_at_sync = _seen_when_synced(outcome) or len(shards) > 1
        self._wait_for(shards, ticket)
        return ticket

    def _follow(self, log: Log, ticket: Ticket, first_seq: int, numbers: set[int]) -> None:
        """Copies are not durable before these shards are synced."""
        self._copies.wait(log.log_id, first_seq, ticket.seq, log.synced_seq, set(numbers))
        for number in numbers:
            follower = Ticket(done=True, visible_at_sync=True, follows_source=True)
            follower.log, follower.shard, follower.seq = log, number, ticket.seq
            self._wait_for((number,), follower)

    def _bear(self, log_ids: Sequence[int]) -> None:
        """Logs are unborn until the meta log's shard has synced this turn; for ever if it fails."""
        if not log_ids:
            return
        self._unborn.update(log_ids)
        birth = Ticket()
        birth.needs_sync = True
        birth.on_done(lambda done: self._unborn.difference_update(log_ids if done.error is None else ()))
        self._wait_for((self.commit_log.shard_of(META_LOG_ID),), birth)

    def _wait_for(self, numbers: Collection[int], ticket: Ticket) -> None:
        if not numbers:
            self._show(ticket)
            ticket.resolve(ticket.reply)
            return
        for number in numbers:
            if self._shards[number].error is not None:
                ticket.fail(self._stopped(number))
                return
        ticket.waiting = len(numbers)
        for number in numbers:
            shard = self._shards[number]
            if not shard.entries and not shard.tickets:
                self.wanted()
            shard.tickets.append(ticket)
            if ticket.needs_sync:
                shard.sync = True

    def _queue(self, fact: StoredFact, number: int) -> None:
        """Add a fact to what this turn hands to its shard."""
        shard = self._shards[number]
        if not shard.entries and not shard.tickets:
            self.wanted()
        log_id, body = fact.log_id, fact.body
        position = self.positions[log_id] = self.positions.get(log_id, 0) + 1
        shard.entries.append(Entry(log_id, position, _APPENDED if fact.appended else _FACT, body))
        for part in body:
            shard.size_bytes += len(part)

    def _is_on_its_way(self, ticket: Ticket, outcome: Outcome) -> bool:
        """A repeated write stores nothing and waits for the first one: whether that is not safe enough yet."""
        log = ticket.log
        if log is None or outcome.durability is Durability.EPHEMERAL:
            return False
        return log.log_id in self._unborn or ticket.seq > (log.synced_seq if ticket.needs_sync else log.ready_seq)

    def flush(self) -> None:
        """Hand this turn over: one group a shard."""
        for number, shard in enumerate(self._shards):
            if not shard.entries and not shard.tickets:
                continue
            tickets = shard.tickets
            if shard.entries:
                taken = shard.entries, tickets, shard.size_bytes, shard.sync
                # The commit log may report while it takes a group, and who is answered then may write again.
                shard.entries, shard.tickets, shard.size_bytes, shard.sync = [], [], 0, False
                try:
                    shard.last_group = self.commit_log.append(number, taken[0], taken[3])
                except Throttled:
                    # Records take more room than the payload that was checked. They stay for a later turn, which
                    # `written` asks for: what fills the queue is on its way to the disk.
                    shard.entries, shard.tickets, shard.size_bytes, shard.sync = taken
                    continue
                except TopicsError as error:
                    # The shard failed between the check and now: nothing of this turn is stored.
                    shard.tickets = tickets
                    self.failed(number, error)
                    continue
            else:
                if shard.sync:
                    self.commit_log.sync(number)
                shard.tickets = []
                shard.sync = False
            shard.to_write.append((shard.last_group, tickets))
            shard.to_sync.append((shard.last_group, tickets))
            # A ticket without facts may wait for a group that has got there already.
            self.written(number, shard.written_group)
            self.synced(number, shard.synced_group)

    def unflushed(self) -> list[Ticket]:
        """Tickets whose facts are not with the commit log yet."""
        return [ticket for shard in self._shards for ticket in shard.tickets]

    # ---- the commit log's listener

    def written(self, shard: int, group: int) -> None:
        state = self._shards[shard]
        state.written_group = group
        if state.to_write and state.to_write[0][0] <= group:
            self._reached(_taken(state.to_write, group))
        if state.entries:
            self.wanted()

    def _reached(self, tickets: Sequence[Ticket]) -> None:
        """These were written: let readers see them, then answer."""
        now_ns = self.ticks_ns()
        for ticket in tickets:
            ticket.written_ns = now_ns
            if not ticket.visible_at_sync:
                self._show(ticket)
        try:
            self.before_answers()
        finally:
            for ticket in tickets:
                if not ticket.needs_sync:
                    self._count_down(ticket)

    def synced(self, shard: int, group: int) -> None:
        state = self._shards[shard]
        state.synced_group = group
        has_copies = bool(self._copies)
        while state.to_sync and state.to_sync[0][0] <= group:
            for ticket in state.to_sync.popleft()[1]:
                log = ticket.log
                if log is not None and ticket.shard == shard:
                    seq = ticket.seq
                    if ticket.follows_source:
                        seq = self._copies.source_synced(log.log_id, seq, shard)
                    elif has_copies:
                        seq = self._copies.own_synced(log.log_id, seq)
                    if seq > log.synced_seq:
                        log.synced_seq = seq
                        if log.log_id in self.sync_followed:
                            self.on_synced(log)
                    if ticket.ceiling > log.durable_ceiling:
                        log.durable_ceiling = ticket.ceiling
                if ticket.needs_sync:
                    self._count_down(ticket)

    def failed(self, shard: int, error: OSError | TopicsError) -> None:
        state = self._shards[shard]
        if state.error is None:
            state.error = error if isinstance(error, TopicsError) else LogStopped(str(error), shard=shard)
            self.any_stopped = True
        state.entries = []
        waiting = [*state.to_write, *state.to_sync, (0, state.tickets)]
        state.to_write.clear()
        state.to_sync.clear()
        state.tickets = []
        for _, tickets in waiting:
            for ticket in tickets:
                ticket.fail(self._stopped(shard))

    def _count_down(self, ticket: Ticket) -> None:
        ticket.waiting -= 1
        if not ticket.waiting and not ticket.done:
            self._show(ticket)
            ticket.resolve(ticket.reply)

    def _show(self, ticket: Ticket) -> None:
        """Let readers see a log up to what this ticket wrote."""
        log = ticket.log
        if log is not None and ticket.seq > log.ready_seq:
            log.ready_seq = ticket.seq
            self.show_ready(log)

    def show_ready(self, log: Log) -> None:
        """Readers see what is ready, up to where an unfinished batch begins."""
        if _raise_visible(log):
            self._on_visible(log)

    def show_together(self, logs: Sequence[Log]) -> None:
        """The same for several logs: readers see all of them before anything is done about one."""
        for log in [log for log in logs if _raise_visible(log)]:
            self._on_visible(log)


def _raise_visible(log: Log) -> bool:
    """Whether readers see more of a log now."""
    upto = log.ready_seq if not log.hidden_from else min(log.ready_seq, log.hidden_from - 1)
    if upto <= log.visible_seq:
        return False
    log.visible_seq = upto
    return True


def _taken(waiting: deque[tuple[int, list[Ticket]]], group: int) -> list[Ticket]:
    """The tickets of all groups up to this one, which has come."""
    tickets = waiting.popleft()[1]
    if waiting and waiting[0][0] <= group:
        tickets = list(tickets)
        while waiting and waiting[0][0] <= group:
            tickets += waiting.popleft()[1]
    return tickets


def _seen_when_synced(outcome: Outcome) -> bool:
    """Whether a write's class makes its answer and its readers wait for the sync.

    A seq above the durable ceiling could be assigned again after a power loss, so nobody is shown it before.
    """
    log = outcome.log
    if log is None or not outcome.seq:
        return False
    if outcome.durability is _DISK:
        return outcome.seq > log.durable_ceiling
    return outcome.durability is _FSYNC
