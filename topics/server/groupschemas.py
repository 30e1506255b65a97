"""The shapes of consumer groups for the OpenAPI document."""

from __future__ import annotations

from topics import limits
from topics.core.names import TOPIC_RULE
from topics.groupmodel import RangeKind
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

GROUP: Schema = {
    "name": "group",
    "in": "path",
    "required": True,
    "description": "The name of the group.",
    "schema": {"type": "string", "pattern": TOPIC_RULE},
}
_START: Schema = {
    "oneOf": [
        {"enum": ["earliest", "latest"]},
        U64,
        object_shape("ts", {"ts": {"type": "integer", "minimum": 0}}),
    ],
}
_CONSUMER: Schema = {
    "type": "string",
    "maxLength": limits.NODE_BYTES_MAX,
    "description": "A name that the consumer gives itself.",
}
_VISIBILITY: Schema = COUNT | {
    "description": f"How long from now, {limits.LEASE_MS_MIN} ms … 1 day; the topic's `visibility_ms` by default."
}
_PARTITION: dict[str, Schema] = {"partition": PARTITION_NUMBER | {"default": 0}}
_NAMED: dict[str, Schema] = {
    "upto_seq": U64 | {"description": "The claim that holds this seq, up to it."},
    "from_seq": U64 | {"default": 0, "description": "Only from this seq on."},
    "consumer": _CONSUMER | {"description": "All claims of this consumer, up to `upto_seq` if it is given."},
    "claim_id": TEXT | {"description": "Only what is still held under this claim."},
} | _PARTITION
_WHERE: dict[str, Schema] = {"topic": NAME, "group": NAME}
_SEVERAL: dict[str, Schema] = {"partition": PARTITION_NUMBER}
_REACHED: dict[str, Schema] = {
    "committed_seq": U64 | {"description": "Every record up to here is acked, deleted or lost."},
    "head_seq": U64,
}
_LAG: dict[str, Schema] = {"lag": COUNT | {"description": "`head_seq` less `committed_seq`."}}
_RANGE = object_shape(
    "*",
    {
        "first_seq": U64,
        "last_seq": U64,
        "kind": {"enum": [kind.value for kind in RangeKind]},
        "deliveries": COUNT,
        "consumer": TEXT,
        "claim_id": TEXT,
        "deadline": {"type": "integer"},
    },
)
_MEMBER = object_shape(
    "*", {"consumer": TEXT, "claims": COUNT, "seqs": COUNT, "deadline": {"type": "integer"}}, "A consumer with claims."
)
_STATE: dict[str, Schema] = {
    **_WHERE,
    "start_seq": U64 | {"description": "Where it began, as pinned or reset."},
    **_REACHED,
    "next_seq": U64 | {"description": "The first seq that was never handed out."},
    "earliest_seq": U64,
    "in_flight": COUNT | {"description": "Seqs that consumers have."},
    "waiting": COUNT | {"description": "Seqs that are to be handed out again."},
    "acked_ahead": COUNT | {"description": "Seqs that are acked although something below them is not."},
    "oldest_unacked_seq": {"type": ["integer", "null"]},
    "oldest_unacked_ts": STAMP,
    "paused": FLAG,
    "updated_ms": {"type": "integer", "description": "When it was last placed or acked something."},
    "range_count": COUNT,
    "ranges": {"type": "array", "items": _RANGE, "maxItems": limits.GROUP_SHOWN_MAX},
    "member_count": COUNT,
    "members": {"type": "array", "items": _MEMBER, "maxItems": limits.GROUP_SHOWN_MAX},
    "losses": {
        "type": "array",
        "items": object_shape("*", {"gap_from": U64, "gap_to": U64, "reason": TEXT}),
        "description": "What was lost before it was acked, and nobody has acked to know.",
    },
    "lost_count": COUNT,
    "dead_lettered": COUNT,
    "dead_letter_error": {"type": ["string", "null"]},
    "protected": FLAG | {"description": "Whether retention waits for it."},
    **_LAG,
}

