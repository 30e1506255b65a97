"""Answers of `/v1` as the values of `topics.heapmodel`, and requests as its bodies."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Raw

from topics.heapmodel import (
    DeadFilter,
    DeadMessage,
    Failure,
    HeapConfig,
    HeapInfo,
    HeapStats,
    LeaseRef,
    LostLease,
    MessageState,
    NewMessage,
    PartitionStats,
    PeekedMessage,
    PoppedMessage,
)
from topics.limits import SECOND_MS
from topics.model import Durability, Mode
from topics.wire.duration import seconds
from topics.wire.heapanswers import NO_JSON, DeadItem, PeekedItem, PoppedItem, moment

# ---- what comes


class Popped(msgspec.Struct):
    items: list[PoppedItem]


class Peeked(msgspec.Struct):
    items: list[PeekedItem]
    has_more: bool


class DeadList(msgspec.Struct):
    items: list[DeadItem]
    dlq_topic: str
    next_page_token: str


class DeadShown(msgspec.Struct):
    item: DeadItem


class Refused(msgspec.Struct):
    place: int
    message_id: str
    message: str


class EnqueuedItem(msgspec.Struct):
    message_id: str
    partition_id: int
    duplicate: bool


class EnqueuedItems(msgspec.Struct):
    responses: list[EnqueuedItem]
    transaction_id: str


class _Partition(msgspec.Struct):
    partition_id: int
    messages: int
    ready: int
    inflight: int
    delayed: int
    is_healthy: bool
    leader_node: str = ""
    replica_nodes: tuple[str, ...] = ()


class _Stats(msgspec.Struct):
    total_messages: int
    ready_messages: int
    inflight_messages: int
    delayed_messages: int
    dlq_messages: int
    total_enqueues: int
    total_pops: int
    total_acks: int
    total_nacks: int
    total_retries: int
    total_timeouts: int
    total_dead_lettered: int
    partition_stats: dict[str, _Partition] = {}


class _Policy(msgspec.Struct):
    enabled: bool
    topic: str | None
    retention_time: float


class Info(msgspec.Struct):
    topic: str
    heap_id: str
    mode: str
    partitions: int
    replication_factor: int
    replicas: int
    top_k_bound: int
    retention_time: float
    visibility_timeout_default: float
    max_retries_default: int
    max_payload_bytes: int
    compression_enabled: bool
    durability: Durability
    dlq_policy: _Policy
    created_at: datetime
    updated_at: datetime
    warnings: tuple[str, ...] = ()
    stats: _Stats | None = None


def popped(item: PoppedItem) -> PoppedMessage:
    return PoppedMessage(
        **_shared(item), lease_token=item.lease_token, lease_deadline_ms=milliseconds(item.lease_deadline)
    )


def peeked(item: PeekedItem) -> PeekedMessage:
    return PeekedMessage(
        **_shared(item),
        state=MessageState(item.state),
        lease_deadline_ms=None if item.lease_deadline is None else milliseconds(item.lease_deadline),
        not_before_ms=None if item.not_before is None else milliseconds(item.not_before),
    )


def dead(item: DeadItem) -> DeadMessage:
    return DeadMessage(
        **_shared(item),
        dlq_topic=item.dlq_topic,
        dlq_partition=item.dlq_partition_id,
        dlq_seq=item.dlq_seq,
        died_ms=milliseconds(item.dead_time),
        reason=item.reason,
        history=tuple(
            Failure(milliseconds(datetime.fromisoformat(failed["at"])), failed["reason"], failed["consumer"])
            for failed in item.history
        ),
    )


def _shared(item: PoppedItem | PeekedItem | DeadItem) -> dict[str, Any]:
    is_json = item.payload_json is not NO_JSON
    payload = bytes(item.payload_json) if is_json else item.payload or b""
    return {
        "message_id": item.message_id,
        "topic": item.topic,
        "partition": item.partition_id,
        "payload": payload,
        "priority": item.priority,
        "enqueued_ms": milliseconds(item.enqueued_time),
        "attempts": item.attempts,
        "max_retries": item.max_retries,
        "producer_id": item.producer_id,
        "epoch": item.epoch,
        "sequence": item.sequence,
        "is_json": is_json,
        "meta": item.meta,
    }


def milliseconds(stamp: datetime) -> int:
    return round(stamp.timestamp() * SECOND_MS)


def lost(refused: Sequence[Refused]) -> tuple[LostLease, ...]:
    return tuple(LostLease(place=each.place, message_id=each.message_id, reason=each.message) for each in refused)


def heap_info(info: Info) -> HeapInfo:
    return HeapInfo(
        topic=info.topic,
        heap_id=info.heap_id,
        config=HeapConfig(
            mode=Mode(info.mode.lower()),
            partitions=info.partitions,
            replication_factor=info.replication_factor,
            top_k_bound=info.top_k_bound,
            retention_ms=round(info.retention_time * SECOND_MS),
            visibility_timeout_ms=round(info.visibility_timeout_default * SECOND_MS),
            max_retries=info.max_retries_default,
            max_payload_bytes=info.max_payload_bytes,
            compression=info.compression_enabled,
            dlq_enabled=info.dlq_policy.enabled,
            dlq_topic=info.dlq_policy.topic,
            dlq_retention_ms=round(info.dlq_policy.retention_time * SECOND_MS),
            durability=info.durability,
        ),
        created_ms=milliseconds(info.created_at),
        updated_ms=milliseconds(info.updated_at),
        replicas=info.replicas,
        warnings=info.warnings,
        stats=None if info.stats is None else _heap_stats(info.stats),
    )


def _heap_stats(stats: _Stats) -> HeapStats:
    counts = {name: getattr(stats, name) for name in _Stats.__struct_fields__ if name in HeapStats.__struct_fields__}
    return HeapStats(
        **counts,
        in_flight_messages=stats.inflight_messages,
        partitions=tuple(
            PartitionStats(
                partition=each.partition_id,
                messages=each.messages,
                ready=each.ready,
                in_flight=each.inflight,
                delayed=each.delayed,
                is_healthy=each.is_healthy,
                leader_node=each.leader_node,
                replica_nodes=each.replica_nodes,
            )
            for each in stats.partition_stats.values()
        ),
    )


# ---- what goes


def message_fields(topic: str, message: NewMessage) -> dict[str, Any]:
    fields: dict[str, Any] = {"topic": topic, "priority": message.priority}
    if message.is_json:
        fields["payload_json"] = Raw(message.payload)
    else:
        fields["payload"] = message.payload
    if message.sequence is not None:
        fields |= {"producer_id": message.producer_id, "epoch": message.epoch, "sequence": message.sequence}
    for name, value in (
        ("partition_key", message.partition_key),
        ("partition_id", message.partition),
        ("max_retries", message.max_retries),
        ("meta", message.meta),
        ("not_before", seconds(message.delay_ms) if message.delay_ms else None),
    ):
        if value is not None:
            fields[name] = value
    return fields


def lease_fields(topic: str, leases: Sequence[LeaseRef]) -> dict[str, Any]:
    named = [{"message_id": lease.message_id, "lease_token": lease.lease_token} for lease in leases]
    return {"topic": topic, "leases": named}


def filter_fields(chosen: DeadFilter, limit: int) -> dict[str, Any]:
    fields: dict[str, Any] = {"limit": limit} if limit else {}
    if chosen.message_ids:
        fields["message_ids"] = list(chosen.message_ids)
    for name in ("reason", "priority_min", "priority_max"):
        if (value := getattr(chosen, name)) is not None:
            fields[name] = value
    for name in ("died_from", "died_before"):
        if (ms := getattr(chosen, f"{name}_ms")) is not None:
            fields[name] = moment(ms)
    return fields
