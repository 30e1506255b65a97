"""The shapes of SQL for the OpenAPI document."""

from __future__ import annotations

from topics import limits
from topics.model import Reason
from topics.server.shapes import COUNT, NAME, PARTITION_NUMBER, TEXT, U64, Schema, answer_shape, object_shape

_COLUMN = object_shape("name type", {"name": TEXT, "type": TEXT | {"description": "As SQL calls it."}})
_TOMBSTONE = object_shape(
    "topic partition gap_from gap_to reason missed_estimate earliest_seq head_seq",
    {
        "topic": NAME,
        "partition": PARTITION_NUMBER,
        "gap_from": U64,
        "gap_to": U64,
        "reason": {"type": "string", "enum": [reason.value for reason in Reason]},
        "missed_estimate": COUNT,
        "earliest_seq": U64,
        "head_seq": U64,
    },
    "Records that were lost before the statement could read them.",
)
_RESULT = object_shape(
    "columns rows row_count",
    {
        "columns": {"type": "array", "items": _COLUMN},
        "rows": {"type": "array", "items": {"type": "array", "items": {}}},
        "row_count": COUNT,
        "message": TEXT | {"description": "In words, what a statement without rows did."},
        "tombstone": _TOMBSTONE,
        "tombstones": {"type": "array", "items": _TOMBSTONE, "description": "All of them, when there are several."},
    },
)

COMPONENTS: dict[str, Schema] = {
    "SqlRequest": object_shape(
        "sql",
        {
            "sql": {
                "type": "string",
                "maxLength": limits.SQL_BYTES_MAX,
                "description": "One statement or more, separated by semicolons.",
            },
            "params": {
                "type": "array",
                "maxItems": limits.SQL_PARAMETERS_MAX,
                "items": {},
                "description": "The values of the parameters.",
            },
        },
    ),
    "SqlResults": answer_shape({"results": {"type": "array", "items": _RESULT}}),
}
