"""What a partition of a heap knows beside its log: which messages wait in what order, who has the others, what failed.

A heap is a queue whose jobs are taken in another order, so it has all that a queue has: the lease table, the tokens,
the count of dead letters. A message is

    ready       live, visible, and without an entry in the lease table or with a free one
    leased, delayed, leaving    by its entry in the lease table

and nothing else is decisive. `order` is where ready messages are found, best first: everything that is ready is in it,
but not everything in it is ready. `look` brings it up to date. Behind `cursor` are records it has not seen: their
priorities are read from the log, however they came there. What became free in the lease table goes back, unless it
failed too often: that is `exhausted`, which the next command moves to the dead letters.

A lease that ran out is a delivery that failed. When `look` meets one, its holder loses it, and the message rests for a
time that follows from the lease itself, so that after a crash it is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, assert_never

import msgspec
import numpy as np

from topics.core import heaprecord, live
from topics.core.backoff import backoff_ms
from topics.core.facts import Claimed, Extended, Hand, Released
from topics.core.heapfacts import HeapFact, Nacked, PriorityChanged
from topics.core.heaporder import SEQ_BITS, SEQ_MASK, Order, priority_of, rank_of, ranks_of
from topics.core.leases import Lease, LeaseTable
from topics.core.queue import Queue
from topics.core.run import Run
from topics.heapmodel import Failure
from topics.limits import HEAP_HISTORY_MAX, HEAP_RUN_MESSAGES
from topics.model import Mode, TopicConfig, TopicType

if TYPE_CHECKING:
    from topics.core.log import Log

ALL: Final = 2**62
ORDER_SLACK: Final = 2 * HEAP_RUN_MESSAGES
"""Entries of the order that stand for nothing and are not worth looking for."""
SIFTED_AT_ONCE: Final = 2048
"""Entries that are looked at in one step, so that nobody waits for it."""
TIMEOUT: Final = "timeout"


class Counts(msgspec.Struct):
    """What happened to the messages of a partition, ever."""

    pops: int = 0
    acks: int = 0
    nacks: int = 0
    retries: int = 0
    timeouts: int = 0
    skipped: int = 0
    """Seqs that no message has."""


def queue_for(config: TopicConfig) -> Queue | None:
    """What a partition of a new topic knows beside its log."""
    if config.type is TopicType.HEAP:
        return Heap(config.mode)
    return Queue() if config.type is TopicType.QUEUE else None


class Heap(Queue):
    __slots__ = ("changed", "counts", "exhausted", "head_time", "history", "live_head", "mode", "order", "sizes")

    keeps_times = True

    def __init__(
        self,
        mode: Mode = Mode.MIN,
        cursor: int = 1,
        dead_lettered: int = 0,
        leases: LeaseTable | None = None,
        order: Order | None = None,
    ) -> None:
        super().__init__(cursor, dead_lettered, leases)
        self.mode = mode
        self.order = order if order is not None else Order()
        self.changed: dict[int, int] = {}
        """Priorities that are not those the messages came with, by seq."""
        self.history: dict[int, tuple[Failure, ...]] = {}
        """The last failures of each message that has any, by seq."""
        self.exhausted: dict[int, None] = {}
        """Free messages that failed too often, and are to die."""
        self.sizes: dict[int, int] = {}
        """Payload bytes of messages that were popped in this process, so that an ack need not read them again."""
        self.counts = Counts()
        self.live_head = 0
        """The key of the best message when it was last seen to be there; 0 since something was deleted."""
        self.head_time = (0, 0)
        """The key of the best message when its time was last looked up, and that time."""

    # ---- what changes it

    def apply(self, fact: Claimed | Released | Extended, now_ms: int = 0) -> None:
        if isinstance(fact, Claimed):
            for hand in fact.hands:
                self._note_timeouts(hand.seqs)
        super().apply(fact, now_ms)

    def apply_message(self, fact: HeapFact, now_ms: int = 0) -> None:
        match fact:
            case Nacked():
                self._nack(fact, now_ms)
            case PriorityChanged():
                self.changed[fact.seq] = fact.priority
                if fact.seq < self.cursor and (fact.seq not in self.leases or self.leases.is_free(fact.seq)):
                    self.order.push(rank_of(fact.priority, self.mode), fact.seq)
            case _:
                assert_never(fact)

    def hand_out(self, hand: Hand, connection: int = 0) -> list[int]:
        deliveries = super().hand_out(hand, connection)
        self.counts.pops += len(deliveries)
        self.counts.retries += sum(count > 1 for count in deliveries)
        return deliveries

    def acked(self, count: int) -> None:
        self.counts.acks += count

    def sizes_of(self, places: Sequence[tuple[Run, list[int]]]) -> Mapping[int, int] | None:
        sizes = self.sizes
        return sizes if all(seq in sizes for _, seqs in places for seq in seqs) else None

    def skip(self, count: int) -> None:
        self.counts.skipped += count

    def forget(self, seqs: Iterable[int]) -> None:
        seqs = list(seqs)
        self.live_head = 0
        super().forget(seqs)
        if self.changed or self.history or self.exhausted or self.sizes:
            for seq in seqs:
                self._forget(seq)

    def forget_below(self, low: int) -> None:
        self.live_head = 0
        super().forget_below(low)
        known = (self.changed, self.history, self.exhausted, self.sizes)
        for seq in [seq for each in known for seq in each if seq < low]:
            self._forget(seq)

    def _forget(self, seq: int) -> None:
        self.changed.pop(seq, None)
        self.history.pop(seq, None)
        self.exhausted.pop(seq, None)
        self.sizes.pop(seq, None)

    def _nack(self, fact: Nacked, now_ms: int) -> None:
        for seq, due_ms in zip(fact.seqs, fact.due_times, strict=True):
            lease = self.leases.get(seq)
            if lease is not None:
                self._failed(seq, Failure(fact.at_ms, fact.reason, lease.node))
                self.leases.release((seq,), due_ms, now_ms)
        self.counts.nacks += len(fact.seqs)

    def _note_timeouts(self, seqs: Sequence[int]) -> None:
        """In a replay, a message that somebody still has and somebody else gets had run out between."""
        for seq in seqs:
            lease = self.leases.get(seq)
            if lease is not None and lease.node:
                self._ran_out(lease)

    def _ran_out(self, lease: Lease) -> None:
        self.counts.timeouts += 1
        self._failed(lease.seq, Failure(lease.due_ms, TIMEOUT, lease.node))

    def _failed(self, seq: int, failure: Failure) -> None:
        self.history[seq] = (*self.history.get(seq, ()), failure)[-HEAP_HISTORY_MAX:]

    # ---- bringing the order up to date

    def is_still(self, log: Log, now_ms: int) -> bool:
        """Whether nothing is ready, and `look` would not change that. Most partitions are, so this costs little."""
        if self.order.count or self.exhausted or self.cursor <= log.visible_seq or self.leases.may_give_free:
            return False
        due_ms = self.leases.next_due_ms()
        return due_ms is None or due_ms > now_ms

    def look(self, log: Log, config: TopicConfig, now_ms: int) -> None:
        """Let time act, and put in order what came or became free."""
        self.leases.expire(now_ms)
        self.admit(log)
        while freed := self.leases.take_free(ALL, log.visible_seq):
            try:
                self._sort(log, config, freed, now_ms)
            except BaseException:
                self.leases.give_back(freed)
                raise
        if self.order.count > ORDER_SLACK and self.order.count > 2 * self.ready_count(log) + ORDER_SLACK:
            self._sift(log)

    def _sift(self, log: Log) -> None:
        """Most of the order stands for nothing any more, as when many messages are called off: throw some of it out."""
        for key in self.order.take_last(SIFTED_AT_ONCE):
            if self.is_ready(log, key):
                self.order.push(key >> SEQ_BITS, key & SEQ_MASK)

    def admit(self, log: Log) -> None:
        """Records that have become visible: those without an entry in the lease table are ready."""
        if self.cursor > log.visible_seq:
            return
        leases = self.leases
        fresh = list(live.live_seqs(log, self.cursor, log.visible_seq))
        if leases.highest >= self.cursor:
            fresh = [seq for seq in fresh if seq not in leases]
        if fresh:
            self._push(log, fresh)
        self.cursor = log.visible_seq + 1

    def _sort(self, log: Log, config: TopicConfig, freed: list[int], now_ms: int) -> None:
        """What became free is ready, rests because its lease ran out, or has failed too often."""
        ready = []
        for seq in freed:
            lease = self.leases.get(seq)
            assert lease is not None
            if lease.node:
                self._ran_out(lease)
                due_ms = lease.due_ms
                if not self.is_exhausted(log, config, seq, lease.deliveries):
                    due_ms += backoff_ms(lease.deliveries, lease.token)
                self.leases.release((seq,), due_ms, now_ms)
            elif self.is_exhausted(log, config, seq, lease.deliveries):
                self.exhausted[seq] = None
            else:
                ready.append(seq)
        if ready:
            self._push(log, ready)

    def is_exhausted(self, log: Log, config: TopicConfig, seq: int, deliveries: int) -> bool:
        """Whether a message has failed too often."""
        return config.dead_letter is not None and deliveries > 0 and deliveries > self.retries(log, config, seq)

    def retries(self, log: Log, config: TopicConfig, seq: int) -> int:
        """How often a message may fail and be tried again."""
        own = heaprecord.read(log, seq).max_retries
        return config.max_retries if own is None else own

    def _push(self, log: Log, seqs: list[int]) -> None:
        """The seqs are live and ascending."""
        priorities = heaprecord.priorities(log, seqs)
        if self.changed:
            for at, seq in enumerate(seqs):
                priorities[at] = self.changed.get(seq, int(priorities[at]))
        self.order.push_many(ranks_of(priorities, self.mode), np.array(seqs, np.uint64))

    def revive(self, log: Log) -> None:
        """Nothing dies any more: what failed too often is ready again."""
        seqs = sorted(self.exhausted)
        self.exhausted.clear()
        self._push(log, seqs)

    # ---- the best

    def head(self, log: Log) -> int | None:
        """The key of the best message that is ready; what stands for nothing any more is passed over for good."""
        order = self.order
        while (key := order.first()) is not None:
            if key == self.live_head and self._is_waiting(key):
                return key
            if self.is_ready(log, key):
                self.live_head = key
                return key
            order.pop()
        return None

    def take_best(self, log: Log, count: int) -> list[int]:
        """Take the best so many out of the order, or all there are, to lease them at once or to give them back."""
        order = self.order
        taken: list[int] = []
        while len(taken) < count and (key := self.head(log)) is not None:
            while order.first() == key:
                order.pop()
            taken.append(key)
        return taken

    def give_back(self, keys: Iterable[int]) -> None:
        for key in keys:
            self.order.push(key >> SEQ_BITS, key & SEQ_MASK)

    def is_ready(self, log: Log, key: int) -> bool:
        """Whether what stands in the order is still so."""
        return self._is_waiting(key) and is_live(log, key & SEQ_MASK)

    def _is_waiting(self, key: int) -> bool:
        """Whether nobody has it, and its priority is this one."""
        seq = key & SEQ_MASK
        if seq in self.leases and (seq in self.exhausted or not self.leases.is_free(seq)):
            return False
        changed = self.changed.get(seq) if self.changed else None
        return changed is None or rank_of(changed, self.mode) == key >> SEQ_BITS

    def priority(self, key: int) -> int:
        return priority_of(key >> SEQ_BITS, self.mode)

    def ready_count(self, log: Log) -> int:
        return super().ready_count(log) - len(self.exhausted)

    @property
    def in_flight_count(self) -> int:
        return super().in_flight_count + len(self.exhausted)


def is_live(log: Log, seq: int) -> bool:
    run = log.run_at(seq)
    return run is not None and run.is_live(seq)
