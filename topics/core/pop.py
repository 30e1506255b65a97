"""Handing out messages: one pass over a heap serves everybody who asks at the time, best first.

What is ready is divided evenly among those who ask, and dealt to them in turn in the order of the heap, over all of
its partitions (`core/spine.py`). A pass is one fact for each partition that it took from. Messages that failed too
often are moved to the dead letters first.

All that can fail is done before the first change: reading the messages, finding room for dead letters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from topics.core import heapletters
from topics.core.claim import clamp_lease_ms, stored_fact
from topics.core.facts import Claimed, Hand
from topics.core.heapcommands import Pop, Popper
from topics.core.heapfind import Found, find_best
from topics.core.heaporder import SEQ_MASK
from topics.core.heapplace import Part, find_heap, is_unicode, lease_token
from topics.core.leases import LEASED
from topics.core.names import check_node
from topics.core.outcome import BegunMove, Outcome, StoredFact
from topics.core.registry import Topic
from topics.core.shares import deal, shares
from topics.core.ulid import message_id
from topics.errors import InvalidRequest
from topics.heapmodel import PoppedMessage, PoppedMessages
from topics.limits import DEAD_LETTERS_PER_PASS_MAX

if TYPE_CHECKING:
    from topics.core.machine import Machine


def pop(machine: Machine, command: Pop, now_ms: int) -> Outcome:
    """The reply is a tuple of `PoppedMessages`, one a popper."""
    for popper in command.poppers:
        check_popper(popper)
    topic, parts = find_heap(machine, command.topic, now_ms, command.partitions, command.without)
    wanted = _wanted(machine, topic, command)
    found = find_best(parts, sum(wanted))
    facts: list[StoredFact] = []
    moves = [begun for part in parts for begun in _bury(machine, topic, part, facts, now_ms)]
    places = deal(list(range(len(found.keys))), shares(len(found.keys), wanted))
    hands: dict[int, list[Hand]] = {}
    answers = []
    for popper, own in zip(command.poppers, places, strict=True):
        visibility_ms = topic.config.lease_ms if popper.visibility_ms is None else clamp_lease_ms(popper.visibility_ms)
        answers.append(_hand_out(machine, topic, popper, found, own, now_ms + visibility_ms, hands))
    for part in parts:
        if part.log.partition in hands:
            facts += stored_fact(topic, part.log, Claimed(hands[part.log.partition], 0))
    must_sync = bool(facts) and topic.config.leases_durable
    log = machine.log(topic)
    return Outcome(tuple(answers), facts, must_sync, log, durability=topic.config.durability, moves=moves)


def bury(machine: Machine, topic: Topic, now_ms: int) -> Outcome:
    """Move to the dead letters what failed too often, while nobody asks for anything."""
    _, parts = find_heap(machine, topic.name, now_ms)
    facts: list[StoredFact] = []
    moves = [begun for part in parts for begun in _bury(machine, topic, part, facts, now_ms)]
    return Outcome(None, facts, log=machine.log(topic), durability=topic.config.durability, moves=moves)


def _bury(machine: Machine, topic: Topic, part: Part, facts: list[StoredFact], now_ms: int) -> list[BegunMove]:
    if not part.heap.exhausted:
        return []
    if topic.config.dead_letter is None:
        part.heap.revive(part.log)
        return []
    seqs = sorted(part.heap.exhausted)[:DEAD_LETTERS_PER_PASS_MAX]
    return heapletters.bury(machine, topic, part, seqs, heapletters.MAX_RETRIES, facts, now_ms)


def check_popper(popper: Popper) -> None:
    check_node(popper.consumer, "consumer")
    if not is_unicode(popper.consumer):
        raise InvalidRequest("consumer holds a lone surrogate", field="consumer", expected="Unicode")
    if popper.max < 1:
        raise InvalidRequest(f"max must be 1 or more, not {popper.max}", field="max", expected="a whole number from 1")
    if popper.visibility_ms is not None and popper.visibility_ms < 0:
        expected = "milliseconds from 0"
        raise InvalidRequest("visibility_ms must not be negative", field="visibility_ms", expected=expected)


def _wanted(machine: Machine, topic: Topic, command: Pop) -> list[int]:
    """How many each may get at most: what it asks for, as far as it and the heap may have more out."""
    room = Room(machine, topic)
    left = room.count
    wanted = []
    for popper in command.poppers:
        most = min(popper.max, machine.bounds.claim_max, left, room.of(popper))
        wanted.append(most)
        left -= most
    return wanted


class Room:
    """How many more messages of a heap may be leased, as things are now."""

    def __init__(self, machine: Machine, topic: Topic) -> None:
        queues = [machine.logs[log_id].queue for log_id in topic.log_ids()]
        self._tables = [queue.leases for queue in queues if queue is not None]
        self._leases_max = machine.bounds.heap_leases_max
        self._entries = sum(map(len, self._tables))
        leased = sum([leases.counts[LEASED] for leases in self._tables]) if self._entries else 0
        self.count = max(0, machine.bounds.heap_in_flight_max - leased)
        """By all consumers together."""

    def of(self, popper: Popper) -> int:
        """By one consumer; where all of them have less than one may have, nobody is asked what it has."""
        if self._entries + popper.max <= self._leases_max:
            return popper.max
        held = sum(leases.holders.lease_count(popper.consumer, popper.connection) for leases in self._tables)
        return max(0, self._leases_max - held)


def _hand_out(
    machine: Machine,
    topic: Topic,
    popper: Popper,
    found: Found,
    places: list[int],
    deadline_ms: int,
    hands: dict[int, list[Hand]],
) -> PoppedMessages:
    """Lease to one consumer what it was dealt."""
    leased: dict[int, tuple[int, int]] = {}
    by_partition: dict[int, list[int]] = {}
    for place in places:
        by_partition.setdefault(found.parts[place].log.partition, []).append(place)
    for partition, own in by_partition.items():
        own.sort(key=lambda place: found.keys[place] & SEQ_MASK)
        heap = found.parts[own[0]].heap
        token = machine.next_token(len(own))
        hand = Hand(popper.consumer, [found.keys[place] & SEQ_MASK for place in own], deadline_ms + 1, token)
        deliveries = heap.hand_out(hand, popper.connection)
        hands.setdefault(partition, []).append(hand)
        for number, place in enumerate(own):
            leased[place] = token + number, deliveries[number]
    messages = tuple(_message(topic, found, place, *leased[place], deadline_ms) for place in places)
    return PoppedMessages(topic=topic.name, messages=messages)


def _message(topic: Topic, found: Found, place: int, token: int, deliveries: int, deadline_ms: int) -> PoppedMessage:
    part, key, message = found.parts[place], found.keys[place], found.messages[place]
    partition, seq = part.log.partition, key & SEQ_MASK
    popped = PoppedMessage(
        message_id=message_id(message.ts, partition, seq),
        topic=topic.name,
        partition=partition,
        payload=message.payload,
        priority=part.heap.priority(key),
        enqueued_ms=message.ts,
        lease_token=lease_token(token, partition, seq),
        lease_deadline_ms=deadline_ms,
        attempts=deliveries - 1,
        max_retries=topic.config.max_retries,
        is_json=message.is_json,
    )
    if message.is_plain:
        return popped
    own_retries = message.max_retries
    return msgspec.structs.replace(
        popped,
        max_retries=popped.max_retries if own_retries is None else own_retries,
        producer_id=message.producer_id,
        epoch=message.epoch,
        sequence=message.sequence,
        meta=message.own_meta,
    )
