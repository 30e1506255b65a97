"""The shapes of requests and answers for the OpenAPI document."""

from __future__ import annotations

from enum import StrEnum

from topics import limits
from topics.core.config import DEFAULT, as_wire, default
from topics.core.names import TOPIC_RULE
from topics.model import Discard, Durability, Mode, Reason, TopicType
from topics.server.shapes import (
    COUNT,
    FLAG,
    NAME,
    PARTITION_NUMBER,
    STAMP,
    TEXT,
    U64,
    Schema,
    answer_shape,
    object_shape,
    question_shape,
    ref,
)
from topics.wire.tokens import WID_CHARS_MAX


def _strings(values: type[StrEnum]) -> Schema:
    return {"type": "string", "enum": [member.value for member in values]}


_CONFIG_SCHEMAS: dict[str, Schema] = {
    "type": _strings(TopicType) | {"description": "Fixed when the topic is created."},
    "ttl_ms": U64 | {"description": "Records older than this are not delivered; 0 is off."},
    "cap_records": U64 | {"description": "Records retained at most; 0 is off."},
    "cap_bytes": U64 | {"description": "Bytes of data and meta retained at most; 0 is off."},
    "discard": _strings(Discard) | {"description": "What a full topic does: evict the oldest, or refuse the write."},
    "durable": FLAG | {"description": "Short for durability `fsync` (true) or `disk` (false)."},
    "durability": _strings(Durability) | {"description": "Where a write lands, and when it is acked."},
    "priority": {"type": ["integer", "null"], "description": "-1000 to 1000, clamped; null derives it from reads."},
    "auto_priority": FLAG,
    "auto_create": FLAG | {"description": "Whether a write may create the topic."},
    "idempotency_window_ms": U64 | {"description": "How long idempotency keys are remembered."},
    "dedupe_node": FLAG | {"description": "Whether readers can filter out records of their own nodes."},
    "lease_ms": U64 | {"description": "Queue: how long a claim lasts; clamped to 100 ms … 1 day."},
    "claim_jitter_ms": U64 | {"description": "Queue: how long claims are gathered; clamped to 5 s."},
    "max_deliveries": U64 | {"description": "Queue: deliveries before a job is dead-lettered; 0 is no limit."},
    "dead_letter": {
        "type": ["string", "null"],
        "pattern": TOPIC_RULE,
        "description": "Queue: where such jobs go; made with it.",
    },
    "leases_durable": FLAG | {"description": "Queue: whether leases survive a crash."},
    "partitions": {"type": "integer", "minimum": 1, "maximum": limits.PARTITIONS_MAX},
    "alias": {
        "type": ["string", "null"],
        "pattern": TOPIC_RULE,
        "description": "Another name, unique among names and aliases.",
    },
    "protect_unarchived": FLAG | {"description": "Whether retention waits for the archives."},
    "protect_groups": {
        "type": "array",
        "items": {"type": "string", "pattern": TOPIC_RULE},
        "maxItems": limits.PROTECT_GROUPS_MAX,
        "description": "Consumer groups that retention waits for.",
    },
    "protect_max_bytes": {
        "type": "integer",
        "minimum": 1,
        "maximum": limits.U64_MAX,
        "description": "What a partition holds at most while retention waits.",
    },
    "visibility_ms": U64
    | {"description": "How long a consumer of a group has what it was handed; 0 is `TOPICS_GROUP_VISIBILITY_MS`."},
    "mode": _strings(Mode) | {"description": "Heap: which priority is best. Fixed when the topic is created."},
    "top_k_bound": {"type": "integer", "minimum": 1, "description": "Heap: how far from the best a pop may be."},
    "replication_factor": {"type": "integer", "minimum": 1, "maximum": limits.HEAP_REPLICATION_MAX},
    "retention_ms": U64 | {"description": "Heap: how long dead letters are kept; 0 is for ever."},
    "max_retries": {"type": "integer", "minimum": 0, "maximum": limits.U32_MAX},
    "max_payload_bytes": {"type": "integer", "minimum": 1, "maximum": limits.HEAP_PAYLOAD_BYTES_MAX},
    "compression": FLAG | {"description": "Heap: whether clients may compress what they send."},
    "dead_letter_ttl_ms": U64 | {"description": "Heap: how long dead letters are kept, if not as `retention_ms` says."},
}
_DEFAULTS = as_wire(default("", TopicType.HEAP)) | as_wire(DEFAULT)
_TOPIC_CONFIG = object_shape(
    "",
    {name: _CONFIG_SCHEMAS[name] | {"default": default} for name, default in _DEFAULTS.items()},
    "Every field may be left out; unknown ones are ignored.",
)
MATCH: Schema = {
    "description": 'A tag, `["tag","Eq",tag]`, or `["tag","Glob","prefix*"]`.',
    "oneOf": [
        {"type": "string"},
        {"type": "array", "minItems": 3, "maxItems": 3, "items": {"type": "string"}},
    ],
}
_NEW_RECORD = object_shape(
    "data",
    {
        "data": {"description": "Any JSON, kept as it is."},
        "tag": {"type": ["string", "null"], "minLength": 1, "maxLength": limits.TAG_BYTES_DEFAULT},
        "node": {"type": ["string", "null"], "minLength": 1, "maxLength": limits.NODE_BYTES_DEFAULT},
        "meta": {
            "type": ["object", "null"],
            "maxProperties": limits.META_KEYS_MAX,
            "additionalProperties": {"type": "string"},
        },
        "delay_ms": {
            "type": ["integer", "null"],
            "minimum": 0,
            "description": "Queue: nobody gets this job earlier, nor before what the request says of all of them.",
        },
        "not_before": {
            "type": ["integer", "null"],
            "minimum": 0,
            "description": "The same as a time, in milliseconds since the epoch, instead of `delay_ms`.",
        },
    },
)
RECORDS: Schema = {
    "type": "array",
    "minItems": 1,
    "maxItems": limits.BATCH_RECORDS_DEFAULT,
    "items": ref("NewRecord"),
}
PLACE: dict[str, Schema] = {
    "partition": {"type": ["integer", "null"], "minimum": 0, "maximum": limits.PARTITIONS_MAX - 1},
    "key": {"type": ["string", "null"], "description": "Chooses the partition, instead of `partition`."},
}
WRITE_OPTIONS: dict[str, Schema] = {
    "node": {
        "type": ["string", "null"],
        "minLength": 1,
        "description": "The node of all records that name none themselves.",
    },
    "idempotency_key": {"type": ["string", "null"], "minLength": 1, "maxLength": limits.IDEMPOTENCY_KEY_CHARS_MAX},
    "producer_id": {"type": ["string", "null"], "description": "With `epoch` and `sequence`, another way to say so."},
    "epoch": {"type": ["integer", "null"], "minimum": 0},
    "sequence": {"type": ["integer", "null"], "minimum": 0},
    "create": {"type": ["boolean", "null"], "description": "Whether this write may create the topic."},
    "config": {"oneOf": [ref("TopicConfig"), {"type": "null"}], "description": "Used when it does."},
    "disable_backpressure": {"type": ["boolean", "null"], "description": "Wait instead of being refused with 429."},
}
DELAY: dict[str, Schema] = {
    "delay_ms": {"type": ["integer", "null"], "minimum": 0, "description": "Queue: nobody gets these jobs earlier."},
    "not_before": {
        "type": ["integer", "null"],
        "minimum": 0,
        "description": "The same as a time, in milliseconds since the epoch. The later of the two counts.",
    },
}
_WATERMARKS: dict[str, Schema] = {"head_seq": U64, "earliest_seq": U64}
_SEVERAL: dict[str, Schema] = {"partition": PARTITION_NUMBER, "partitions": COUNT}
_EPOCH: Schema = U64 | {"description": "Which life of the name this is; a cursor means something within one only."}
_RATE: Schema = {"type": "number", "minimum": 0, "description": "Records that came a second, in the last seconds."}
SEQS: dict[str, Schema] = {"first_seq": U64, "last_seq": U64}

