"""A heap driven by hand beside its oracle: every step is done to both, and what can be seen is compared."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from tests.core.queuerig import QueueRig
from tests.core.rig import frozen
from topics.core import heapview
from topics.core.backoff import backoff_ms
from topics.core.commands import Command
from topics.core.enqueue import partition_for
from topics.core.heap import Heap
from topics.core.heapcommands import (
    AckMessages,
    CancelMessage,
    Enqueue,
    ExtendLeases,
    MakeHeap,
    MoveToDlq,
    NackMessages,
    Pop,
    Popper,
    PurgeHeap,
    ReleaseLeases,
    Reprioritize,
)
from topics.core.heapplace import parse_lease_token
from topics.core.ulid import parse_message_id
from topics.errors import LeaseLost, MessageLeased
from topics.heapmodel import (
    AckedMessages,
    EnqueuedBatch,
    HeapStats,
    LeaseRef,
    MessageState,
    NackedMessages,
    NewMessage,
    PoppedMessage,
    PoppedMessages,
)
from topics.model import Mode
from topics.testing.oracleheap import OracleHeap

HEAP = "h"
Place = tuple[int, int]


class HeapRig(QueueRig):
    """A machine with one heap, whose moves go all the way and whose records are visible at once."""

    def heap(self, partition: int = 0) -> Heap:
        queue = self.log(HEAP, partition).queue
        assert isinstance(queue, Heap)
        return queue

    def stats(self) -> HeapStats:
        return heapview.stats(self.machine, self.machine.topic(HEAP), None, frozenset(), self.now_ms)

    def in_order(self) -> list[tuple[Place, int, MessageState]]:
        """All live messages as a peek shows them: place, priority, state."""
        peeked = heapview.peek(self.machine, HEAP, None, 1000, False, self.now_ms)
        return [(place_of(m.message_id), m.priority, m.state) for m in peeked.messages]

    def replayed(self) -> HeapRig:
        base = super().replayed()
        other = HeapRig(self.machine.bounds)
        other.machine, other.facts, other.now_ms = base.machine, base.facts, base.now_ms
        return other


def place_of(message_id: str) -> Place:
    found = parse_message_id(message_id)
    assert found is not None
    return found.partition, found.seq


def token_of(lease_token: str) -> int:
    found = parse_lease_token(lease_token)
    assert found is not None
    return found[0]


def ref_of(message: PoppedMessage) -> LeaseRef:
    return LeaseRef(message.lease_token, message.message_id)


class HeapPair:
    def __init__(self, mode: str = "min", partitions: int = 1, max_retries: int = 1, **config: Any) -> None:
        self.rig = HeapRig()
        fields = {"mode": mode, "partitions": partitions, "max_retries": max_retries, **config}
        self.rig.step(MakeHeap(HEAP, fields))
        self.config = self.rig.machine.topic(HEAP).config
        self.oracle = OracleHeap(
            backoff_ms,
            self.config.mode is Mode.MAX,
            partitions,
            self.config.lease_ms,
            max_retries,
            self.config.dead_letter is not None,
        )
        self.held: list[PoppedMessage] = []
        """Everything that was ever popped."""
        self.ids: dict[Place, str] = {}
        self.history: list[tuple[int, OracleHeap]] = []
        """After each step: how many facts were stored, and what the oracle said."""
        self.note()

    @property
    def now_ms(self) -> int:
        return self.rig.now_ms

    def note(self) -> None:
        self.history.append((len(self.rig.facts), copy.deepcopy(self.oracle)))

    def step(self, command: Command) -> Any:
        return self.rig.step(command).reply

    def wait(self, ms: int) -> None:
        self.rig.now_ms += ms

    # ---- in

    def enqueue(
        self, *priorities: int, partition: int = 0, delay_ms: int = 0, max_retries: int | None = None, key: str = ""
    ) -> list[Place]:
        messages = [
            NewMessage(
                payload=b"%d" % priority,
                priority=priority,
                delay_ms=delay_ms,
                max_retries=max_retries,
                partition_key=key or None,
            )
            for priority in priorities
        ]
        topic = self.rig.machine.topic(HEAP)
        partition = partition_for(topic, messages[0], partition % self.config.partitions)
        reply: EnqueuedBatch = self.step(Enqueue(HEAP, messages, partition))
        places = []
        for priority, answer in zip(priorities, reply.messages, strict=True):
            place = place_of(answer.message_id)
            assert answer.partition == place[0] == partition and not answer.duplicate
            self.oracle.enqueue(place, priority, self.now_ms, delay_ms, max_retries)
            self.ids[place] = answer.message_id
            places.append(place)
        self.note()
        return places

    # ---- out

    def pop(
        self, *poppers: tuple[str, int], visibility_ms: int | None = None, connection: int = 0
    ) -> list[list[PoppedMessage]]:
        ready = self.oracle.ready(self.now_ms)
        self.oracle.bury(self.now_ms)
        asked = [Popper(consumer, most, visibility_ms, connection) for consumer, most in poppers]
        answers: tuple[PoppedMessages, ...] = self.step(Pop(HEAP, asked))
        wanted = ready[: sum(most for _, most in poppers)]
        counts = [len(answer.messages) for answer in answers]
        assert sum(counts) == len(wanted)
        for count, (_, most) in zip(counts, poppers, strict=True):
            assert count == most or count >= max(counts) - 1, f"{counts} is not even for {poppers}"
        # Dealt in turn, they are in order as a whole and for each.
        got = [m for at in range(max(counts)) for a in answers if at < len(a.messages) for m in a.messages[at : at + 1]]
        if len(poppers) == 1:
            keys = [self.oracle.key(self.oracle.get(place_of(message.message_id))) for message in got]
            assert keys == [self.oracle.key(message) for message in wanted]
        assert {self.oracle.key(self.oracle.get(place_of(message.message_id))) for message in got} == {
            self.oracle.key(message) for message in wanted
        }
        lease_ms = self.config.lease_ms if visibility_ms is None else visibility_ms
        for answer, (consumer, _) in zip(answers, poppers, strict=True):
            own = [self.oracle.key(self.oracle.get(place_of(message.message_id))) for message in answer.messages]
            assert own == sorted(own)
            for message in answer.messages:
                self._took(message, consumer, lease_ms)
        self.note()
        return [list(answer.messages) for answer in answers]

    def _took(self, message: PoppedMessage, consumer: str, lease_ms: int) -> None:
        place = place_of(message.message_id)
        token = token_of(message.lease_token)
        assert all(token != token_of(other.lease_token) or place[0] != other.partition for other in self.held)
        known = self.oracle.popped(place, consumer, token, self.now_ms, lease_ms)
        assert (message.partition, message.enqueued_ms, message.priority) == (place[0], known.ts, known.priority)
        assert (message.attempts, message.max_retries) == (known.attempts, known.max_retries)
        assert message.lease_deadline_ms == known.deadline_ms
        self.held.append(message)

    def step_pop(self, consumer: str, most: int) -> list[PoppedMessage]:
        """A pop that the oracle does not hear of."""
        (answer,) = self.step(Pop(HEAP, [Popper(consumer, most)]))
        return list(answer.messages)

    def own(self, messages: Sequence[PoppedMessage]) -> list[PoppedMessage]:
        """Those whose leases are there, each once."""
        found = {}
        for message in messages:
            if self.oracle.is_held(place_of(message.message_id), token_of(message.lease_token), self.now_ms):
                found[message.message_id] = message
        return list(found.values())

    def ack(self, *messages: PoppedMessage) -> None:
        own = self.own(messages)
        reply: AckedMessages = self.step(AckMessages(HEAP, [ref_of(message) for message in messages], strict=False))
        assert (reply.acked, len(reply.lost)) == (len(own), len(messages) - len(own))
        for message in own:
            self.oracle.ack(place_of(message.message_id))
        self.note()

    def nack(self, *messages: PoppedMessage, backoff_ms: int | None = None, undelivered: bool = False) -> None:
        own = self.own(messages)
        refs = [ref_of(message) for message in messages]
        reply: NackedMessages = self.step(
            NackMessages(HEAP, refs, backoff_ms, "no", undelivered=undelivered, strict=False)
        )
        assert (reply.nacked, len(reply.lost)) == (len(own), len(messages) - len(own))
        dead = 0
        for message in own:
            place = place_of(message.message_id)
            if undelivered:
                self.oracle.give_back(place)
                continue
            self.oracle.nack(place, self.now_ms, backoff_ms)
            if self.oracle.is_dying(self.oracle.get(place)):
                self.oracle.die(place)
                dead += 1
        assert reply.dead_lettered == dead
        self.note()

    def extend(self, *messages: PoppedMessage, lease_ms: int = 500) -> None:
        own = self.own(messages)
        self.step(ExtendLeases(HEAP, [ref_of(message) for message in messages], lease_ms, strict=False))
        for message in own:
            self.oracle.extend(place_of(message.message_id), self.now_ms, lease_ms)
        self.note()

    def close(self, connection: int) -> None:
        """A stream ends."""
        self.oracle.live(self.now_ms)
        held = [place for part in range(self.config.partitions) for place in self._on(part, connection)]
        self.step(ReleaseLeases(HEAP, connection))
        for place in held:
            if self.oracle.get(place).consumer:
                self.oracle.give_back(place)
        self.note()

    def _on(self, partition: int, connection: int) -> list[Place]:
        return [(partition, seq) for seq in self.rig.heap(partition).leases.holders.on_connection(connection)]

    # ---- by hand

    def reprioritize(self, place: Place, priority: int) -> None:
        self._by_hand(place, Reprioritize(HEAP, self.ids[place], priority), lambda: self._repriced(place, priority))

    def _repriced(self, place: Place, priority: int) -> None:
        self.oracle.reprioritize(place, priority)

    def cancel(self, place: Place) -> None:
        self._by_hand(place, CancelMessage(HEAP, self.ids[place]), lambda: self.oracle.delete(place))

    def move_to_dlq(self, place: Place) -> None:
        self.oracle.live(self.now_ms)
        self.step(MoveToDlq(HEAP, self.ids[place], "poison"))
        self.oracle.die(place)
        self.note()

    def _by_hand(self, place: Place, command: Command, done: Any) -> None:
        self.oracle.live(self.now_ms)
        if self.oracle.get(place).consumer:
            with pytest.raises(MessageLeased):
                self.step(command)
            return
        self.step(command)
        done()
        self.note()

    def purge(self) -> None:
        count = self.oracle.purge(self.now_ms)
        assert self.step(PurgeHeap(HEAP)).purged == count
        self.note()

    # ---- comparing

    def check(self) -> None:
        check_same(self.rig, self.oracle)

    def check_replay(self) -> None:
        """What is stored says the same as memory."""
        other = self.rig.replayed()
        check_same(other, self.oracle)
        kept, known = other.stats(), self.rig.stats()
        # That a lease ran out is not stored: of a message that was deleted or moved since, nothing says so.
        assert kept.total_timeouts <= known.total_timeouts
        assert msgspec.structs.replace(kept, total_timeouts=known.total_timeouts) == known
        for partition in range(self.config.partitions):
            assert other.heap(partition).history == self.rig.heap(partition).history

    def check_crashes(self) -> None:
        """Whatever prefix of the facts survives, it says what was there when it was stored."""
        whole = self.rig.facts
        for count, oracle in self.history:
            self.rig.facts = whole[:count]
            other = self.rig.replayed()
            other.now_ms = self.now_ms
            check_same(other, oracle)
        self.rig.facts = whole

    def check_refused(self, message: PoppedMessage) -> None:
        """A lease that is over is refused, and nothing changes."""
        self.rig.stats()  # What time does is no change of theirs.
        before = frozen(self.rig.machine)
        refs = [ref_of(message)]
        for command in (AckMessages(HEAP, refs), NackMessages(HEAP, refs), ExtendLeases(HEAP, refs, 100)):
            with pytest.raises(LeaseLost):
                self.rig.machine.step(command, self.now_ms)
        assert frozen(self.rig.machine) == before


def check_same(rig: HeapRig, oracle: OracleHeap) -> None:
    oracle = copy.deepcopy(oracle)
    now_ms = rig.now_ms
    shown = rig.in_order()
    ready = [place for place, _, state in shown if state is MessageState.READY]
    wanted = oracle.ready(now_ms)
    assert [oracle.key(oracle.get(place)) for place in ready] == [oracle.key(message) for message in wanted]
    assert sorted(ready) == sorted(message.place for message in wanted)
    live = {message.place: message for message in oracle.live(now_ms)}
    dying = {place for place, message in live.items() if oracle.is_dying(message)}
    assert {place for place, _, _ in shown} | dying == live.keys()
    assert {place for place, _, state in shown if state is MessageState.LEASED} == {
        place for place, message in live.items() if message.consumer
    }
    assert all(priority == live[place].priority for place, priority, _ in shown)
    stats = rig.stats()
    counts = stats.ready_messages, stats.in_flight_messages, stats.total_dead_lettered, stats.delayed_messages
    assert counts == oracle.counts(now_ms)
    assert stats.ready_messages + stats.in_flight_messages + stats.delayed_messages == stats.total_messages
