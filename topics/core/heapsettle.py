"""What a consumer says about messages it has: done, failed, need more time. And what a stream says by ending.

Each lease is named by its token. One that is not there, because it ran out, was given back or never was, is refused: a
consumer that comes too late must know that somebody else does the work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from topics.core import heapletters
from topics.core.backoff import backoff_ms
from topics.core.claim import clamp_lease_ms, stored_fact
from topics.core.facts import Acked, Extended, Released
from topics.core.heapcommands import AckMessages, ExtendLeases, NackMessages, ReleaseLeases
from topics.core.heapfacts import Nacked
from topics.core.heapplace import HeldLease, Part, find_heap, find_topic, held_leases, reason_of
from topics.core.leases import LEASED
from topics.core.outcome import BegunMove, Outcome, StoredFact
from topics.core.settle import check_count
from topics.errors import InvalidRequest
from topics.heapmodel import AckedMessages, ExtendedLeases, NackedMessages
from topics.limits import HEAP_DELAY_MS_MAX
from topics.model import Durability

if TYPE_CHECKING:
    from topics.core.machine import Machine


def ack(machine: Machine, command: AckMessages, now_ms: int) -> Outcome:
    check_count(machine, len(command.leases), "leases")
    topic = find_topic(machine, command.topic)
    held, lost = held_leases(machine, topic, command.leases, command.strict, now_ms)
    facts: list[StoredFact] = []
    for part, leases in _by_part(held):
        fact = Acked(sorted(held.lease.seq for held in leases))
        part.log.apply(fact)
        facts += stored_fact(topic, part.log, fact)
    reply = AckedMessages(topic=topic.name, acked=len(held), lost=tuple(lost))
    must_sync = bool(facts) and topic.config.durability is Durability.FSYNC
    return Outcome(reply, facts, must_sync, machine.log(topic), durability=topic.config.durability)


def nack(machine: Machine, command: NackMessages, now_ms: int) -> Outcome:
    check_count(machine, len(command.leases), "leases")
    if command.backoff_ms is not None:
        check_ms(command.backoff_ms, "backoff_ms")
    topic = find_topic(machine, command.topic)
    held, lost = held_leases(machine, topic, command.leases, command.strict, now_ms)
    facts: list[StoredFact] = []
    moves: list[BegunMove] = []
    for part, leases in _by_part(held):
        seqs = [held.lease.seq for held in leases]
        if command.undelivered:
            released = Released(sorted(seqs), now_ms, True)
            part.heap.apply(released, now_ms)
            facts += stored_fact(topic, part.log, released)
            continue
        due_times = [
            now_ms + (backoff_ms(lease.deliveries, lease.token) if command.backoff_ms is None else command.backoff_ms)
            for _, lease in leases
        ]
        nacked = Nacked(seqs, due_times, now_ms, reason_of(command.reason))
        part.heap.apply_message(nacked, now_ms)
        facts += stored_fact(topic, part.log, nacked)
        failed = [
            lease.seq
            for _, lease in leases
            if part.heap.is_exhausted(part.log, topic.config, lease.seq, lease.deliveries)
        ]
        moves += heapletters.bury(machine, topic, part, failed, heapletters.MAX_RETRIES, facts, now_ms)
    dead = sum(len(begun.fact.seqs) for begun in moves)
    reply = NackedMessages(topic=topic.name, nacked=len(held), dead_lettered=dead, lost=tuple(lost))
    must_sync = bool(facts) and topic.config.leases_durable
    return Outcome(reply, facts, must_sync, machine.log(topic), durability=topic.config.durability, moves=moves)


def extend(machine: Machine, command: ExtendLeases, now_ms: int) -> Outcome:
    check_count(machine, len(command.leases), "leases")
    check_ms(command.extension_ms, "extension_ms")
    topic = find_topic(machine, command.topic)
    held, lost = held_leases(machine, topic, command.leases, command.strict, now_ms)
    deadline_ms = now_ms + clamp_lease_ms(command.extension_ms)
    facts: list[StoredFact] = []
    for part, leases in _by_part(held):
        fact = Extended([held.lease.seq for held in leases], deadline_ms + 1)
        part.heap.apply(fact, now_ms)
        facts += stored_fact(topic, part.log, fact)
    reply = ExtendedLeases(
        topic=topic.name, extended=len(held), lease_deadline_ms=deadline_ms if held else 0, lost=tuple(lost)
    )
    must_sync = bool(facts) and topic.config.leases_durable
    return Outcome(reply, facts, must_sync, machine.log(topic), durability=topic.config.durability)


def release(machine: Machine, command: ReleaseLeases, now_ms: int) -> Outcome:
    """The reply is how many messages are ready again."""
    topic, parts = find_heap(machine, command.topic, now_ms)
    facts: list[StoredFact] = []
    count = 0
    for part in parts:
        leases = part.heap.leases
        if command.connection is None:
            held = [lease.seq for lease in leases if lease.state == LEASED] if leases.counts[LEASED] else []
        else:
            held = leases.holders.on_connection(command.connection)
        if held:
            fact = Released(held, now_ms, True)
            part.heap.apply(fact, now_ms)
            facts += stored_fact(topic, part.log, fact)
            count += len(held)
    return Outcome(count, facts, log=machine.log(topic), durability=topic.config.durability)


def _by_part(held: list[HeldLease]) -> list[tuple[Part, list[HeldLease]]]:
    parts: dict[int, tuple[Part, list[HeldLease]]] = {}
    for lease in held:
        parts.setdefault(lease.part.log.partition, (lease.part, []))[1].append(lease)
    return list(parts.values())


def check_ms(value: int, field: str) -> None:
    """How long a message may rest, or a lease be extended by."""
    if not 0 <= value <= HEAP_DELAY_MS_MAX:
        expected = f"milliseconds from 0 to {HEAP_DELAY_MS_MAX}"
        raise InvalidRequest(f"{field} must be {expected}, not {value}", field=field, expected=expected)
