"""The answers of `/v1`, by the names of the gRPC contract: structs that msgspec writes as they are.

Times are RFC 3339 text, durations seconds, payloads base64, or JSON in `payload_json` when they were sent as JSON. What
a message does not have is left out.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Raw

from topics.core.heappriorities import Bucket, Waiting
from topics.heapmodel import (
    DeadMessage,
    Enqueued,
    HeapInfo,
    HeapStats,
    LostLease,
    PeekedMessage,
    PoppedMessage,
)
from topics.limits import SECOND_MS
from topics.wire.duration import seconds

NO_JSON = Raw()
"""Stands for a payload that is no JSON."""


class _Shared(msgspec.Struct, omit_defaults=True, kw_only=True):
    message_id: str
    topic: str
    partition_id: int
    payload: bytes | None = None
    payload_json: Raw = NO_JSON
    priority: int
    enqueued_time: datetime
    attempts: int
    max_retries: int
    producer_id: str | None = None
    epoch: int | None = None
    sequence: int | None = None
    meta: dict[str, str] | None = None


class PoppedItem(_Shared, omit_defaults=True, kw_only=True):
    lease_token: str
    lease_deadline: datetime


class PeekedItem(_Shared, omit_defaults=True, kw_only=True):
    state: str
    is_leased: bool
    in_dlq: bool
    lease_deadline: datetime | None = None
    not_before: datetime | None = None


class DeadItem(_Shared, omit_defaults=True, kw_only=True):
    dead_time: datetime
    reason: str
    history: list[dict[str, Any]]
    dlq_topic: str
    dlq_partition_id: int
    dlq_seq: int


def moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / SECOND_MS, UTC)


def _moment_or_none(ms: int | None) -> datetime | None:
    return None if ms is None else moment(ms)


def _shared(message: PoppedMessage | PeekedMessage | DeadMessage) -> dict[str, Any]:
    """What every message has, wherever it is met."""
    return {
        "message_id": message.message_id,
        "topic": message.topic,
        "partition_id": message.partition,
        "payload_json" if message.is_json else "payload": Raw(message.payload) if message.is_json else message.payload,
        "priority": message.priority,
        "enqueued_time": moment(message.enqueued_ms),
        "attempts": message.attempts,
        "max_retries": message.max_retries,
        "producer_id": message.producer_id,
        "epoch": message.epoch,
        "sequence": message.sequence,
        "meta": message.meta,
    }


def popped(message: PoppedMessage) -> PoppedItem:
    return PoppedItem(
        **_shared(message), lease_token=message.lease_token, lease_deadline=moment(message.lease_deadline_ms)
    )


def peeked(message: PeekedMessage) -> PeekedItem:
    return PeekedItem(
        **_shared(message),
        state=message.state.value,
        is_leased=message.is_leased,
        in_dlq=message.in_dlq,
        lease_deadline=_moment_or_none(message.lease_deadline_ms),
        not_before=_moment_or_none(message.not_before_ms),
    )


def dead(message: DeadMessage) -> DeadItem:
    return DeadItem(
        **_shared(message),
        dead_time=moment(message.died_ms),
        reason=message.reason,
        history=[
            {"at": moment(failed.at_ms), "reason": failed.reason, "consumer": failed.consumer}
            for failed in message.history
        ],
        dlq_topic=message.dlq_topic,
        dlq_partition_id=message.dlq_partition,
        dlq_seq=message.dlq_seq,
    )


def enqueued(message: Enqueued) -> dict[str, Any]:
    return {"message_id": message.message_id, "duplicate": message.duplicate, "partition_id": message.partition}


def lost(leases: tuple[LostLease, ...], code: str) -> list[dict[str, Any]]:
    """Those of a call that were not there, by their places in it."""
    return [
        {"place": lease.place, "message_id": lease.message_id, "code": code, "message": lease.reason}
        for lease in leases
    ]


def heap_info(info: HeapInfo) -> dict[str, Any]:
    config = info.config
    told: dict[str, Any] = {
        "topic": info.topic,
        "heap_id": info.heap_id,
        "mode": config.mode.name,
        "partitions": config.partitions,
        "replication_factor": config.replication_factor,
        "replicas": info.replicas,
        "top_k_bound": config.top_k_bound,
        "retention_time": seconds(config.retention_ms),
        "visibility_timeout_default": seconds(config.visibility_timeout_ms),
        "max_retries_default": config.max_retries,
        "max_payload_bytes": config.max_payload_bytes,
        "compression_enabled": config.compression,
        "durability": config.durability.value,
        "dlq_policy": {
            "enabled": config.dlq_enabled,
            "topic": config.dlq_topic,
            "retention_time": seconds(config.dlq_retention_ms),
        },
        "created_at": moment(info.created_ms),
        "updated_at": moment(info.updated_ms),
        "warnings": list(info.warnings),
    }
    if info.stats is not None:
        told["stats"] = heap_stats(info.stats)
    return told


def heap_stats(stats: HeapStats) -> dict[str, Any]:
    return {
        "total_messages": stats.total_messages,
        "ready_messages": stats.ready_messages,
        "inflight_messages": stats.in_flight_messages,
        "delayed_messages": stats.delayed_messages,
        "dlq_messages": stats.dlq_messages,
        "total_enqueues": stats.total_enqueues,
        "total_pops": stats.total_pops,
        "total_acks": stats.total_acks,
        "total_nacks": stats.total_nacks,
        "total_retries": stats.total_retries,
        "total_timeouts": stats.total_timeouts,
        "total_dead_lettered": stats.total_dead_lettered,
        "partition_stats": {
            str(partition.partition): {
                "partition_id": partition.partition,
                "messages": partition.messages,
                "ready": partition.ready,
                "inflight": partition.in_flight,
                "delayed": partition.delayed,
                "leader_node": partition.leader_node,
                "replica_nodes": partition.replica_nodes,
                "is_healthy": partition.is_healthy,
            }
            for partition in stats.partitions
        },
    }


def bucket(found: Bucket) -> dict[str, Any]:
    return {"priority_min": found.least, "priority_max": found.most, "count": found.messages}


def waiting(part: Waiting) -> dict[str, Any]:
    return {
        "partition_id": part.partition,
        "ready": part.ready,
        "best_priority": part.best,
        "oldest_time": _moment_or_none(part.oldest_ms),
        "dead_lettered": part.dead_lettered,
    }
