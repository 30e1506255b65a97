"""The shapes of producers for the OpenAPI document."""

from __future__ import annotations

from topics.server.shapes import FLAG, NAME, TEXT, U64, Schema, answer_shape, object_shape

COMPONENTS: dict[str, Schema] = {
    "Producer": object_shape(
        "*",
        {
            "producer_id": TEXT,
            "epoch": U64 | {"description": "The newest one; older ones are refused."},
            "sequence": {
                "type": ["integer", "null"],
                "minimum": 0,
                "description": "Of its newest write; null for a producer of batches.",
            },
            "last_used_ts": U64,
            "one_off": FLAG | {"description": "Whether it is forgotten after a day."},
        },
    ),
    "ProducerList": answer_shape(
        {"producers": {"type": "array", "items": {"$ref": "#/components/schemas/Producer"}}},
        {"next_cursor": TEXT},
    ),
    "ProducerForgotten": answer_shape(
        {
            "producer_id": TEXT,
            "forgotten": FLAG,
            "topic": NAME | {"type": ["string", "null"], "description": "Null for a producer of batches."},
        }
    ),
}
