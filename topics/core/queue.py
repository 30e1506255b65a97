"""What a queue knows beside its log: which jobs were handed out, and how far the handing out of new ones has come.

A job is a record. It is *ready* when it can be read, is not deleted and nobody has it:

    never handed out    found by the cursor: a live record from `cursor` on that has no entry in the lease table
    handed out before   free in the lease table: its lease ran out, it was given back, or its delay is over

Ready jobs of the first kind cost nothing here, however many there are. `cursor` only moves forward, past jobs that were
handed out, have a time of their own, or were deleted, so nothing is looked at twice.

State changes in `apply` only, from facts, and in `expire`, by time. A job that is deleted, expired or evicted takes its
entry with it (`forget`), so every entry stands for a live record; after a recovery `settle` sees to that once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, assert_never

from topics.core import live
from topics.core.facts import Claimed, Extended, Hand, Released
from topics.core.heapfacts import HeapFact
from topics.core.leases import DELAYED, FREE, LEASED, LEAVING, LeaseTable
from topics.core.run import Run
from topics.core.tokentimes import TokenTimes
from topics.model import QueueState, TopicConfig

if TYPE_CHECKING:
    from topics.core.log import Log


class Queue:
    __slots__ = ("cursor", "dead_letter_error", "dead_lettered", "is_touched", "leases", "token_times")

    leases: LeaseTable
    token_times: TokenTimes
    """Both are made when they are first asked for (`__getattr__`): of many queues, most are never taken from."""

    keeps_times = False
    """Whether the time of each write of a producer is to be remembered, not only that of the last one of several."""

    def __init__(self, cursor: int = 1, dead_lettered: int = 0, leases: LeaseTable | None = None) -> None:
        self.cursor = cursor
        self.dead_lettered = dead_lettered
        self.is_touched = False
        """Whether there is a lease table: without one nothing was ever handed out or delayed."""
        if leases is not None:
            self.leases = leases
            self.is_touched = True
        self.dead_letter_error: str | None = None
        """Why the last job that was to be dead-lettered could not be; it stays here and is tried again."""

    def __getattr__(self, name: str) -> object:
        """An attribute that is not there yet; one that is there costs nothing."""
        if name == "leases":
            self.is_touched = True
            made: LeaseTable | TokenTimes = LeaseTable()
        elif name == "token_times":
            made = TokenTimes()
        else:
            raise AttributeError(f"{type(self).__name__} has no attribute {name}")
        setattr(self, name, made)
        return made

    def apply(self, fact: Claimed | Released | Extended, now_ms: int = 0) -> None:
        match fact:
            case Claimed():
                for hand in fact.hands:
                    self.hand_out(hand)
                self.cursor = max(self.cursor, fact.cursor)
            case Released():
                self.leases.release(fact.seqs, fact.due_ms, now_ms, fact.undelivered)
            case Extended():
                self.leases.extend(fact.seqs, fact.due_ms)
            case _:
                assert_never(fact)

    def hand_out(self, hand: Hand, connection: int = 0) -> list[int]:
        """How often each was handed out by now."""
        return self.leases.lease(hand.seqs, hand.due_ms, hand.node, connection, hand.token)

    def apply_message(self, fact: HeapFact, now_ms: int = 0) -> None:
        """What happens to the messages of a heap only (`core/heap.py`)."""

    def look(self, log: Log, config: TopicConfig, now_ms: int) -> None:
        """Let time act."""
        self.leases.expire(now_ms)

    def sizes_of(self, places: Sequence[tuple[Run, list[int]]]) -> Mapping[int, int] | None:
        """The payload bytes of records by seq; None unless they are known of all of these."""
        return None

    def skip(self, count: int) -> None:
        """So many seqs were never given to a record."""

    def acked(self, count: int) -> None:
        """So many jobs are done."""

    def forget(self, seqs: Iterable[int]) -> None:
        """Records that are gone, for whatever reason."""
        if self.is_touched:
            self.leases.forget(seqs)

    def forget_below(self, low: int) -> None:
        if self.is_touched:
            self.leases.forget_below(low)

    def find_fresh(self, log: Log, limit: int) -> tuple[list[int], int]:
        """Up to so many jobs that were never handed out, and where the cursor stands behind them."""
        if limit <= 0:
            return [], self.cursor
        leases = self.leases
        if leases.highest < self.cursor:
            found = live.first_live_seqs(log, self.cursor, log.visible_seq, limit)
        else:
            # Jobs with a time of their own lie ahead.
            seqs = live.live_seqs(log, self.cursor, log.visible_seq)
            found = list(islice((seq for seq in seqs if seq not in leases), limit))
        return found, found[-1] + 1 if len(found) == limit else max(self.cursor, log.visible_seq + 1)

    def may_bury(self, config: TopicConfig) -> bool:
        """Whether some of the jobs that are ready may be dead letters by now."""
        return bool(config.max_deliveries and config.dead_letter is not None and self.leases.counts[FREE])

    def ready_count(self, log: Log) -> int:
        """Jobs that can be claimed. The caller has let time act on log and leases."""
        leases = self.leases
        ready = log.count - len(leases) + leases.counts[FREE]
        hidden_from = log.visible_seq + 1
        if hidden_from >= log.next_seq:
            return ready
        if leases.highest < hidden_from:
            return ready - live.count_from(log, hidden_from)
        hidden = live.live_seqs(log, hidden_from, log.head_seq)
        return ready - sum(seq not in leases or leases.is_free(seq) for seq in hidden)

    @property
    def in_flight_count(self) -> int:
        counts = self.leases.counts
        return counts[LEASED] + counts[LEAVING]

    def state(self, log: Log) -> QueueState:
        return QueueState(
            ready=self.ready_count(log),
            in_flight=self.in_flight_count,
            dead_lettered=self.dead_lettered,
            delayed=self.leases.counts[DELAYED],
            dead_letter_error=self.dead_letter_error,
        )

    def settle(self, log: Log) -> None:
        """After a recovery: an entry whose record did not survive goes as well."""
        if not self.is_touched:
            return
        gone = []
        for lease in self.leases:
            run = log.run_at(lease.seq)
            whole = run is not None and run.live_count > run.last_seq - run.first_seq
            if run is None or (not whole and run.first_live(lease.seq) != lease.seq):
                gone.append(lease.seq)
        self.forget(gone)
