"""Messages of the contract, from and to the values of `topics.heapmodel`."""

from __future__ import annotations

from typing import Any, Final

from topics.errors import InvalidRequest
from topics.heapmodel import (
    DeadFilter,
    DeadMessage,
    Enqueued,
    EnqueuedBatch,
    HeapInfo,
    HeapStats,
    NewMessage,
    PeekedMessage,
    PoppedMessage,
)
from topics.limits import SECOND_MS
from topics.model import Mode
from topics.proto import messages as proto

NS_PER_MS: Final = 1_000_000
MODES: Final = {0: Mode.MIN, 1: Mode.MAX}
NUMBERS: Final = {mode: number for number, mode in MODES.items()}

# ---- times


def milliseconds(field: str, duration: Any) -> int:
    """A duration in whole milliseconds; what is longer than that by less than one is rounded up."""
    found = duration.seconds * SECOND_MS + -(-duration.nanos // NS_PER_MS)
    if found < 0:
        raise InvalidRequest(f"{field} must not be negative", field=field, expected="a duration, 0 or more")
    return int(found)


def timestamp(ms: int) -> Any:
    return proto.Timestamp(seconds=ms // SECOND_MS, nanos=ms % SECOND_MS * NS_PER_MS)


def duration(ms: int) -> Any:
    return proto.Duration(seconds=ms // SECOND_MS, nanos=ms % SECOND_MS * NS_PER_MS)


def moment_ms(stamp: Any) -> int:
    return int(stamp.seconds * SECOND_MS + stamp.nanos // NS_PER_MS)


def optional(message: Any, field: str) -> Any:
    """What an optional field has; None when it is not there."""
    return getattr(message, field) if message.HasField(field) else None


# ---- in


def config_fields(request: Any) -> dict[str, object]:
    """The config of a new heap. Where 0 would make no sense it stands for the default: a client that says nothing."""
    if request.mode not in MODES:
        raise InvalidRequest(f"mode must be MIN or MAX, not {request.mode}", field="mode", expected="MIN or MAX")
    fields: dict[str, object] = {"mode": MODES[request.mode].value, "max_retries": request.max_retries_default}
    for name in ("partitions", "replication_factor", "top_k_bound", "max_payload_bytes"):
        if value := getattr(request, name):
            fields[name] = value
    if request.compression_enabled:
        fields["compression"] = True
    if request.HasField("retention_time"):
        fields["retention_ms"] = milliseconds("retention_time", request.retention_time)
    if lease_ms := milliseconds("visibility_timeout_default", request.visibility_timeout_default):
        fields["lease_ms"] = lease_ms
    if request.HasField("dlq_policy"):
        fields |= dlq_fields(request.topic, request.dlq_policy, None)
    return fields


def changed_fields(request: Any, dlq_topic: str | None) -> dict[str, object]:
    """What an update names."""
    fields: dict[str, object] = {}
    for name, key in (
        ("max_retries_default", "max_retries"),
        ("max_payload_bytes", "max_payload_bytes"),
        ("compression_enabled", "compression"),
    ):
        if request.HasField(name):
            fields[key] = getattr(request, name)
    for name, key in (("retention_time", "retention_ms"), ("visibility_timeout_default", "lease_ms")):
        if request.HasField(name):
            fields[key] = milliseconds(name, getattr(request, name))
    if request.HasField("dlq_policy"):
        fields |= dlq_fields(request.topic, request.dlq_policy, dlq_topic)
    return fields


def dlq_fields(topic: str, policy: Any, dlq_topic: str | None) -> dict[str, object]:
    """A heap's dead letters go where they went before, or where they go by default."""
    fields: dict[str, object] = {"dead_letter": None}
    if policy.enabled:
        fields["dead_letter"] = dlq_topic or f"{topic}.dlq"
    if policy.HasField("retention_time"):
        fields["dead_letter_ttl_ms"] = milliseconds("dlq_policy.retention_time", policy.retention_time)
    return fields


def new_message(request: Any, field: str = "") -> NewMessage:
    """A message of the old contract."""
    return NewMessage(
        payload=request.payload,
        priority=request.priority,
        partition_key=optional(request, "partition_key"),
        producer_id=optional(request, "producer_id"),
        epoch=request.epoch,
        sequence=optional(request, "sequence"),
        max_retries=optional(request, "max_retries"),
        delay_ms=milliseconds(f"{field}not_before", request.not_before) if request.HasField("not_before") else 0,
    )


def rich_message(request: Any, field: str) -> NewMessage:
    """A message of the new contract."""
    return NewMessage(
        payload=request.payload,
        priority=request.priority,
        partition_key=optional(request, "partition_key"),
        partition=optional(request, "partition_id"),
        producer_id=optional(request, "producer_id"),
        epoch=request.epoch,
        sequence=optional(request, "sequence"),
        max_retries=optional(request, "max_retries"),
        delay_ms=milliseconds(f"{field}not_before", request.not_before) if request.HasField("not_before") else 0,
        is_json=request.is_json,
        meta=dict(request.meta) or None,
    )


def visibility_ms(opened: Any) -> int | None:
    if not opened.HasField("visibility_timeout"):
        return None
    return milliseconds("visibility_timeout", opened.visibility_timeout) or None


def dead_filter(chosen: Any) -> DeadFilter:
    return DeadFilter(
        message_ids=tuple(chosen.message_ids),
        reason=optional(chosen, "reason"),
        died_from_ms=moment_ms(chosen.died_from) if chosen.HasField("died_from") else None,
        died_before_ms=moment_ms(chosen.died_before) if chosen.HasField("died_before") else None,
        priority_min=optional(chosen, "priority_min"),
        priority_max=optional(chosen, "priority_max"),
    )


# ---- out


def enqueued(message: Enqueued) -> Any:
    return proto.EnqueueResp(message_id=message.message_id, duplicate=message.duplicate, partition_id=message.partition)


def enqueued_batch(batch: EnqueuedBatch) -> Any:
    return proto.EnqueueBatchResp(
        responses=map(enqueued, batch.messages),
        transaction_id=batch.transaction_id,
        all_duplicates=batch.all_duplicates,
    )


def pop_item(message: PoppedMessage) -> Any:
    return proto.PopItem(**_popped(message))


def message(popped: PoppedMessage) -> Any:
    return proto.Message(**_popped(popped), is_json=popped.is_json, meta=popped.meta)


def _shared(message: PoppedMessage | PeekedMessage | DeadMessage) -> dict[str, Any]:
    """What every message has, wherever it is met."""
    return {
        "message_id": message.message_id,
        "topic": message.topic,
        "partition_id": message.partition,
        "payload": message.payload,
        "priority": message.priority,
        "enqueued_time": timestamp(message.enqueued_ms),
        "attempts": message.attempts,
        "max_retries": message.max_retries,
        "producer_id": message.producer_id,
        "epoch": message.epoch,
        "sequence": message.sequence,
    }


def _popped(message: PoppedMessage) -> dict[str, Any]:
    leased = {"lease_token": message.lease_token, "lease_deadline": timestamp(message.lease_deadline_ms)}
    return _shared(message) | leased


def peek_item(message: PeekedMessage) -> Any:
    return proto.PeekItem(**_peeked(message))


def peeked_message(message: PeekedMessage) -> Any:
    ready_ms = message.not_before_ms
    return proto.PeekedMessage(
        **_peeked(message),
        state=message.state.value,
        not_before=None if ready_ms is None else timestamp(ready_ms),
        is_json=message.is_json,
        meta=message.meta,
    )


def _peeked(message: PeekedMessage) -> dict[str, Any]:
    deadline_ms = message.lease_deadline_ms
    return _shared(message) | {
        "is_leased": message.is_leased,
        "lease_deadline": None if deadline_ms is None else timestamp(deadline_ms),
        "in_dlq": message.in_dlq,
    }


def dead_letter(message: DeadMessage) -> Any:
    return proto.DeadLetter(
        **_shared(message),
        dead_time=timestamp(message.died_ms),
        reason=message.reason,
        history=[
            {"at": timestamp(failed.at_ms), "reason": failed.reason, "consumer": failed.consumer}
            for failed in message.history
        ],
        dlq_topic=message.dlq_topic,
        dlq_partition_id=message.dlq_partition,
        dlq_seq=message.dlq_seq,
        is_json=message.is_json,
        meta=message.meta,
    )


def heap_info(info: HeapInfo) -> Any:
    config = info.config
    return proto.HeapInfo(
        topic=info.topic,
        mode=NUMBERS[config.mode],
        partitions=config.partitions,
        replication_factor=config.replication_factor,
        top_k_bound=config.top_k_bound,
        retention_time=duration(config.retention_ms) if config.retention_ms else None,
        visibility_timeout_default=duration(config.visibility_timeout_ms),
        max_retries_default=config.max_retries,
        max_payload_bytes=config.max_payload_bytes,
        compression_enabled=config.compression,
        dlq_policy=proto.DLQPolicy(
            enabled=config.dlq_enabled,
            retention_time=duration(config.dlq_retention_ms) if config.dlq_retention_ms else None,
        ),
        created_at=timestamp(info.created_ms),
        updated_at=timestamp(info.updated_ms),
        stats=None if info.stats is None else heap_stats(info.stats),
    )


def heap(info: HeapInfo) -> Any:
    stats = info.stats or HeapStats()
    return proto.Heap(
        info=heap_info(info),
        heap_id=info.heap_id,
        dlq_topic=info.config.dlq_topic,
        durability=info.config.durability.value,
        replicas=info.replicas,
        warnings=info.warnings,
        ready_messages=stats.ready_messages,
        delayed_messages=stats.delayed_messages,
        total_dead_lettered=stats.total_dead_lettered,
        partitions=[
            {"partition_id": each.partition, "ready": each.ready, "delayed": each.delayed} for each in stats.partitions
        ],
    )


def heap_stats(stats: HeapStats) -> Any:
    made = proto.HeapStats(
        total_messages=stats.total_messages,
        inflight_messages=stats.in_flight_messages,
        dlq_messages=stats.dlq_messages,
        total_enqueues=stats.total_enqueues,
        total_pops=stats.total_pops,
        total_acks=stats.total_acks,
        total_nacks=stats.total_nacks,
        total_retries=stats.total_retries,
        total_timeouts=stats.total_timeouts,
    )
    for partition in stats.partitions:
        told = made.partition_stats[partition.partition]
        told.partition_id = partition.partition
        told.messages = partition.messages
        told.inflight = partition.in_flight
        told.leader_node = partition.leader_node
        told.replica_nodes.extend(partition.replica_nodes)
        told.is_healthy = partition.is_healthy
    return made
