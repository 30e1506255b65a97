"""What a worker says about jobs it has: done, not done, need more time. And what a stream says by ending.

Each names seqs, and may name the lease ids it got with them. What is not the worker's own (never was, or somebody else
has got it since) is left out and told as `skipped`. A lease that ran out counts until somebody else has got the job.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from topics.core.claim import clamp_lease_ms, find_queue, stored_fact
from topics.core.commands import Ack, Acks, Complete, Extend, Nack, Release
from topics.core.facts import Acked, Extended, Released
from topics.core.leases import LeaseTable, parse_lease_id, skipped_of
from topics.core.log import Log
from topics.core.names import check_node
from topics.core.outcome import Outcome, StoredFact
from topics.core.queue import Queue
from topics.core.registry import Topic
from topics.errors import BatchTooLarge, InvalidRequest
from topics.limits import NACK_DELAY_MS_MAX, U64_MAX
from topics.model import AckedJobs, Durability, ExtendedJobs, NackedJobs

if TYPE_CHECKING:
    from topics.core.machine import Machine


def ack(machine: Machine, command: Ack, now_ms: int) -> Outcome:
    outcome = ack_together(machine, Acks(command.topic, (command,), command.partition), now_ms)
    assert isinstance(outcome.reply, tuple)
    (outcome.reply,) = outcome.reply
    return outcome


def ack_together(machine: Machine, command: Acks, now_ms: int) -> Outcome:
    """The reply is a tuple of `AckedJobs`, one an ack; what they say of the queue is how all of them left it."""
    for each in command.acks:
        check_named(machine, each)
    topic, log, queue = find_queue(machine, command.topic, command.partition, now_ms)
    leases = queue.leases
    named = [split(leases, each) for each in command.acks]
    done = [seq for held, _ in named for seq in held]
    if len(set(done)) < len(done):
        named, done = _each_once(command.acks, named)
    facts: list[StoredFact] = []
    if done:
        fact = Acked(sorted(done))
        log.apply(fact)
        facts = stored_fact(topic, log, fact)
    ready, in_flight = queue.ready_count(log), queue.in_flight_count
    reply = tuple(
        AckedJobs(
            topic=topic.name,
            partition=log.partition,
            acked=len(held),
            skipped=skipped,
            ready=ready,
            in_flight=in_flight,
        )
        for held, skipped in named
    )
    must_sync = bool(facts) and topic.config.durability is Durability.FSYNC
    return Outcome(reply, facts, must_sync, log, durability=topic.config.durability)


def _each_once(
    acks: Sequence[Ack], named: Sequence[tuple[list[int], list[int]]]
) -> tuple[list[tuple[list[int], list[int]]], list[int]]:
    """The same worker named a job in two acks, and the second time there is nothing left to do."""
    done: set[int] = set()
    found = []
    for each, (held, skipped) in zip(acks, named, strict=True):
        if not done.isdisjoint(held):
            skipped = skipped_of(each.seqs, set(held) - done)
            held = [seq for seq in held if seq not in done]
        done.update(held)
        found.append((held, skipped))
    return found, list(done)


def nack(machine: Machine, command: Nack, now_ms: int) -> Outcome:
    check_named(machine, command)
    if command.delay_ms < 0:
        raise InvalidRequest("delay_ms must not be negative", field="delay_ms", expected="a whole number from 0")
    topic, log, queue = find_queue(machine, command.topic, command.partition, now_ms)
    held, skipped = split(queue.leases, command)
    due_ms = now_ms + min(command.delay_ms, NACK_DELAY_MS_MAX)
    return _release(topic, log, queue, held, skipped, due_ms, now_ms, command.undelivered)


def release(machine: Machine, command: Release, now_ms: int) -> Outcome:
    topic, log, queue = find_queue(machine, command.topic, command.partition, now_ms)
    held = queue.leases.holders.on_connection(command.connection)
    return _release(topic, log, queue, held, [], now_ms, now_ms)


def _release(
    topic: Topic,
    log: Log,
    queue: Queue,
    held: list[int],
    skipped: list[int],
    due_ms: int,
    now_ms: int,
    undelivered: bool = False,
) -> Outcome:
    facts: list[StoredFact] = []
    if held:
        fact = Released(held, due_ms, undelivered)
        queue.apply(fact, now_ms)
        facts = stored_fact(topic, log, fact)
    state = queue.state(log)
    reply = NackedJobs(
        topic=topic.name,
        partition=log.partition,
        nacked=len(held),
        skipped=skipped,
        ready=state.ready,
        in_flight=state.in_flight,
    )
    return Outcome(reply, facts, bool(facts) and topic.config.leases_durable, log, durability=topic.config.durability)


def extend(machine: Machine, command: Extend, now_ms: int) -> Outcome:
    check_named(machine, command)
    if command.lease_ms < 0:
        raise InvalidRequest("lease_ms must not be negative", field="lease_ms", expected="a whole number from 0")
    topic, log, queue = find_queue(machine, command.topic, command.partition, now_ms)
    held, skipped = split(queue.leases, command)
    deadline_ms = now_ms + clamp_lease_ms(command.lease_ms)
    facts: list[StoredFact] = []
    if held:
        fact = Extended(held, deadline_ms + 1)
        queue.apply(fact, now_ms)
        facts = stored_fact(topic, log, fact)
    reply = ExtendedJobs(
        topic=topic.name,
        partition=log.partition,
        extended=len(held),
        skipped=skipped,
        deadlines=dict.fromkeys(held, deadline_ms),
    )
    return Outcome(reply, facts, bool(facts) and topic.config.leases_durable, log, durability=topic.config.durability)


def check_named(machine: Machine, command: Ack | Nack | Extend | Complete) -> None:
    """The worker, the seqs and the lease ids of a command, before anything is looked up."""
    check_node(command.node)
    count = len(command.seqs)
    check_count(machine, count, "seqs")
    if min(command.seqs) < 1 or max(command.seqs) > U64_MAX:
        raise InvalidRequest("a seq is a whole number from 1", field="seqs", expected="whole numbers from 1 to 2^64-1")
    if command.lease_ids is not None and len(command.lease_ids) != count:
        raise InvalidRequest(
            f"lease_ids must name one lease for each of {count} seqs, not {len(command.lease_ids)}",
            field="lease_ids",
            expected=f"{count} lease ids",
        )


def check_count(machine: Machine, count: int, field: str) -> None:
    """How many leases one command may name."""
    most = machine.bounds.claim_max
    if not 1 <= count <= most:
        kind = BatchTooLarge if count > most else InvalidRequest
        raise kind(f"{field} must name 1 to {most}, not {count}", field=field, count=count, expected=f"1 to {most}")


def split(leases: LeaseTable, command: Ack | Nack | Extend | Complete) -> tuple[list[int], list[int]]:
    """The seqs that the worker holds, and those it does not."""
    tokens = None if command.lease_ids is None else [parse_lease_id(text) for text in command.lease_ids]
    return leases.split(command.node, command.seqs, tokens)
