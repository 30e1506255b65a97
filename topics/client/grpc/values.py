"""Messages of the gRPC contract, from and to the values of `topics.heapmodel`, as a client needs them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from topics.client.grpc.fitting import fitting, whole_ms
from topics.client.heaptransport import NackRequest, PopRequest
from topics.errors import TopicsError
from topics.heapmodel import (
    DeadFilter,
    DeadMessage,
    Enqueued,
    EnqueuedBatch,
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
from topics.proto import messages as proto

NS_PER_MS: Final = 1_000_000
_MODES: Final = (Mode.MIN, Mode.MAX)


def duration(name: str, given_ms: Any) -> Any:
    """A time that a program gave under this name."""
    ms = whole_ms(name, given_ms)
    return proto.Duration(seconds=ms // SECOND_MS, nanos=ms % SECOND_MS * NS_PER_MS)


def timestamp(ms: int) -> Any:
    return proto.Timestamp(seconds=ms // SECOND_MS, nanos=ms % SECOND_MS * NS_PER_MS)


def milliseconds(span: Any) -> int:
    return int(span.seconds * SECOND_MS + span.nanos // NS_PER_MS)


def _optional(message: Any, field: str) -> Any:
    return getattr(message, field) if message.HasField(field) else None


# ---- what goes


def visibility(request: PopRequest) -> Any:
    """For how long messages are leased; None is as the heap says."""
    return None if request.visibility_ms is None else duration("visibility_ms", request.visibility_ms)


def new_message(topic: str, message: NewMessage, place: str = "") -> Any:
    """`place` is where it is among others, like `messages[3].`."""
    named = message.sequence is not None
    return fitting(
        proto.NewMessage,
        place,
        topic=topic,
        payload=message.payload,
        priority=message.priority,
        partition_key=message.partition_key,
        partition_id=message.partition,
        producer_id=message.producer_id if named else None,
        epoch=message.epoch if named else None,
        sequence=message.sequence,
        max_retries=message.max_retries,
        not_before=duration(f"{place}delay_ms", message.delay_ms) if message.delay_ms else None,
        is_json=message.is_json,
        meta=message.meta,
    )


def make_request(topic: str, fields: dict[str, Any]) -> Any:
    """What a heap is made with; the names are those of a topic's config."""
    request = fitting(
        proto.MakeHeapReq,
        topic=topic,
        mode=_MODES.index(Mode(fields.get("mode", Mode.MIN))),
        partitions=fields.get("partitions", 0),
        replication_factor=fields.get("replication_factor", 0),
        top_k_bound=fields.get("top_k_bound", 0),
        max_retries_default=fields.get("max_retries", HeapConfig().max_retries),
        max_payload_bytes=fields.get("max_payload_bytes", 0),
        compression_enabled=fields.get("compression", False),
    )
    _spans(request, fields)
    return request


def change_request(topic: str, fields: dict[str, Any]) -> Any:
    request = fitting(
        proto.UpdateHeapConfigReq,
        topic=topic,
        max_retries_default=fields.get("max_retries"),
        max_payload_bytes=fields.get("max_payload_bytes"),
        compression_enabled=fields.get("compression"),
    )
    _spans(request, fields)
    return request


def _spans(request: Any, fields: dict[str, Any]) -> None:
    if "retention_ms" in fields:
        request.retention_time.CopyFrom(duration("retention_ms", fields["retention_ms"]))
    if "lease_ms" in fields:
        request.visibility_timeout_default.CopyFrom(duration("lease_ms", fields["lease_ms"]))
    if "dead_letter" in fields or "dead_letter_ttl_ms" in fields:
        request.dlq_policy.enabled = fields.get("dead_letter", "") is not None
        if "dead_letter_ttl_ms" in fields:
            ttl = duration("dead_letter_ttl_ms", fields["dead_letter_ttl_ms"])
            request.dlq_policy.retention_time.CopyFrom(ttl)


def dead_filter(chosen: DeadFilter) -> Any:
    start_ms, end_ms = chosen.died_from_ms, chosen.died_before_ms
    return fitting(
        proto.DeadFilter,
        message_ids=chosen.message_ids,
        reason=chosen.reason,
        died_from=None if start_ms is None else timestamp(start_ms),
        died_before=None if end_ms is None else timestamp(end_ms),
        priority_min=chosen.priority_min,
        priority_max=chosen.priority_max,
    )


def settle_acks(leases: Sequence[LeaseRef]) -> Any:
    return fitting(proto.Settle, acks=[_named(lease) for lease in leases])


def settle_nacks(request: NackRequest) -> Any:
    said: dict[str, Any] = {"undelivered": request.undelivered, "reason": request.reason or None}
    if request.backoff_ms is not None:
        said["backoff_override"] = duration("backoff_ms", request.backoff_ms)
    return fitting(proto.Settle, nacks=[_named(lease) | said for lease in request.leases])


def settle_extensions(leases: Sequence[LeaseRef], extension_ms: int) -> Any:
    extension = duration("ms", extension_ms)
    return fitting(proto.Settle, extensions=[_named(lease) | {"extension": extension} for lease in leases])


