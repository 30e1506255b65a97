"""What an operator does to messages of a heap: all of them gone, one to the dead letters, called off, or put elsewhere
in line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topics.core import heapletters
from topics.core.claim import stored_fact
from topics.core.facts import Acked, Deleted
from topics.core.heapcommands import CancelMessage, MoveToDlq, PurgeHeap, Reprioritize
from topics.core.heapfacts import PriorityChanged
from topics.core.heapplace import Part, find_heap, find_message, find_topic, reason_of
from topics.core.heaprecord import I64_MAX, I64_MIN, read
from topics.core.leases import LEASED, LEAVING
from topics.core.outcome import Outcome, StoredFact
from topics.core.registry import Topic
from topics.errors import InvalidRequest, MessageLeased
from topics.heapmodel import Cancelled, MovedToDlq, Purged, Reprioritized
from topics.model import Durability

if TYPE_CHECKING:
    from topics.core.machine import Machine


def purge(machine: Machine, command: PurgeHeap, now_ms: int) -> Outcome:
    """Everything goes that is there now, also what somebody has; what is on its way to the dead letters arrives."""
    topic = find_topic(machine, command.topic)
    if command.partition is not None:
        machine.check_partition(topic.name, topic.config, command.partition)
    partitions = () if command.partition is None else (command.partition,)
    _, parts = find_heap(machine, command.topic, now_ms, partitions)
    facts: list[StoredFact] = []
    purged = 0
    for log, heap in parts:
        if log.count:
            fact = Deleted(log.next_seq)
            purged += log.apply_deleted(fact)[0]
            heap.order.clear()
            facts += stored_fact(topic, log, fact)
    reply = Purged(topic=topic.name, purged=purged)
    return Outcome(reply, facts, _must_sync(topic, facts), machine.log(topic), durability=topic.config.durability)


def move_to_dlq(machine: Machine, command: MoveToDlq, now_ms: int) -> Outcome:
    """Whoever has the message loses it."""
    topic = find_topic(machine, command.topic)
    dlq_topic = heapletters.check_has_letters(topic)
    part, seq = find_message(machine, topic, command.message_id, now_ms)
    _check_state(topic, part, seq, command.message_id, (LEAVING,))
    reason = reason_of(command.reason) or heapletters.MOVED
    begun = heapletters.decide(machine, topic, part, [seq], reason, now_ms)
    part.heap.exhausted.pop(seq, None)
    reply = MovedToDlq(topic=topic.name, message_id=command.message_id, dlq_topic=dlq_topic)
    return Outcome(reply, log=part.log, durability=topic.config.durability, moves=[begun])


def reprioritize(machine: Machine, command: Reprioritize, now_ms: int) -> Outcome:
    check_priority(command.priority)
    topic = find_topic(machine, command.topic)
    part, seq = find_message(machine, topic, command.message_id, now_ms)
    _check_state(topic, part, seq, command.message_id, (LEASED, LEAVING))
    before = part.heap.changed.get(seq)
    previous = read(part.log, seq).priority if before is None else before
    facts: list[StoredFact] = []
    if previous != command.priority:
        fact = PriorityChanged(seq, command.priority)
        part.heap.apply_message(fact, now_ms)
        facts = stored_fact(topic, part.log, fact)
    reply = Reprioritized(
        topic=topic.name, message_id=command.message_id, priority=command.priority, previous_priority=previous
    )
    return Outcome(reply, facts, _must_sync(topic, facts), part.log, durability=topic.config.durability)


def cancel(machine: Machine, command: CancelMessage, now_ms: int) -> Outcome:
    topic = find_topic(machine, command.topic)
    part, seq = find_message(machine, topic, command.message_id, now_ms)
    _check_state(topic, part, seq, command.message_id, (LEASED, LEAVING))
    fact = Acked([seq], called_off=True)
    part.log.apply(fact)
    facts = stored_fact(topic, part.log, fact)
    reply = Cancelled(topic=topic.name, message_id=command.message_id)
    return Outcome(reply, facts, _must_sync(topic, facts), part.log, durability=topic.config.durability)


def check_priority(priority: int, field: str = "priority") -> None:
    if not I64_MIN <= priority <= I64_MAX:
        expected = "a whole number of 64 bits with a sign"
        raise InvalidRequest(f"{field} must be {expected}, not {priority}", field=field, expected=expected)


def _check_state(topic: Topic, part: Part, seq: int, message_id: str, refused: tuple[int, ...]) -> None:
    lease = part.heap.leases.get(seq)
    if lease is None or lease.state not in refused:
        return
    if lease.state == LEAVING:
        raise MessageLeased(f"message {message_id} is on its way to the dead letters", topic=topic.name)
    raise MessageLeased(
        f"message {message_id} is leased until {lease.due_ms - 1}: wait until it is acked or given back",
        topic=topic.name,
        message_id=message_id,
        lease_deadline_ms=lease.due_ms - 1,
    )


def _must_sync(topic: Topic, facts: list[StoredFact]) -> bool:
    return bool(facts) and topic.config.durability is Durability.FSYNC
