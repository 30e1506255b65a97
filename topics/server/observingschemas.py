"""The shapes of series, overview and settings for the OpenAPI document."""

from __future__ import annotations

from topics.server.series import SERIES
from topics.server.series import Unit as SeriesUnit
from topics.server.shapes import COUNT, FLAG, TEXT, Schema, answer_shape, object_shape, ref

_TIME: Schema = {"type": "integer", "description": "Milliseconds since the epoch."}
_NUMBER: Schema = {"type": "number"}

COMPONENTS: dict[str, Schema] = {
    "OneSeries": object_shape(
        "*",
        {
            "unit": {"type": "string", "enum": [unit.value for unit in SeriesUnit]},
            "about": TEXT,
            "values": {"type": "array", "items": {"type": ["number", "null"]}},
        },
    ),
    "SeriesAnswer": answer_shape(
        {
            "step": TEXT,
            "step_ms": COUNT,
            "times": {"type": "array", "items": _TIME},
            "series": {
                "type": "object",
                "properties": {name: ref("OneSeries") for name in SERIES},
                "additionalProperties": False,
            },
        }
    ),
    "Alert": object_shape(
        "*",
        {
            "id": TEXT,
            "severity": {"type": "string", "enum": ["warning", "critical"]},
            "title": TEXT,
            "text": TEXT,
            "todo": TEXT | {"description": "What to do."},
            "link": TEXT | {"description": "Where the dashboard shows more of it."},
            "topic": TEXT | {"description": "Which topic it is about; empty when it is about the server."},
            "since_ts": _TIME,
        },
    ),
    "Event": object_shape("*", {"at": _TIME, "kind": TEXT, "text": TEXT, "topic": TEXT}),
    "Overview": answer_shape(
        {
            "uptime_ms": COUNT,
            "now": {"type": "object", "additionalProperties": _NUMBER},
            "top_topics": {
                "type": "array",
                "items": object_shape("*", {"topic": TEXT, "records_per_s": _NUMBER}),
            },
            "storage": object_shape(
                "*",
                dict.fromkeys(("memory_bytes", "wal_bytes", "hot_bytes", "cold_bytes", "free_bytes"), COUNT),
            ),
            "logs": {
                "type": "array",
                "items": object_shape(
                    "*",
                    {"shard": COUNT, "healthy": FLAG, "error": TEXT, "queue_depth": COUNT, "queue_bytes": COUNT},
                ),
            },
            "alerts": {"type": "array", "items": ref("Alert")},
            "events": {"type": "array", "items": ref("Event"), "description": "The newest first."},
        }
    ),
    "SettingsAnswer": answer_shape(
        {
            "settings": {
                "type": "array",
                "items": object_shape(
                    "*",
                    {
                        "setting": TEXT,
                        "variable": TEXT,
                        "value": {"type": ["string", "integer", "boolean", "null"]},
                        "text": TEXT,
                        "default": TEXT,
                        "origin": TEXT | {"description": "A flag, a variable, `file` or `default`."},
                        "unit": TEXT,
                        "about": TEXT,
                    },
                ),
            }
        }
    ),
}
