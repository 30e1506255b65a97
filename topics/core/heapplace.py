"""Finding a heap, its partitions, its messages by id and its leases by token, as they are by now.

A lease token is the text of three numbers: the token in the lease table, the partition and the seq. So it finds its
lease without an index, whoever has it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from topics.core.heap import Heap, is_live
from topics.core.heaprecord import ts_at
from topics.core.leases import FREE, LEASE_ID_PREFIX, LEASED, Lease
from topics.core.log import Log
from topics.core.registry import Topic
from topics.core.ulid import MessagePlace, message_id, parse_message_id
from topics.errors import InvalidRequest, LeaseLost, MessageNotFound, NotAHeap
from topics.heapmodel import LeaseRef, LostLease
from topics.limits import HEAP_REASON_CHARS_MAX
from topics.model import TopicType

if TYPE_CHECKING:
    from topics.core.machine import Machine

_TOKEN = re.compile(rf"{LEASE_ID_PREFIX}([0-9a-f]{{1,16}})\.([0-9a-f]{{1,4}})\.([0-9a-f]{{1,16}})")


class Part(NamedTuple):
    """One partition of a heap."""

    log: Log
    heap: Heap


class HeldLease(NamedTuple):
    part: Part
    lease: Lease


def find_topic(machine: Machine, name: str) -> Topic:
    topic = machine.topic(name)
    if topic.config.type is not TopicType.HEAP:
        raise NotAHeap(
            f'topic "{name}" is a {topic.config.type.value}; only a topic created with type "heap" has messages',
            topic=name,
            type=topic.config.type.value,
        )
    return topic


def find_part(machine: Machine, topic: Topic, partition: int, now_ms: int) -> Part:
    """One partition of a heap as it is by now."""
    log = machine.log(topic, partition)
    assert isinstance(log.queue, Heap)
    log.queue.look(log, topic.config, now_ms)
    return Part(log, log.queue)


def find_heap(
    machine: Machine, name: str, now_ms: int, partitions: Sequence[int] = (), without: Sequence[int] = ()
) -> tuple[Topic, list[Part]]:
    """A heap as it is by now, or some of its partitions."""
    topic = find_topic(machine, name)
    chosen = partitions or range(topic.config.partitions)
    return topic, [find_part(machine, topic, number, now_ms) for number in chosen if number not in without]


def find_message(machine: Machine, topic: Topic, text: str, now_ms: int) -> tuple[Part, int]:
    """The partition and the seq of a message that is there."""
    place = parse_id(text)
    if place.partition < topic.config.partitions:
        part = find_part(machine, topic, place.partition, now_ms)
        # The time tells a message of this heap from one of an earlier heap of that name.
        if place.seq <= part.log.visible_seq and is_live(part.log, place.seq):
            if message_id_of(part.log, place.seq) == text:
                return part, place.seq
    raise MessageNotFound(
        f'message {text} does not exist in topic "{topic.name}": it is done, was moved, or never was',
        topic=topic.name,
        message_id=text,
    )


def parse_id(text: str) -> MessagePlace:
    place = parse_message_id(text)
    if place is None:
        raise InvalidRequest(
            f'"{text[:40]}" is no message id', field="message_id", expected="26 characters, as enqueueing answered"
        )
    return place


def message_id_of(log: Log, seq: int) -> str:
    return message_id(ts_at(log, seq), log.partition, seq)


# ---- leases


def lease_token(token: int, partition: int, seq: int) -> str:
    return f"{LEASE_ID_PREFIX}{token:x}.{partition:x}.{seq:x}"


@lru_cache(maxsize=4096)
def parse_lease_token(text: str) -> tuple[int, int, int] | None:
    """Token, partition and seq; None when it is no lease token. One that is settled is parsed twice or more."""
    found = _TOKEN.fullmatch(text)
    return None if found is None else (int(found[1], 16), int(found[2], 16), int(found[3], 16))


def held_leases(
    machine: Machine, topic: Topic, leases: Sequence[LeaseRef], strict: bool, now_ms: int
) -> tuple[list[HeldLease], list[LostLease]]:
    """The leases that are there, each once, and those that are not. With `strict` one that is not is an error."""
    held: list[HeldLease] = []
    lost: list[LostLease] = []
    parts: dict[int, Part] = {}
    seen: set[tuple[int, int]] = set()
    for place, ref in enumerate(leases):
        parsed = parse_lease_token(ref.lease_token)
        reason = "is no lease token of this heap"
        if parsed is not None and parsed[1] < topic.config.partitions:
            token, partition, seq = parsed
            if partition not in parts:
                parts[partition] = find_part(machine, topic, partition, now_ms)
            lease = parts[partition].heap.leases.get(seq)
            reason = _why_not(parts[partition], ref, token, seq, lease)
            if not reason and (partition, seq) in seen:
                reason = "was named twice in one call"
            if lease is not None and not reason:
                seen.add((partition, seq))
                held.append(HeldLease(parts[partition], lease))
                continue
        if strict:
            raise LeaseLost(
                f"lease {ref.lease_token[:80]} {reason}: nothing was changed",
                topic=topic.name,
                message_id=ref.message_id,
                reason=reason,
            )
        lost.append(LostLease(place=place, message_id=ref.message_id, reason=reason))
    return held, lost


def _why_not(part: Part, ref: LeaseRef, token: int, seq: int, lease: Lease | None) -> str:
    """Why a lease is not the one that was named; empty when it is."""
    if lease is None or lease.state != LEASED or lease.token != token or not lease.node:
        if lease is not None and lease.token == token and lease.state != FREE:
            return "ran out or was given back"
        return "is over: the message is done, was given back, or somebody else has it"
    if ref.message_id:
        # Reading the time of the message may take a disk, and the token is proof enough of which one is meant.
        place = parse_message_id(ref.message_id)
        if place is None or (place.partition, place.seq) != (part.log.partition, seq):
            return f"belongs to another message than {ref.message_id[:40]}"
    return ""


def is_unicode(text: str) -> bool:
    """Whether a text can be stored: a Python string may hold half of a character."""
    return text.isascii() or text.encode("utf-8", "replace").decode() == text


def reason_of(text: str) -> str:
    """What somebody gave as a reason, as it can be stored: not too long, and Unicode."""
    return text[:HEAP_REASON_CHARS_MAX].encode("utf-8", "replace").decode()