def _named(lease: LeaseRef) -> dict[str, Any]:
    return {"message_id": lease.message_id, "lease_token": lease.lease_token}


# ---- what comes


def enqueued_batch(answer: Any) -> EnqueuedBatch:
    return EnqueuedBatch(
        messages=tuple(
            Enqueued(message_id=each.message_id, partition=each.partition_id, duplicate=each.duplicate)
            for each in answer.responses
        ),
        transaction_id=answer.transaction_id,
    )


def _shared(item: Any) -> dict[str, Any]:
    return {
        "message_id": item.message_id,
        "topic": item.topic,
        "partition": item.partition_id,
        "payload": item.payload,
        "priority": item.priority,
        "enqueued_ms": milliseconds(item.enqueued_time),
        "attempts": item.attempts,
        "max_retries": item.max_retries,
        "producer_id": _optional(item, "producer_id"),
        "epoch": _optional(item, "epoch"),
        "sequence": _optional(item, "sequence"),
    }


def popped(item: Any) -> PoppedMessage:
    return PoppedMessage(
        **_shared(item),
        lease_token=item.lease_token,
        lease_deadline_ms=milliseconds(item.lease_deadline),
        is_json=item.is_json,
        meta=dict(item.meta) or None,
    )


def peeked(item: Any) -> PeekedMessage:
    deadline, ready = _optional(item, "lease_deadline"), _optional(item, "not_before")
    return PeekedMessage(
        **_shared(item),
        state=MessageState(item.state),
        lease_deadline_ms=None if deadline is None else milliseconds(deadline),
        not_before_ms=None if ready is None else milliseconds(ready),
        is_json=item.is_json,
        meta=dict(item.meta) or None,
    )


def dead_message(item: Any) -> DeadMessage:
    return DeadMessage(
        **_shared(item),
        dlq_topic=item.dlq_topic,
        dlq_partition=item.dlq_partition_id,
        dlq_seq=item.dlq_seq,
        died_ms=milliseconds(item.dead_time),
        reason=item.reason,
        history=tuple(Failure(milliseconds(each.at), each.reason, each.consumer) for each in item.history),
        is_json=item.is_json,
        meta=dict(item.meta) or None,
    )


def all_lost(leases: Sequence[LeaseRef], error: TopicsError) -> Any:
    """What a settle comes to when its stream is over."""
    answer = proto.Settled()
    for place, lease in enumerate(leases):
        answer.refused.add(
            message_id=lease.message_id,
            code=error.grpc_code,
            message=f"the stream is over: {error.message}",
            place=place,
        )
    return answer


def lost(refused: Sequence[Any]) -> tuple[LostLease, ...]:
    return tuple(LostLease(place=each.place, message_id=each.message_id, reason=each.message) for each in refused)


def heap_info(heap: Any) -> HeapInfo:
    info = heap.info
    return HeapInfo(
        topic=info.topic,
        heap_id=heap.heap_id,
        config=HeapConfig(
            mode=_MODES[info.mode],
            partitions=info.partitions,
            replication_factor=info.replication_factor,
            top_k_bound=info.top_k_bound,
            retention_ms=milliseconds(info.retention_time),
            visibility_timeout_ms=milliseconds(info.visibility_timeout_default),
            max_retries=info.max_retries_default,
            max_payload_bytes=info.max_payload_bytes,
            compression=info.compression_enabled,
            dlq_enabled=info.dlq_policy.enabled,
            dlq_topic=heap.dlq_topic or None,
            dlq_retention_ms=milliseconds(info.dlq_policy.retention_time),
            durability=Durability(heap.durability),
        ),
        created_ms=milliseconds(info.created_at),
        updated_ms=milliseconds(info.updated_at),
        replicas=heap.replicas,
        warnings=tuple(heap.warnings),
        stats=_heap_stats(heap),
    )


def _heap_stats(heap: Any) -> HeapStats:
    stats = heap.info.stats
    return HeapStats(
        total_messages=stats.total_messages,
        ready_messages=heap.ready_messages,
        in_flight_messages=stats.inflight_messages,
        delayed_messages=heap.delayed_messages,
        dlq_messages=stats.dlq_messages,
        total_enqueues=stats.total_enqueues,
        total_pops=stats.total_pops,
        total_acks=stats.total_acks,
        total_nacks=stats.total_nacks,
        total_retries=stats.total_retries,
        total_timeouts=stats.total_timeouts,
        total_dead_lettered=heap.total_dead_lettered,
        partitions=tuple(_partition(stats.partition_stats[each.partition_id], each) for each in heap.partitions),
    )


def _partition(told: Any, counts: Any) -> PartitionStats:
    return PartitionStats(
        partition=told.partition_id,
        messages=told.messages,
        ready=counts.ready,
        in_flight=told.inflight,
        delayed=counts.delayed,
        is_healthy=told.is_healthy,
        leader_node=told.leader_node,
        replica_nodes=tuple(told.replica_nodes),
    )
