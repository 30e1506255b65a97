"""Putting messages into a heap: once each, into the partition they belong to.

A message that names its producer and a sequence is written once: where it went is remembered with the records
themselves, for a day, and looked for in all partitions of the heap, so that it is found whatever key it comes with the
second time. A batch that names a transaction is remembered as well (`core/transaction.py`).

Which partition: the one that is named, or that of the key. Those of a batch that have neither stay together: a
producer's go where the producer has gone before, so that what is remembered of it is short, the others where the last
ones did not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from topics.core import ceiling
from topics.core.dedupe import ProducerKey, check_producer_key
from topics.core.facts import Appended
from topics.core.heapcommands import Enqueue
from topics.core.heapmessages import check_priority
from topics.core.heapplace import find_topic, is_unicode
from topics.core.heaprecord import records_of
from topics.core.log import Log
from topics.core.outcome import Outcome, StoredFact
from topics.core.partition import partition_of
from topics.core.registry import Topic
from topics.core.transaction import key_of
from topics.core.ulid import message_id, message_ids
from topics.core.waits import waits_of
from topics.errors import BatchTooLarge, InvalidRequest, RecordTooLarge
from topics.heapmodel import Enqueued, EnqueuedBatch, NewMessage
from topics.limits import (
    HEAP_BATCH_BYTES_MAX,
    HEAP_BATCH_MESSAGES_MAX,
    HEAP_DELAY_MS_MAX,
    META_BYTES_DEFAULT,
    META_KEYS_MAX,
    U32_MAX,
)
from topics.model import Durability

if TYPE_CHECKING:
    from topics.core.machine import Machine

_SPREAD_SEQUENCES = 1024
"""So many messages of a producer in a row go to one partition, so that what is remembered of them is short."""


class Known(NamedTuple):
    """Where a message is that was enqueued before."""

    log: Log
    seq: int
    ts: int


def check_messages(topic: Topic, messages: Sequence[NewMessage]) -> None:
    """Refuse messages that a heap does not take, naming the first."""
    config = topic.config
    for place, message in enumerate(messages):
        if len(message.payload) > config.max_payload_bytes:
            raise RecordTooLarge(
                f"messages[{place}]: payload size {len(message.payload)} exceeds the {config.max_payload_bytes} bytes "
                f'that topic "{topic.name}" takes; raise its max_payload_bytes or send less',
                field=f"messages[{place}].payload",
                bytes=len(message.payload),
                max_bytes=config.max_payload_bytes,
            )
        check_priority(message.priority, f"messages[{place}].priority")
        if not 0 <= message.delay_ms <= HEAP_DELAY_MS_MAX:
            raise _refuse(place, "delay_ms", f"milliseconds from 0 to {HEAP_DELAY_MS_MAX}")
        if message.max_retries is not None and not 0 <= message.max_retries <= U32_MAX:
            raise _refuse(place, "max_retries", f"a whole number from 0 to {U32_MAX}")
        if message.partition is not None and not 0 <= message.partition < config.partitions:
            raise _refuse(place, "partition", f"a whole number from 0 to {config.partitions - 1}")
        if message.producer_id is not None:
            if not is_unicode(message.producer_id):
                raise _refuse(place, "producer_id", "Unicode")
            check_producer_key(message.producer_id, message.epoch, message.sequence or 0)
        elif message.sequence is not None:
            raise _refuse(place, "producer_id", "a producer id beside its sequence")
        if message.partition_key is not None and not is_unicode(message.partition_key):
            raise _refuse(place, "partition_key", "Unicode")
        if message.meta is not None:
            _check_meta(place, message.meta)


def check_size(messages: Sequence[NewMessage]) -> None:
    """A batch as a whole."""
    if not 1 <= len(messages) <= HEAP_BATCH_MESSAGES_MAX:
        kind = BatchTooLarge if messages else InvalidRequest
        expected = f"1 to {HEAP_BATCH_MESSAGES_MAX} messages"
        raise kind(f"a batch has {expected}, not {len(messages)}", field="messages", expected=expected)
    size_bytes = sum(len(message.payload) for message in messages)
    if size_bytes > HEAP_BATCH_BYTES_MAX and len(messages) > 1:
        raise BatchTooLarge(
            f"the batch has {size_bytes} bytes of payload, at most {HEAP_BATCH_BYTES_MAX} are allowed: send several",
            bytes=size_bytes,
            max_bytes=HEAP_BATCH_BYTES_MAX,
        )


def _check_meta(place: int, meta: dict[str, str]) -> None:
    if not all(is_unicode(name) and is_unicode(value) for name, value in meta.items()):
        raise _refuse(place, "meta", "Unicode")
    if any(name.startswith("$") for name in meta):
        raise _refuse(place, "meta", "names that do not begin with $, which are the engine's own")
    size_bytes = sum(len(name.encode()) + len(value.encode()) for name, value in meta.items())
    # The engine's own names take a few of the keys that a record's meta may have.
    if len(meta) > META_KEYS_MAX - 8 or size_bytes > META_BYTES_DEFAULT:
        raise _refuse(place, "meta", f"at most {META_KEYS_MAX - 8} names and {META_BYTES_DEFAULT} bytes")


def _refuse(place: int, field: str, expected: str) -> InvalidRequest:
    name = f"messages[{place}].{field}"
    return InvalidRequest(f"{name} must be {expected}", field=name, expected=expected)


# ---- where to


def partition_for(topic: Topic, message: NewMessage, other: int) -> int:
    """Where a message goes; `other` is where those go that do not care."""
    if message.partition is not None:
        return message.partition
    if message.partition_key is None:
        return other
    return partition_of(message.partition_key.encode("utf-8", "replace"), topic.config.partitions)


def other_partition(topic: Topic, messages: Sequence[NewMessage], chance: str) -> int:
    """Where those messages of a batch go that do not care: by their producer, or by a text that stands for chance."""
    partitions = topic.config.partitions
    if partitions == 1:
        return 0
    first = messages[0]
    if first.producer_id is not None and first.sequence is not None:
        chance = f"{first.producer_id}\0{first.epoch}\0{first.sequence // _SPREAD_SEQUENCES}"
    return partition_of(chance.encode("utf-8", "replace"), partitions)


# ---- once


def producer_key(message: NewMessage) -> ProducerKey | None:
    if message.producer_id is None or message.sequence is None:
        return None
    return ProducerKey(message.producer_id, message.epoch, message.sequence)


def find_known(machine: Machine, topic: Topic, key: ProducerKey, now_ms: int) -> Known | None:
    """Where a message with this key went; `ProducerFenced` when a newer epoch of its producer has written."""
    found: Known | None = None
    for log_id in topic.log_ids():
        log = machine.logs[log_id]
        hit = log.dedupe.lookup(key, now_ms, 0) if log.remembers else None
        if hit is not None:
            found = Known(log, hit.first_seq, hit.ts)
    return found


def known_answer(known: Known) -> Enqueued:
    """The first answer again. Send it only when the first message is as safe as its class requires."""
    partition = known.log.partition
    return Enqueued(message_id=message_id(known.ts, partition, known.seq), partition=partition, duplicate=True)


class Sorted(NamedTuple):
    """Messages of one heap, sorted out: which are new, and what there is to say of the others."""

    fresh: list[int]
    """Places in the batch."""
    known: dict[int, Enqueued]
    twins: dict[int, int]
    """Places whose message has the key of an earlier one in the same batch, which is new."""


def sort_out(machine: Machine, topic: Topic, messages: Sequence[NewMessage], now_ms: int) -> Sorted:
    """Changes nothing. Refuses a producer that is fenced, and what there is no room to remember."""
    if not any(message.sequence is not None for message in messages):
        return Sorted(list(range(len(messages))), {}, {})
    found = Sorted([], {}, {})
    first_places: dict[ProducerKey, int] = {}
    for place, message in enumerate(messages):
        key = producer_key(message)
        if key is None:
            found.fresh.append(place)
        elif (twin := first_places.get(key)) is not None:
            found.twins[place] = twin
        elif (known := find_known(machine, topic, key, now_ms)) is not None:
            found.known[place] = known_answer(known)
        else:
            first_places[key] = place
            found.fresh.append(place)
    return found


def answers(found: Sorted, ids: dict[int, tuple[str, int]]) -> tuple[Enqueued, ...]:
    """In the order of the batch, from id and partition of each new one."""
    told = {place: Enqueued(message_id=text, partition=partition) for place, (text, partition) in ids.items()}
    told |= found.known
    for place, twin in found.twins.items():
        text, partition = ids[twin]
        told[place] = Enqueued(message_id=text, partition=partition, duplicate=True)
    return tuple(told[place] for place in sorted(told))


# ---- into one partition


def enqueue(machine: Machine, command: Enqueue, now_ms: int) -> Outcome:
    """All messages into one partition; the reply is an `EnqueuedBatch`, or `Enqueued` for one that came alone."""
    topic = find_topic(machine, command.topic)
    check_size(command.messages)
    check_messages(topic, command.messages)
    log = machine.log(topic, command.partition)
    if command.is_alone:
        if (repeated := _repeated(machine, topic, command.messages[0], now_ms)) is not None:
            return repeated
        found = Sorted([0], {}, {})
    else:
        found = sort_out(machine, topic, command.messages, now_ms)
    if not found.fresh:
        return Outcome(_reply(command, answers(found, {})), log=log, durability=topic.config.durability)
    fresh = [command.messages[place] for place in found.fresh]
    keys = [key for key in map(producer_key, fresh) if key is not None]
    records = records_of(fresh)
    machine.check_room(topic.name, topic.config, log, records)
    for key in keys:
        log.dedupe.admit(key, now_ms, topic.config.idempotency_window_ms)
    transaction = key_of(command.transaction, 0) if command.transaction else None
    if transaction is not None:
        log.dedupe.admit(transaction, now_ms, topic.config.idempotency_window_ms)
    config = topic.config
    encoded = records.encode(log.next_seq, max(now_ms, log.last_ts))
    floors = log.append(encoded, config)
    ceiling_seq = ceiling.grant(log, encoded.last_seq) if config.durability is Durability.DISK else 0
    waits = b""
    if any(message.delay_ms for message in fresh):
        waits = waits_of([now_ms + message.delay_ms if message.delay_ms else 0 for message in fresh])
    fact = Appended(encoded, ceiling_seq, floors, transaction, waits=waits, keyed=bool(keys))
    log.remember(fact)
    facts = [] if config.durability is Durability.EPHEMERAL else [StoredFact(log.log_id, True, fact.buffers())]
    texts = message_ids(encoded.ts, log.partition, encoded.first_seq, encoded.count)
    if len(fresh) == len(command.messages):
        told = tuple([Enqueued(message_id=text, partition=log.partition) for text in texts])
    else:
        told = answers(found, {place: (text, log.partition) for place, text in zip(found.fresh, texts, strict=True)})
    reply = _reply(command, told)
    return Outcome(reply, facts, config.durability is Durability.FSYNC, log, encoded.last_seq, config.durability)


def _repeated(machine: Machine, topic: Topic, message: NewMessage, now_ms: int) -> Outcome | None:
    """The answer to a message that is known already, which waits for the first one; None when it is new."""
    key = producer_key(message)
    known = None if key is None else find_known(machine, topic, key, now_ms)
    if known is None:
        return None
    return Outcome(known_answer(known), log=known.log, seq=known.seq, durability=topic.config.durability)


def _reply(command: Enqueue, told: tuple[Enqueued, ...]) -> Enqueued | EnqueuedBatch:
    return told[0] if command.is_alone else EnqueuedBatch(messages=told)
