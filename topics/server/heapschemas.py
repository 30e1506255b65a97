"""The shapes of `/v1` for the OpenAPI document, by the names of the gRPC contract."""

from __future__ import annotations

from topics import limits
from topics.server.shapes import (
    COUNT,
    FLAG,
    NAME,
    PARTITION_NUMBER,
    TEXT,
    Schema,
    answer_shape,
    flag_parameter,
    object_shape,
    or_null,
    parameter,
    question_shape,
    ref,
)

DURATION: Schema = {
    "description": 'Seconds, as a number or as text: `1.5` or `"1.5s"`.',
    "oneOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": r"^\d+(\.\d+)?s?$"}],
}
SECONDS: Schema = {"type": "number", "minimum": 0, "description": "Seconds."}
I64: Schema = {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1}
U32: Schema = {"type": "integer", "minimum": 0, "maximum": limits.U32_MAX}
MOMENT: Schema = {"type": "string", "format": "date-time"}
BASE64: Schema = {"type": "string", "contentEncoding": "base64"}
MESSAGE_ID: Schema = TEXT | {"description": "A ULID: sorts by time, partition and seq."}
TOKEN: Schema = TEXT | {"description": "Names the lease, and no other one ever."}
STRINGS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}

MESSAGE: Schema = {
    "name": "message",
    "in": "path",
    "required": True,
    "description": "The id that the message had in its heap.",
    "schema": TEXT,
}
CONFIRMED = (
    flag_parameter("force", False, "Needed; without a token it is answered with one."),
    parameter(
        "confirmation_token", TEXT, "Of the answer to the call before; good for two minutes, for this call only."
    ),
)
HEAP_PAGE = (
    parameter("page_size", {"type": "integer", "default": 100}, "Heaps in one answer, at most 1000."),
    parameter("page_token", TEXT, "Where to go on: `next_page_token` of the answer before."),
    parameter("prefix", TEXT, "Only names that begin like this."),
)


def _or_text(schema: Schema, pattern: str) -> Schema:
    """A number of 64 bits, which not every language can write as one."""
    return {"oneOf": [schema, {"type": "string", "pattern": pattern}]}