COMPONENTS: dict[str, Schema] = {
    "Error": object_shape(
        "error",
        {
            "error": object_shape(
                "code message",
                {
                    "code": TEXT | {"description": "Stable; branch on this. On `/v1` a canonical code of gRPC."},
                    "reason": TEXT | {"description": "On `/v1`: the code that `/v0` has for it."},
                    "message": TEXT | {"description": "For people."},
                    "detail": {"type": "object", "additionalProperties": True},
                },
            ),
            "performance": ref("Performance"),
        },
    ),
    "Performance": {
        "type": "object",
        "description": "What was measured while answering, best-effort.",
        "properties": {
            name: {"type": "number"}
            for name in ("server_total_ms", "wal_append_ms", "fsync_ms", "records_scanned", "throttle_wait_ms")
        },
    },
    "TopicConfig": _TOPIC_CONFIG,
    "Configured": answer_shape({"topic": NAME, "created": FLAG, "config": ref("TopicConfig")}),
    "TopicState": answer_shape(
        {
            "topic": NAME,
            "type": _strings(TopicType),
            **_WATERMARKS,
            "next_seq": U64,
            "count": COUNT,
            "bytes": COUNT,
            "epoch": _EPOCH,
            "evict_floor": U64 | {"description": "What was lost by cap, TTL or a crash lies below this seq."},
            "config": ref("TopicConfig"),
            "effective_priority": {"type": "integer"},
            "last_write_ts": STAMP,
            "last_read_ts": STAMP,
            "records_per_s": _RATE,
        },
        _SEVERAL
        | {"stopped": TEXT | {"description": "Why the topic takes no writes any more."}, "queue": ref("QueueState")}
        | {"holding": ref("Holding"), "archives": {"type": "array", "items": ref("ArchiveProgress")}},
    ),
    "TopicSummary": object_shape(
        "topic type head_seq earliest_seq count bytes durable effective_priority last_write_ts records_per_s",
        {
            "topic": NAME,
            "type": _strings(TopicType),
            **_WATERMARKS,
            "count": COUNT,
            "bytes": COUNT,
            "durable": FLAG,
            "effective_priority": {"type": "integer"},
            "last_write_ts": STAMP,
            "records_per_s": _RATE,
        }
        | _SEVERAL
        | {"queue": ref("QueueState")},
    ),
    "TopicList": answer_shape(
        {"topics": {"type": "array", "items": ref("TopicSummary")}},
        {"next_cursor": TEXT | {"description": "There while there are more."}},
    ),
    "SeqMap": answer_shape(
        {
            "topic": NAME,
            **_WATERMARKS,
            "evict_floor": U64,
            "buckets": {"type": "array", "items": ref("SeqBucket")},
        },
        {"partition": PARTITION_NUMBER},
    ),
    "SeqBucket": object_shape(
        "*",
        {
            **SEQS,
            "live": COUNT | {"description": "Records that are there."},
            "deleted": COUNT | {"description": "Deleted by somebody, or jobs that are done."},
            "evicted": COUNT | {"description": "Below the floor of a cap or a TTL."},
            "lost": COUNT | {"description": "Lost in a crash or a repair."},
            "archived": COUNT | {"description": "How many of all these an archive has."},
        },
    ),
    "Dropped": answer_shape({"topic": NAME, "deleted": FLAG, "routers_removed": {"type": "array", "items": TEXT}}),
    "NewRecord": _NEW_RECORD,
    "WriteRequest": object_shape("records", {"records": RECORDS} | WRITE_OPTIONS | DELAY | PLACE),
    "Written": answer_shape(
        {"topic": NAME, **SEQS, "head_seq": U64, "count": COUNT, "created": FLAG, "deduped": FLAG},
        {"seqs": {"type": "array", "items": U64}, "partition": PARTITION_NUMBER},
    ),
    "DiffRequest": question_shape(
        {
            "from_seq": U64 | {"default": 0, "description": "Records behind this seq."},
            "from_ts": U64 | {"description": "Only records stamped at this time or later."},
            "limit": COUNT | {"default": 256, "description": "0 is the default; more than allowed is clamped."},
            "node": {
                "oneOf": [TEXT, {"type": "array", "items": TEXT}],
                "description": "Leave out records of these nodes.",
            },
            "match": MATCH,
            "include_tags": FLAG | {"default": False},
            "include_meta": FLAG | {"default": True},
            "wait_ms": COUNT | {"default": 0, "description": "Wait so long for records; clamped to 30 s."},
            "max_batch_bytes": COUNT | {"description": "1 MiB by default; clamped to 8 MiB."},
            "partition": PARTITION_NUMBER | {"default": 0},
        },
    ),
    "Record": object_shape(
        "$seq $ts data",
        {
            "$seq": U64,
            "$ts": {"type": "integer"},
            "$node": TEXT,
            "$tag": TEXT,
            "meta": {"type": "object", "additionalProperties": {"type": "string"}},
            "data": {"description": "As it was written."},
        },
    ),
    "Tombstone": object_shape(
        "*",
        {
            "gap_from": U64,
            "gap_to": U64,
            "reason": _strings(Reason),
            "missed_estimate": COUNT,
            **_WATERMARKS,
        },
        "Records that were lost before the reader came, both ends included.",
    ),
    "Page": answer_shape(
        {
            "topic": NAME,
            "records": {"type": "array", "items": ref("Record")},
            "next_from_seq": U64,
            **_WATERMARKS,
            "caught_up": FLAG,
            "tombstone": {"oneOf": [ref("Tombstone"), {"type": "null"}]},
            "lag": COUNT,
            "epoch": _EPOCH,
        },
        {"partition": PARTITION_NUMBER},
    ),
    "DeleteRequest": question_shape(
        {
            "before_seq": U64 | {"description": "Records before this seq."},
            "match": MATCH,
            "erase": FLAG | {"default": False},
            "dry_run": FLAG | {"default": False, "description": "Count, and delete nothing."},
            "partition": PARTITION_NUMBER | {"default": 0},
        },
        "At least one of `before_seq` and `match`; both given means both must hold.",
    )
    | {"anyOf": [{"required": ["before_seq"]}, {"required": ["match"]}]},
    "Deleted": answer_shape(
        {"topic": NAME, "deleted": COUNT, **_WATERMARKS, "count": COUNT, "bytes": COUNT},
        {"erased": FLAG, "dry_run": FLAG, "partition": PARTITION_NUMBER},
    ),
    "StageRequest": object_shape(
        "stage records",
        {
            "stage": {"type": "string", "minLength": 1, "maxLength": limits.STAGE_ID_BYTES_MAX},
            "at": {
                "type": ["integer", "null"],
                "minimum": 0,
                "maximum": limits.U64_MAX,
                "description": "How many records the stage holds before these: a repeated request then adds nothing.",
            },
            "records": RECORDS,
            "node": WRITE_OPTIONS["node"],
            "disable_backpressure": WRITE_OPTIONS["disable_backpressure"],
            "delay_ms": DELAY["delay_ms"]
            | {"description": "Queue: nobody gets these jobs earlier, counted from when they are published."},
            "not_before": DELAY["not_before"]
            | {"description": "The same as a time, in milliseconds since the epoch, instead of `delay_ms`."},
        }
        | PLACE,
    ),
    "StageState": answer_shape(
        {
            "stage": TEXT,
            "topic": NAME,
            "type": _strings(TopicType),
            **_SEVERAL,
            "count": COUNT,
            "bytes": COUNT,
            "expires_ts": {"type": "integer"},
        }
    ),
    "PublishRequest": object_shape(
        "*",
        {
            "stages": {
                "type": "array",
                "minItems": 1,
                "maxItems": limits.STAGES_PER_BATCH_MAX,
                "uniqueItems": True,
                "items": TEXT,
            },
            "producer_id": {"type": "string", "minLength": 1, "maxLength": limits.PRODUCER_ID_BYTES_MAX},
            "epoch": U64,
        },
    ),
    "Published": answer_shape(
        {
            "written": {
                "type": "array",
                "items": object_shape(
                    "*",
                    {"topic": NAME, "partition": PARTITION_NUMBER, **SEQS, "head_seq": U64, "count": COUNT},
                ),
            },
            "deduped": FLAG,
        }
    ),
    "AbortRequest": object_shape("*", {"stages": {"type": "array", "minItems": 1, "items": TEXT}}),
    "Aborted": answer_shape({"stages": {"type": "array", "items": TEXT}}),
    "WatchPlace": question_shape(
        {
            "from_seq": U64 | {"default": 0, "description": "Records behind this seq."},
            "tail": FLAG | {"default": False, "description": "Only records that come from now on."},
            "partition": PARTITION_NUMBER | {"default": 0},
            "match": MATCH,
        }
    ),
    "WatchRequest": question_shape(
        {
            "topics": {
                "type": "object",
                "description": "By name, `name#partition` or `prefix*`; may be left out beside `cursor`.",
                "additionalProperties": {"oneOf": [ref("WatchPlace"), {"type": "null"}]},
            },
            "cursor": TEXT | {"description": "The `id` of an event: go on from there."},
            "node": {
                "oneOf": [TEXT, {"type": "array", "items": TEXT}],
                "description": "Leave out records of these nodes.",
            },
            "match": MATCH,
            "limit": COUNT | {"default": 256, "description": "Records in one event; more than allowed is clamped."},
            "max_batch_bytes": COUNT
            | {"default": limits.BATCH_BYTES_DEFAULT, "description": "Payload of one event; clamped to 8 MiB."},
            "heartbeat_ms": {
                "type": "integer",
                "default": limits.HEARTBEAT_MS_DEFAULT,
                "description": "Clamped to 1 s … 60 s.",
            },
            "include_meta": FLAG | {"default": True},
            "include_tags": FLAG | {"default": False},
            "include_data": FLAG | {"default": True},
            "consistency": {"type": "string", "description": "`eventual`, or `strong`: only what is synced."},
        },
    ),
    "WatchSession": answer_shape(
        {
            "wid": TEXT,
            "stream_url": TEXT,
            "session_ttl_ms": COUNT,
            "topics": {
                "type": "object",
                "additionalProperties": object_shape("*", {"from_seq": U64, **_WATERMARKS}),
            },
        }
    ),
    "TokenRequest": object_shape(
        "",
        {
            "wid": {
                "type": "string",
                "maxLength": WID_CHARS_MAX,
                "description": "The watch session that it is for; any when left out.",
            },
            "topics": {
                "type": "array",
                "maxItems": limits.STREAM_TOKEN_TOPICS_MAX,
                "items": TEXT,
                "description": "Names, and beginnings of names with a `*` behind; all that the key may when left out.",
            },
            "scopes": {"type": "array", "items": {"enum": ["read", "write"]}, "default": ["read"]},
            "ttl_ms": {
                "type": "integer",
                "minimum": limits.STREAM_TOKEN_MS_MIN,
                "maximum": limits.STREAM_TOKEN_MS_MAX,
                "default": limits.STREAM_TOKEN_MS_DEFAULT,
            },
        },
    ),
    "Token": answer_shape(
        {"token": TEXT, "expires_ts": {"type": "integer"}, "scopes": {"type": "array", "items": TEXT}},
        {"topics": {"type": "array", "items": TEXT}, "wid": TEXT, "stream_url": TEXT},
    ),
}
