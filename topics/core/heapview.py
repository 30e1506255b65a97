"""A heap to look at: its messages in order, and its numbers. Nothing here changes what anybody gets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING

from topics.core import heapletters
from topics.core.heap import Heap
from topics.core.heaporder import SEQ_BITS, SEQ_MASK
from topics.core.heapplace import Part, find_heap, find_part, find_topic
from topics.core.heaprecord import read, ts_at
from topics.core.leases import DELAYED, FREE, LEASED, LEAVING
from topics.core.registry import Topic
from topics.core.ulid import message_id
from topics.errors import Damaged, InvalidRequest
from topics.heapmodel import (
    EVERY_LETTER,
    DeadMessage,
    HeapConfig,
    HeapInfo,
    HeapStats,
    MessageState,
    PartitionStats,
    PeekedMessage,
    PeekedMessages,
)
from topics.limits import HEAP_PEEK_MAX
from topics.model import TopicConfig

if TYPE_CHECKING:
    from topics.core.machine import Machine

_STATES = {
    FREE: MessageState.READY,
    LEASED: MessageState.LEASED,
    DELAYED: MessageState.DELAYED,
    LEAVING: MessageState.LEAVING,
}


# ---- messages


def peek(
    machine: Machine, name: str, partition: int | None, limit: int, include_dlq: bool, now_ms: int
) -> PeekedMessages:
    """The first messages: ready ones best first, then the others by seq, then dead letters if they are wanted."""
    if not 1 <= limit <= HEAP_PEEK_MAX:
        expected = f"a whole number from 1 to {HEAP_PEEK_MAX}"
        raise InvalidRequest(f"limit must be {expected}, not {limit}", field="limit", expected=expected)
    topic = find_topic(machine, name)
    if partition is not None:
        machine.check_partition(topic.name, topic.config, partition)
    _, parts = find_heap(machine, name, now_ms, () if partition is None else (partition,))
    found = [_peeked(topic, part, seq) for part, seq in islice(_in_order(parts), limit + 1)]
    if len(found) <= limit and include_dlq:
        letters = heapletters.page(machine, name, EVERY_LETTER, "", limit + 1 - len(found), now_ms)
        found += [_dead(letter) for letter in letters.messages]
    return PeekedMessages(topic=topic.name, messages=tuple(found[:limit]), has_more=len(found) > limit)


def _in_order(parts: list[Part]) -> Iterator[tuple[Part, int]]:
    by_partition = {part.log.partition: part for part in parts}
    for _, _, number, seq in merge(*(_ready(part) for part in parts)):
        yield by_partition[number], seq
    for state in (LEASED, DELAYED, LEAVING):
        for part in parts:
            if part.heap.leases.counts[state]:
                yield from ((part, lease.seq) for lease in part.heap.leases if lease.state == state)
    for part in parts:
        yield from ((part, seq) for seq in sorted(part.heap.exhausted))


def _ready(part: Part) -> Iterator[tuple[int, int, int, int]]:
    """Rank, time, partition and seq of what is ready, best first."""
    log, heap = part
    last = -1
    for key in heap.order.in_order():
        if key != last and heap.is_ready(log, key):
            seq = key & SEQ_MASK
            yield key >> SEQ_BITS, ts_at(log, seq), log.partition, seq
        last = key


def _peeked(topic: Topic, part: Part, seq: int) -> PeekedMessage:
    log, heap = part
    message = read(log, seq)
    lease = heap.leases.get(seq)
    state = MessageState.READY if lease is None else _STATES[lease.state]
    if seq in heap.exhausted:
        state = MessageState.LEAVING
    deliveries = 0 if lease is None else lease.deliveries
    own_retries = message.max_retries
    return PeekedMessage(
        message_id=message_id(message.ts, log.partition, seq),
        topic=topic.name,
        partition=log.partition,
        payload=message.payload,
        priority=heap.changed.get(seq, message.priority),
        enqueued_ms=message.ts,
        attempts=deliveries - (state is MessageState.LEASED),
        max_retries=topic.config.max_retries if own_retries is None else own_retries,
        state=state,
        lease_deadline_ms=lease.due_ms - 1 if lease is not None and state is MessageState.LEASED else None,
        not_before_ms=lease.due_ms if lease is not None and state is MessageState.DELAYED else None,
        producer_id=message.producer_id,
        epoch=message.epoch,
        sequence=message.sequence,
        is_json=message.is_json,
        meta=message.own_meta,
    )


def _dead(letter: DeadMessage) -> PeekedMessage:
    return PeekedMessage(
        message_id=letter.message_id,
        topic=letter.topic,
        partition=letter.partition,
        payload=letter.payload,
        priority=letter.priority,
        enqueued_ms=letter.enqueued_ms,
        attempts=letter.attempts,
        max_retries=letter.max_retries,
        state=MessageState.DEAD,
        producer_id=letter.producer_id,
        epoch=letter.epoch,
        sequence=letter.sequence,
        is_json=letter.is_json,
        meta=letter.meta,
    )


# ---- numbers


def stats(machine: Machine, topic: Topic, partition: int | None, stopped: frozenset[int], now_ms: int) -> HeapStats:
    """Numbers of a heap, or of one partition; `stopped` are partitions whose disk failed."""
    if partition is not None:
        machine.check_partition(topic.name, topic.config, partition)
    parts = []
    unread = set()
    for number in range(topic.config.partitions) if partition is None else (partition,):
        try:
            parts.append(find_part(machine, topic, number, now_ms))
        except Damaged:
            # Numbers are told as they were last known; whoever pops is told of the damage.
            log = machine.log(topic, number)
            assert isinstance(log.queue, Heap)
            parts.append(Part(log, log.queue))
            unread.add(number)
    shown = tuple(_partition_stats(part, part.log.partition not in stopped | unread) for part in parts)
    counts = [part.heap.counts for part in parts]
    return HeapStats(
        total_messages=sum(each.messages for each in shown),
        ready_messages=sum(each.ready for each in shown),
        in_flight_messages=sum(each.in_flight for each in shown),
        delayed_messages=sum(each.delayed for each in shown),
        dlq_messages=heapletters.count(machine, topic),
        total_enqueues=sum(part.log.head_seq - part.heap.counts.skipped for part in parts),
        total_pops=sum(each.pops for each in counts),
        total_acks=sum(each.acks for each in counts),
        total_nacks=sum(each.nacks for each in counts),
        total_retries=sum(each.retries for each in counts),
        total_timeouts=sum(each.timeouts for each in counts),
        total_dead_lettered=sum(part.heap.dead_lettered for part in parts),
        partitions=shown,
    )


def together(each: Sequence[HeapStats]) -> HeapStats:
    """Numbers of several heaps, without their partitions."""
    names = [name for name in HeapStats.__struct_fields__ if name != "partitions"]
    return HeapStats(**{name: sum(getattr(stats, name) for stats in each) for name in names})


def _partition_stats(part: Part, is_healthy: bool) -> PartitionStats:
    log, heap = part
    state = heap.state(log)
    return PartitionStats(
        partition=log.partition,
        messages=log.count,
        ready=state.ready,
        in_flight=state.in_flight,
        delayed=state.delayed,
        is_healthy=is_healthy,
    )


def info(topic: Topic, numbers: HeapStats | None = None) -> HeapInfo:
    config = topic.config
    warnings = []
    if config.replication_factor > 1:
        warnings.append(f"replication_factor {config.replication_factor} is stored; one machine keeps one copy")
    return HeapInfo(
        topic=topic.name,
        heap_id=message_id(topic.created_ms, 0, topic.epoch),
        config=heap_config(config),
        created_ms=topic.created_ms,
        updated_ms=topic.updated_ms or topic.created_ms,
        warnings=tuple(warnings),
        stats=numbers,
    )


def heap_config(config: TopicConfig) -> HeapConfig:
    return HeapConfig(
        mode=config.mode,
        partitions=config.partitions,
        replication_factor=config.replication_factor,
        top_k_bound=config.top_k_bound,
        retention_ms=config.retention_ms,
        visibility_timeout_ms=config.lease_ms,
        max_retries=config.max_retries,
        max_payload_bytes=config.max_payload_bytes,
        compression=config.compression,
        dlq_enabled=config.dead_letter is not None,
        dlq_topic=config.dead_letter,
        dlq_retention_ms=config.dead_letter_ttl_ms,
        durability=config.durability,
    )