def _list(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


PRIORITY: Schema = _or_text(I64, r"^-?\d{1,18}$") | {"description": "64 bits with a sign; also as text."}
SEQUENCE: Schema = _or_text({"type": "integer", "minimum": 0, "maximum": limits.U64_MAX}, r"^\d{1,19}$")

_POLICY = object_shape("", {"enabled": FLAG, "retention_time": or_null(DURATION)})
_CHANGE: dict[str, Schema] = {
    "retention_time": DURATION,
    "visibility_timeout_default": DURATION,
    "max_retries_default": U32,
    "max_payload_bytes": _or_text(
        {"type": "integer", "minimum": 1, "maximum": limits.HEAP_PAYLOAD_BYTES_MAX}, r"^0*[1-9]\d{0,8}$"
    ),
    "compression_enabled": FLAG,
    "dlq_policy": _POLICY,
}
_NEW: dict[str, Schema] = {
    "mode": {"enum": ["MIN", "MAX", "min", "max", 0, 1], "default": "MIN"},
    "partitions": {"type": "integer", "minimum": 1, "maximum": limits.PARTITIONS_MAX},
    "replication_factor": {"type": "integer", "minimum": 1, "maximum": limits.HEAP_REPLICATION_MAX},
    "top_k_bound": {"type": "integer", "minimum": 1, "maximum": limits.U32_MAX},
}
_STATS: dict[str, Schema] = dict.fromkeys(
    (
        *("total_messages", "ready_messages", "inflight_messages", "delayed_messages", "dlq_messages"),
        *("total_enqueues", "total_pops", "total_acks", "total_nacks", "total_retries", "total_timeouts"),
        "total_dead_lettered",
    ),
    COUNT,
)
_PARTITION_STATS = object_shape(
    "*",
    {
        "partition_id": PARTITION_NUMBER,
        **dict.fromkeys(("messages", "ready", "inflight", "delayed"), COUNT),
        "leader_node": TEXT,
        "replica_nodes": _list(TEXT),
        "is_healthy": FLAG,
    },
)
_WAITING = object_shape(
    "*",
    {
        "partition_id": PARTITION_NUMBER,
        "ready": COUNT,
        "best_priority": {"type": ["integer", "null"], "description": "Of the message that is next."},
        "oldest_time": {"type": ["string", "null"], "format": "date-time"},
        "dead_lettered": COUNT | {"description": "Messages given up since the heap was made."},
    },
)
_INFO: dict[str, Schema] = {
    "topic": NAME,
    "heap_id": TEXT,
    "mode": {"type": "string", "enum": ["MIN", "MAX"]},
    "partitions": COUNT,
    "replication_factor": COUNT,
    "replicas": COUNT | {"description": "Copies that there are of each message."},
    "top_k_bound": COUNT,
    "retention_time": SECONDS,
    "visibility_timeout_default": SECONDS,
    "max_retries_default": U32,
    "max_payload_bytes": COUNT,
    "compression_enabled": FLAG,
    "durability": TEXT,
    "dlq_policy": object_shape(
        "*", {"enabled": FLAG, "topic": {"type": ["string", "null"]}, "retention_time": SECONDS}
    ),
    "created_at": MOMENT,
    "updated_at": MOMENT,
    "warnings": _list(TEXT) | {"description": "What was asked for and is not so."},
}
_MESSAGE: dict[str, Schema] = {
    "topic": NAME,
    "payload": BASE64,
    "payload_json": {"description": "Any JSON, instead of `payload`."},
    "priority": PRIORITY,
    "partition_key": TEXT,
    "partition_id": PARTITION_NUMBER,
    "producer_id": TEXT,
    "epoch": SEQUENCE,
    "sequence": SEQUENCE,
    "max_retries": U32,
    "not_before": DURATION,
    "meta": STRINGS,
}
_ITEM: dict[str, Schema] = {
    "message_id": MESSAGE_ID,
    "topic": NAME,
    "partition_id": PARTITION_NUMBER,
    "priority": I64,
    "enqueued_time": MOMENT,
    "attempts": COUNT | {"description": "Deliveries that failed so far."},
    "max_retries": COUNT,
}
_ITEM_MAY: dict[str, Schema] = {
    "payload": BASE64,
    "payload_json": {"description": "The payload, when it was sent as JSON."},
    "producer_id": TEXT,
    "epoch": COUNT,
    "sequence": COUNT,
    "meta": STRINGS,
}


def _item(more: dict[str, Schema], may: dict[str, Schema] | None = None) -> Schema:
    always = _ITEM | more
    return object_shape(" ".join(always), always | _ITEM_MAY | (may or {}))


_LEASES: dict[str, Schema] = {
    "topic": NAME,
    "message_id": MESSAGE_ID,
    "lease_token": TOKEN,
    "leases": _list(object_shape("lease_token", {"lease_token": TOKEN, "message_id": MESSAGE_ID})),
}
_REFUSED = _list(object_shape("*", {"place": COUNT, "message_id": MESSAGE_ID, "code": TEXT, "message": TEXT}))

COMPONENTS: dict[str, Schema] = {
    "MakeHeap": question_shape({"topic": NAME} | _NEW | _CHANGE, required="topic"),
    "HeapChange": question_shape(_CHANGE),
    "HeapStats": object_shape(
        " ".join(_STATS),
        _STATS | {"partition_stats": {"type": "object", "additionalProperties": _PARTITION_STATS}},
    ),
    "Heap": object_shape(" ".join(_INFO), _INFO | {"stats": ref("HeapStats")}),
    "HeapInfo": answer_shape(_INFO, {"stats": ref("HeapStats")}),
    "HeapList": answer_shape({"heaps": _list(ref("Heap")), "next_page_token": TEXT}),
    "HeapDeleted": answer_shape({"topic": NAME, "deleted": FLAG}),
    "PurgeRequest": question_shape({"partition_id": PARTITION_NUMBER}),
    "HeapPurged": answer_shape({"topic": NAME, "purged": COUNT}),
    "HeapsStats": answer_shape(
        {
            "global_stats": ref("HeapStats"),
            "topic_stats": {"type": "object", "additionalProperties": ref("HeapStats")},
        }
    ),
    "HeapPriorities": answer_shape(
        {
            "topic": NAME,
            "mode": {"type": "string", "enum": ["MIN", "MAX"]},
            "ready_messages": COUNT,
            "exact": FLAG,
            "buckets": _list(object_shape("*", {"priority_min": I64, "priority_max": I64, "count": COUNT})),
            "partitions": _list(_WAITING),
        }
    ),
    "EnqueueRequest": question_shape(_MESSAGE, required="topic"),
    "EnqueueBatchRequest": object_shape(
        "messages",
        {
            "messages": _list(ref("EnqueueRequest")) | {"maxItems": limits.HEAP_BATCH_MESSAGES_MAX},
            "transaction_id": {"type": ["string", "null"]},
        },
    ),
    "Enqueued": answer_shape({"message_id": MESSAGE_ID, "duplicate": FLAG, "partition_id": PARTITION_NUMBER}),
    "EnqueuedBatch": answer_shape(
        {
            "responses": _list(
                object_shape("*", {"message_id": MESSAGE_ID, "duplicate": FLAG, "partition_id": PARTITION_NUMBER})
            ),
            "transaction_id": TEXT,
            "all_duplicates": FLAG,
        }
    ),
    "PopRequest": question_shape(
        {
            "topic": NAME,
            "max": COUNT | {"default": 1},
            "wait_time": DURATION,
            "visibility_timeout": DURATION,
            "partition_ids": _list(PARTITION_NUMBER),
            "consumer": TEXT | {"description": "A name, for people who look who had a message."},
        },
        required="topic",
    ),
    "PoppedMessage": _item({"lease_token": TOKEN, "lease_deadline": MOMENT}),
    "Popped": answer_shape({"items": _list(ref("PoppedMessage"))}),
    "HeapAckRequest": question_shape(_LEASES, required="topic"),
    "HeapAcked": answer_shape({"acked": COUNT, "refused": _REFUSED}),
    "HeapNackRequest": question_shape(
        _LEASES | {"backoff_override": DURATION, "reason": TEXT, "undelivered": FLAG}, required="topic"
    ),
    "HeapNacked": answer_shape({"nacked": COUNT, "dead_lettered": COUNT, "refused": _REFUSED}),
    "HeapExtendRequest": question_shape(_LEASES | {"extension": DURATION}, required="topic extension"),
    "HeapExtended": answer_shape({"extended": COUNT, "lease_deadline": MOMENT, "refused": _REFUSED}),
    "PeekedMessage": _item(
        {"state": TEXT, "is_leased": FLAG, "in_dlq": FLAG}, {"lease_deadline": MOMENT, "not_before": MOMENT}
    ),
    "Peeked": answer_shape({"items": _list(ref("PeekedMessage")), "has_more": FLAG}),
    "ReprioritizeRequest": object_shape("*", {"message_id": MESSAGE_ID, "priority": PRIORITY}),
    "Reprioritized": answer_shape({"message_id": MESSAGE_ID, "old_priority": I64}),
    "CancelRequest": object_shape("*", {"message_id": MESSAGE_ID}),
    "Cancelled": answer_shape({"message_id": MESSAGE_ID, "cancelled": FLAG}),
    "MoveRequest": question_shape({"message_id": MESSAGE_ID, "reason": TEXT}, required="message_id"),
    "MovedToDlq": answer_shape({"message_id": MESSAGE_ID, "dlq_topic": NAME}),
    "DeadLetter": _item(
        {
            "dead_time": MOMENT,
            "reason": TEXT,
            "dlq_topic": NAME,
            "dlq_partition_id": PARTITION_NUMBER,
            "dlq_seq": COUNT,
            "history": _list(object_shape("*", {"at": MOMENT, "reason": TEXT, "consumer": TEXT})),
        }
    ),
    "DeadLetterList": answer_shape(
        {
            "items": _list(ref("DeadLetter")),
            "dlq_topic": TEXT | {"description": "Empty when messages that fail too often are dropped."},
            "next_page_token": TEXT,
        }
    ),
    "DeadLetterShown": answer_shape({"item": ref("DeadLetter")}),
    "DeadLettersRequest": question_shape(
        {
            "message_ids": _list(MESSAGE_ID),
            "reason": TEXT | {"description": "The whole text, or its beginning when it ends in `*`."},
            "died_from": MOMENT,
            "died_before": MOMENT,
            "priority_min": PRIORITY,
            "priority_max": PRIORITY,
            "limit": COUNT,
            "dry_run": FLAG | {"description": "Count them, and leave them."},
        },
        "Those for which all that is said is true; all of them when nothing is.",
    ),
    "DeadLettersDone": answer_shape({"count": COUNT, "skipped": COUNT}),
    "SnapshotRequest": question_shape({}, "There is nothing to say."),
    "SnapshotTaken": answer_shape({"taken_at": MOMENT}),
}
