"""The shapes of queues for the OpenAPI document: jobs, leases, and what is said about them."""

from __future__ import annotations

from topics import limits
from topics.server.schemas import DELAY, MATCH, PLACE, RECORDS, SEQS, WRITE_OPTIONS
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

_NODE: Schema = {
    "type": "string",
    "minLength": 1,
    "maxLength": limits.NODE_BYTES_DEFAULT,
    "description": "The worker: the name that jobs are leased to.",
}
_LEASE_MS: Schema = {
    "type": "integer",
    "minimum": 0,
    "description": f"How long the lease lasts from now; clamped to {limits.LEASE_MS_MIN} ms … 1 day.",
}
_PARTITION: Schema = {"partition": PLACE["partition"]}
_NAMED: dict[str, Schema] = {
    "node": _NODE,
    "seqs": {
        "type": "array",
        "minItems": 1,
        "maxItems": limits.CLAIM_MAX_DEFAULT,
        "items": U64 | {"minimum": 1},
        "description": "Jobs that this worker has.",
    },
    "lease_ids": {
        "type": ["array", "null"],
        "items": TEXT,
        "description": "The lease of each, in the same order: one that is not current any more is skipped.",
    },
} | _PARTITION
_SKIPPED: Schema = {"type": "array", "items": U64, "description": "Those that are not this worker's (any more)."}
_COUNTS: dict[str, Schema] = {
    "ready": COUNT | {"description": "Jobs that can be claimed now."},
    "in_flight": COUNT | {"description": "Jobs that somebody has."},
}
_SEVERAL: dict[str, Schema] = {"partition": PARTITION_NUMBER}

_STEPPED: dict[str, Schema] = {
    "scanned": COUNT,
    "next_from_seq": U64 | {"description": "Where the next request goes on."},
    "head_seq": U64,
    "done": FLAG | {"description": "Whether there is nothing left to look at."},
    "dry_run": FLAG,
}
"""How far work came that takes several requests."""