_SUMMARY = object_shape(
    "*",
    {
        **_WHERE,
        "partitions": COUNT | {"description": "That it came to."},
        **_LAG,
        **{name: _STATE[name] for name in ("in_flight", "waiting", "acked_ahead", "lost_count", "dead_lettered")},
        "consumers": COUNT | {"description": "That have claims, as far as they are shown."},
        **{name: _STATE[name] for name in ("oldest_unacked_ts", "paused", "protected", "updated_ms")},
    },
    "A group over all partitions.",
)

COMPONENTS: dict[str, Schema] = {
    "ConsumeRequest": question_shape(
        {
            "from": _START | {"description": "Where the group begins, at its first contact.", "default": "earliest"},
            "limit": {
                "type": "integer",
                "minimum": 1,
                "default": limits.GROUP_LIMIT_DEFAULT,
                "description": "Records at most; clamped to `TOPICS_MAX_CLAIM`.",
            },
            "wait_ms": COUNT | {"default": 0, "description": "Wait so long for records; clamped to 30 s."},
            "consumer": _CONSUMER,
            "visibility_ms": _VISIBILITY,
            "max_batch_bytes": COUNT
            | {"default": limits.BYTE_BUDGET_DEFAULT, "description": "Payload at most; clamped to 8 MiB."},
            "include_tags": FLAG | {"default": False},
            "partition": {
                "oneOf": [PARTITION_NUMBER, {"enum": ["any"]}],
                "default": 0,
                "description": "Which one; `any` takes from all in turn.",
            },
            "ack_upto_seq": U64 | {"description": "Ack up to here first, as `ack` does, in the same call."},
            "ack_partition": PARTITION_NUMBER | {"description": "There; `partition` by default."},
            "ack_claim_id": TEXT | {"description": "Only what is held under this claim."},
        }
    ),
    "GroupBatch": answer_shape(
        {
            **_WHERE,
            "records": {"type": "array", "items": ref("Record")},
            "count": COUNT,
            "first_seq": U64,
            "last_seq": U64 | {"description": "Ack with this; 0 when there was nothing."},
            "claim_id": {"type": ["string", "null"], "description": "Names this claim, and no other one ever."},
            "deadline": {"type": "integer", "description": "When the claim runs out."},
            "visibility_ms": COUNT | {"description": "How long that is from when they were handed out."},
            "deliveries": COUNT | {"description": "How often these were handed out, this time too."},
            **_REACHED,
            **_LAG,
            "tombstone": {"oneOf": [ref("Tombstone"), {"type": "null"}]},
            "paused": FLAG,
        },
        _SEVERAL | {"consumer": _CONSUMER},
    ),
    "GroupAckRequest": question_shape(_NAMED, required="upto_seq"),
    "GroupAcked": answer_shape(
        {**_WHERE, "acked": COUNT | {"description": "Seqs that were not acked before."}, **_REACHED, **_LAG}, _SEVERAL
    ),
    "GroupNackRequest": question_shape(
        _NAMED | {"delay_ms": COUNT | {"default": 0, "description": "How long nobody gets them; clamped to 1 day."}}
    ),
    "GroupNacked": answer_shape({**_WHERE, "nacked": COUNT, **_REACHED}, _SEVERAL),
    "GroupExtendRequest": question_shape(_NAMED | {"visibility_ms": _VISIBILITY}),
    "GroupExtended": answer_shape(
        {**_WHERE, "extended": COUNT, "deadline": {"type": "integer", "description": "0 when nothing was."}}, _SEVERAL
    ),
    "GroupResetRequest": question_shape({"to": _START} | _PARTITION, required="to"),
    "GroupPlaced": answer_shape({**_WHERE, "created": FLAG, **_REACHED}, _SEVERAL),
    "GroupPauseRequest": question_shape({}, "Nothing to say."),
    "GroupPaused": answer_shape({**_WHERE, "paused": FLAG}),
    "GroupDropped": answer_shape({**_WHERE, "deleted": FLAG}),
    "GroupState": answer_shape(_STATE, _SEVERAL),
    "GroupPage": answer_shape(
        {"groups": {"type": "array", "items": _SUMMARY}},
        {"next_cursor": TEXT | {"description": "There while there are more."}},
    ),
    "GroupList": answer_shape(
        {"topic": NAME, "groups": {"type": "array", "items": object_shape(" ".join(_STATE), _STATE | _SEVERAL)}}
    ),
}
