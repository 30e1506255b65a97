"""Handing out jobs: one pass over a queue serves everybody who asks at the time.

Jobs that were handed out before and are free again come first, by seq, then those that never were. A job that was
delivered as often as its queue allows is not delivered again but moved to the dead-letter topic. What is left is
divided evenly among the claimers; in a queue with a window it is dealt to them in turn. A pass is one fact, however
many jobs and claimers.

All that can fail is done before the first change: reading the jobs' text, finding room for dead letters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from topics.core import deadletter
from topics.core.commands import Claim, Claimer
from topics.core.facts import Claimed, Deleted, Hand, LeaseFact, Released, encode
from topics.core.heapfacts import HeapFact
from topics.core.job import JobTexts, jobs_text
from topics.core.log import Log
from topics.core.names import check_node
from topics.core.outcome import BegunMove, Outcome, StoredFact
from topics.core.queue import Queue
from topics.core.registry import Topic
from topics.core.shares import cut, deal, shares
from topics.errors import InvalidRequest, NotAQueue, TopicsError
from topics.limits import (
    CLAIM_BYTES_MAX,
    DEAD_LETTER_RETRY_MS,
    DEAD_LETTERS_PER_PASS_MAX,
    LEASE_MS_MAX,
    LEASE_MS_MIN,
)
from topics.model import ClaimedJobs, Durability, TopicType

if TYPE_CHECKING:
    from topics.core.machine import Machine


def find_queue(machine: Machine, name: str, partition: int, now_ms: int) -> tuple[Topic, Log, Queue]:
    """A queue as it is by now."""
    topic = machine.topic(name)
    if topic.config.type is not TopicType.QUEUE:
        raise NotAQueue(
            f'topic "{name}" is a {topic.config.type.value}; only a topic created with type "queue" has jobs',
            topic=name,
            type=topic.config.type.value,
        )
    log = machine.log(topic, partition)
    log.observe(topic.config, now_ms)
    assert log.queue is not None
    log.queue.leases.expire(now_ms)
    return topic, log, log.queue


def stored_fact(topic: Topic, log: Log, fact: LeaseFact | HeapFact | Deleted) -> list[StoredFact]:
    """A fact about jobs or messages as it is stored: not at all where nothing is."""
    return [] if topic.config.durability is Durability.EPHEMERAL else [StoredFact(log.log_id, False, [encode(fact)])]


def clamp_lease_ms(lease_ms: int) -> int:
    return max(LEASE_MS_MIN, min(lease_ms, LEASE_MS_MAX))


@dataclass(slots=True)
class _Pass:
    """What one pass found."""

    seqs: list[int]
    cursor: int
    exhausted: list[int]


def claim(machine: Machine, command: Claim, now_ms: int) -> Outcome:
    """The reply is a tuple of `ClaimedJobs`, one a claimer."""
    for claimer in command.claimers:
        check_claimer(claimer, machine.bounds.node_bytes_max)
    topic, log, queue = find_queue(machine, command.topic, command.partition, now_ms)
    return hand_out(machine, topic, log, queue, command.claimers, now_ms)


def hand_out(
    machine: Machine, topic: Topic, log: Log, queue: Queue, claimers: Sequence[Claimer], now_ms: int
) -> Outcome:
    """A pass over a queue that was found, for claimers that were checked."""
    claim_max = machine.bounds.claim_max
    wanted = [min(claimer.max, claim_max) for claimer in claimers]
    found = _Pass([], queue.cursor, [])
    texts = JobTexts(log)
    # Who waited for others to join shares the oldest with them; else it is as if they had asked one after the other.
    divide = deal if topic.config.claim_jitter_ms else cut
    try:
        _find(topic, log, queue, sum(wanted), found)
        count = texts.fitting_count(found.seqs, CLAIM_BYTES_MAX)
        dealt = divide(found.seqs[:count], shares(count, wanted))
        pieces = texts.divided(dealt)
    except TopicsError:
        queue.leases.give_back([*found.exhausted, *(seq for seq in found.seqs if seq in queue.leases)])
        raise
    if count < len(found.seqs):
        _leave_rest(queue, found, count)
    queue.cursor = found.cursor
    facts: list[StoredFact] = []
    moves = _bury(machine, topic, log, queue, found.exhausted, facts, now_ms)
    hands: list[Hand] = []
    answers: list[tuple[list[int], bytes, int]] = []
    for claimer, seqs, cut_text in zip(claimers, dealt, pieces, strict=True):
        text, token = b"", 0
        if seqs:
            lease_ms = topic.config.lease_ms if claimer.lease_ms is None else clamp_lease_ms(claimer.lease_ms)
            deadline_ms = now_ms + lease_ms
            token = machine.next_token(len(seqs))
            queue.token_times.note(token, now_ms)
            hands.append(Hand(claimer.node, seqs, deadline_ms + 1, token))
            deliveries = queue.hand_out(hands[-1], claimer.connection)
            text = jobs_text(cut_text, token, deadline_ms, deliveries)
        answers.append((seqs, text, token))
    if hands:
        facts += stored_fact(topic, log, Claimed(hands, found.cursor))
    ready = queue.ready_count(log)
    name, partition = topic.name, log.partition
    reply = tuple(
        ClaimedJobs(topic=name, partition=partition, node=claimer.node, text=text, seqs=seqs, ready=ready, token=token)
        for claimer, (seqs, text, token) in zip(claimers, answers, strict=True)
    )
    must_sync = bool(facts) and topic.config.leases_durable
    return Outcome(reply, facts, must_sync, log, durability=topic.config.durability, moves=moves)


def check_claimer(claimer: Claimer, node_bytes_max: int) -> None:
    check_node(claimer.node, "node", node_bytes_max)
    if claimer.max < 1:
        raise InvalidRequest(f"max must be 1 or more, not {claimer.max}", field="max", expected="a whole number from 1")
    if claimer.lease_ms is not None and claimer.lease_ms < 0:
        raise InvalidRequest("lease_ms must not be negative", field="lease_ms", expected="a whole number from 0")


def _find(topic: Topic, log: Log, queue: Queue, wanted: int, found: _Pass) -> None:
    """Take what may be handed out, and what may not be any more, off the free list and from behind the cursor. Raises
    `Damaged` when the log cannot be read there: what is off the free list by then is in `found`."""
    leases, deliveries_max = queue.leases, topic.config.max_deliveries
    seqs, exhausted = found.seqs, found.exhausted
    while len(seqs) < wanted and len(exhausted) < DEAD_LETTERS_PER_PASS_MAX:
        free = leases.take_free(wanted - len(seqs), log.visible_seq)
        if not free:
            break
        if deliveries_max and topic.config.dead_letter is not None:
            exhausted += [seq for seq in free if leases.deliveries(seq) >= deliveries_max]
            seqs += [seq for seq in free if leases.deliveries(seq) < deliveries_max]
        else:
            seqs += free
    fresh, found.cursor = queue.find_fresh(log, wanted - len(seqs))
    seqs += fresh


def _leave_rest(queue: Queue, found: _Pass, count: int) -> None:
    """Only the first ones are handed out: the others would be too much at once."""
    rest = found.seqs[count:]
    del found.seqs[count:]
    queue.leases.give_back(seq for seq in rest if seq in queue.leases)
    found.cursor = next((seq for seq in rest if seq not in queue.leases), found.cursor)


def _bury(
    machine: Machine, topic: Topic, log: Log, queue: Queue, seqs: list[int], facts: list[StoredFact], now_ms: int
) -> list[BegunMove]:
    """Dead-letter jobs. Those that cannot be rest a while: they are neither lost nor delivered once too often."""
    if not seqs:
        return []
    try:
        begun = deadletter.bury(machine, topic, log, seqs, deadletter.MAX_DELIVERIES, now_ms)
    except TopicsError as error:
        queue.dead_letter_error = f"{error}"
        fact = Released(seqs, now_ms + DEAD_LETTER_RETRY_MS)
        queue.apply(fact, now_ms)
        facts += stored_fact(topic, log, fact)
        return []
    queue.dead_letter_error = None
    queue.leases.give_back(seqs[len(begun.fact.seqs) :])
    return [begun]