COMPONENTS: dict[str, Schema] = {
    "QueueState": object_shape(
        "ready in_flight delayed dead_lettered",
        _COUNTS
        | {
            "delayed": COUNT | {"description": "Jobs whose time has not come."},
            "dead_lettered": COUNT | {"description": "Jobs that went to the dead-letter topic, ever."},
            "dead_letter_error": TEXT | {"description": "Why it does not take what it should; such jobs stay."},
        },
        "Of a queue only: its jobs.",
    ),
    "ClaimRequest": object_shape(
        "node",
        {
            "node": _NODE,
            "max": {
                "type": ["integer", "null"],
                "minimum": 1,
                "default": 1,
                "description": "Jobs at most; clamped to `TOPICS_MAX_CLAIM`.",
            },
            "lease_ms": _LEASE_MS | {"type": ["integer", "null"]},
            "wait_ms": {
                "type": ["integer", "null"],
                "minimum": 0,
                "default": 0,
                "description": "Wait so long for the first job; clamped to 30 s.",
            },
        }
        | _PARTITION,
    ),
    "Job": object_shape(
        "$seq lease_id deadline deliveries $ts data",
        {
            "$seq": U64,
            "lease_id": TEXT | {"description": "Names this delivery, and no other one ever."},
            "deadline": {"type": "integer", "description": "When the lease runs out, in milliseconds since the epoch."},
            "deliveries": COUNT | {"minimum": 1, "description": "How often this job was handed out, this time too."},
            "$ts": {"type": "integer"},
            "$node": TEXT,
            "$tag": TEXT,
            "meta": {"type": "object", "additionalProperties": TEXT},
            "data": {"description": "As it was written."},
        },
    ),
    "LeasePage": answer_shape(
        {
            "topic": NAME,
            "leases": {"type": "array", "items": ref("JobLease")},
            "next_after": {"type": ["integer", "null"], "description": "There while there may be more."},
            "oldest_ready": {"oneOf": [ref("ReadyJob"), {"type": "null"}]},
        },
        _PARTITION,
    ),
    "JobLease": object_shape(
        "*",
        {
            "seq": U64,
            "node": {"type": ["string", "null"], "description": "Who has it; null for a job that only waits."},
            "lease_id": {"type": ["string", "null"], "description": "Names the delivery."},
            "since": {
                "type": ["integer", "null"],
                "description": "When it was handed out, to the second; null when that is not known any more.",
            },
            "deadline": {"type": "integer", "description": "Until when it is theirs; with a delay, when it is ready."},
            "deliveries": COUNT,
        },
    ),
    "ReadyJob": object_shape(
        "*",
        {
            "seq": U64,
            "ts": {"type": ["integer", "null"], "description": "When it was put; null when it cannot be read."},
            "deliveries": COUNT,
        },
        "The job that has waited the longest of those that can be claimed.",
    ),
    "Claimed": answer_shape(
        {
            "topic": NAME,
            "claimed": {"type": "array", "items": ref("Job")},
            "count": COUNT,
            "ready": _COUNTS["ready"],
        },
        _SEVERAL,
    ),
    "AckRequest": object_shape(
        "node seqs",
        _NAMED
        | {
            "produce": {
                "type": ["array", "null"],
                "maxItems": limits.RESULT_PARTS_MAX,
                "items": ref("Product"),
                "description": "Writes that happen with the ack, all or nothing: only if every job is still the "
                "worker's.",
            }
        },
    ),
    "Product": object_shape(
        "topic records",
        {"topic": NAME, "records": RECORDS}
        | {name: WRITE_OPTIONS[name] for name in ("node", "create", "config")}
        | DELAY
        | PLACE,
        "One write that an ack makes.",
    ),
    "Acked": answer_shape(
        {"topic": NAME, "acked": COUNT, "skipped": _SKIPPED, **_COUNTS},
        _SEVERAL
        | {
            "written": {
                "type": "array",
                "items": object_shape(
                    "*", {"topic": NAME, "partition": PARTITION_NUMBER, **SEQS, "head_seq": U64, "count": COUNT}
                ),
                "description": "With `produce`: what was written, in its order.",
            }
        },
    ),
    "NackRequest": object_shape(
        "node seqs",
        _NAMED
        | {
            "delay_ms": {
                "type": ["integer", "null"],
                "minimum": 0,
                "default": 0,
                "description": "How long nobody gets them; clamped to 1 day.",
            },
            "delivered": {
                "type": ["boolean", "null"],
                "default": True,
                "description": "False: they never reached a worker, and `deliveries` is what it was before.",
            },
        },
    ),
    "Nacked": answer_shape({"topic": NAME, "nacked": COUNT, "skipped": _SKIPPED, **_COUNTS}, _SEVERAL),
    "ExtendRequest": object_shape("node seqs lease_ms", _NAMED | {"lease_ms": _LEASE_MS}),
    "Extended": answer_shape(
        {
            "topic": NAME,
            "extended": COUNT,
            "skipped": _SKIPPED,
            "deadlines": {
                "type": "object",
                "additionalProperties": {"type": "integer"},
                "description": "The new deadline of each, by seq.",
            },
        },
        _SEVERAL,
    ),
    "RedriveRequest": question_shape(
        {
            "destination": NAME | {"description": "Where they go; where each came from when left out."},
            "source": NAME | {"description": "Only those that came from this queue."},
            "match": MATCH,
            "reason": TEXT | {"description": "Only those whose `meta.$dead_letter_reason` is this."},
            "from_seq": U64 | {"default": 0, "description": "Only those behind this seq."},
            "before_seq": U64 | {"description": "Only those before this seq."},
            "limit": COUNT | {"minimum": 1, "description": "At most so many."},
            "rate_per_second": {
                "type": "integer",
                "minimum": 1,
                "maximum": limits.REDRIVE_RATE_MAX,
                "description": "No faster than this.",
            },
            "dry_run": FLAG | {"default": False, "description": "Count, and move nothing."},
            "partition": PARTITION_NUMBER | {"default": 0},
        }
    ),
    "DiscardRequest": question_shape(
        {
            "source": NAME | {"description": "Only those that came from this topic."},
            "match": MATCH,
            "reason": TEXT | {"description": "Only those whose `meta.$dead_letter_reason` is this."},
            "from_seq": U64 | {"default": 0, "description": "Only those behind this seq."},
            "before_seq": U64 | {"description": "Only those before this seq."},
            "limit": COUNT | {"minimum": 1, "description": "At most so many."},
            "dry_run": FLAG | {"default": False, "description": "Count, and delete nothing."},
            "partition": PARTITION_NUMBER | {"default": 0},
        }
    ),
    "Discarded": answer_shape(
        {
            "topic": NAME,
            "deleted": COUNT | {"description": "Dead letters that are gone, or would be."},
            "skipped": COUNT | {"description": "Those that stay: somebody has them, or they are on their way back."},
            **_STEPPED,
        },
        _SEVERAL,
    ),
    "DeadLetterTopics": answer_shape(
        {
            "topics": {
                "type": "array",
                "items": object_shape(
                    "*",
                    {
                        "topic": NAME,
                        "exists": FLAG | {"description": "It is made with the first dead letter."},
                        "count": COUNT | {"description": "Records in it, dead letters or not."},
                        "bytes": COUNT,
                        "partitions": COUNT,
                        "last_write_ts": STAMP,
                        "sources": {
                            "type": "array",
                            "items": object_shape(
                                "*", {"topic": NAME, "type": {"type": "string", "enum": ["log", "queue", "heap"]}}
                            ),
                            "description": "Topics whose `dead_letter` it is.",
                        },
                    },
                ),
            }
        }
    ),
    "Redriven": answer_shape(
        {
            "topic": NAME,
            "moved": COUNT | {"description": "Dead letters that went back, or would have."},
            "skipped": COUNT | {"description": "Those that stay: somebody has them, or their queue is gone or full."},
            **_STEPPED,
        },
        _SEVERAL,
    ),
}
