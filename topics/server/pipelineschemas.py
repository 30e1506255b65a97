"""The shapes of tables and pipelines for the OpenAPI document."""

from __future__ import annotations

from topics.limits import PIPELINE_BYTES_MAX, REPORT_LINES_MAX, REPORT_ROUTES_MAX, TRIGGER_MS_MAX, U32_MAX
from topics.pipelinemodel import PipelineCondition, PipelineKind, RunState
from topics.server.shapes import COUNT, FLAG, NAME, STAMP, TEXT, Schema, answer_shape, object_shape, question_shape, ref
from topics.tablemodel import TableFormat

TABLE: Schema = {
    "name": "table",
    "in": "path",
    "required": True,
    "description": "The name that the table is registered under.",
    "schema": NAME,
}
PIPELINE: Schema = {
    "name": "pipeline",
    "in": "path",
    "required": True,
    "description": "The name of the pipeline; of the routes of a table, `routes:` and the name of the table.",
    "schema": NAME,
}

_TEXTS: Schema = {"type": "array", "items": TEXT}
_MAYBE_TEXT: Schema = {"type": ["string", "null"]}
_MAYBE_COUNT: Schema = {"type": ["integer", "null"], "minimum": 0}
_RATE: Schema = {"type": "number", "minimum": 0}
_TIME: Schema = {"type": "integer", "description": "Milliseconds since the epoch."}

_TABLE_CONFIG: dict[str, Schema] = {
    "format": {"type": "string", "enum": [each.value for each in TableFormat]},
    "location": TEXT | {"description": "A path, or an address without a password."},
    "location_env": TEXT | {"description": "Instead: the environment variable of the runner that holds it."},
    "source": TEXT | {"description": "What the database itself calls the table; empty is the registered name."},
    "key": _TEXTS | {"description": "The columns that identify a row; only files may have none."},
    "columns": {"type": "array", "items": ref("TableColumn"), "description": "As they were when somebody looked."},
    "options": {"type": "object", "additionalProperties": TEXT, "description": "How Spark reads files."},
}
_TABLE: dict[str, Schema] = {
    "table": NAME,
    **_TABLE_CONFIG,
    "created_ts": _TIME,
    "changed_ts": _TIME,
    "routes": {"type": "array", "items": ref("TableRoute")},
}
_OPTIONS: dict[str, Schema] = {
    "trigger_ms": {"type": "integer", "minimum": 0, "maximum": TRIGGER_MS_MAX, "default": 500},
    "checkpoint": TEXT,
    "starting": {"type": "string", "enum": ["earliest", "latest"], "default": "earliest"},
    "output_mode": {"type": "string", "enum": ["append", "update", "complete"], "default": "append"},
    "max_records": {"type": "integer", "minimum": 0, "maximum": U32_MAX, "default": 0},
}
_LAG: dict[str, Schema] = {
    "lag_versions": _MAYBE_COUNT | {"description": "Of a table: versions not yet read."},
    "lag_records": _MAYBE_COUNT | {"description": "Records, or changes, not yet read, as far as that is known."},
    "lag_ms": _MAYBE_COUNT | {"description": "How long the oldest of them has been waiting."},
}
_REPORT: dict[str, Schema] = {
    "runner": {"type": "string", "minLength": 1, "description": "Who says so: one name a process."},
    "state": {"type": "string", "enum": [each.value for each in RunState]},
    "position": TEXT | {"description": "In words."},
    **_LAG,
    "input_rows_per_second": _RATE,
    "output_rows_per_second": _RATE,
    "input_rows_total": COUNT,
    "output_rows_total": COUNT,
    "error_rows_total": COUNT | {"description": "Rows that could not be evaluated; they are in `<topic>.errors`."},
    "batch_id": _MAYBE_COUNT,
    "batch_ms": _MAYBE_COUNT | {"description": "How long the last batch took."},
    "restarts": COUNT,
    "last_error": _MAYBE_TEXT,
    "last_error_ts": STAMP,
    "spark_ui": _MAYBE_TEXT,
    "digest": TEXT | {"description": "`digest` of the definition that is being run."},
    "routes": {"type": "array", "items": ref("RouteProgress"), "maxItems": REPORT_ROUTES_MAX},
}
_PIPELINE: dict[str, Schema] = {
    "pipeline": NAME,
    "kind": {"type": "string", "enum": [each.value for each in PipelineKind]},
    "condition": {"type": "string", "enum": [each.value for each in PipelineCondition]},
    "paused": FLAG | {"description": "Whether it is to rest."},
    "created_ts": _TIME,
    "changed_ts": _TIME,
    "number": COUNT | {"description": "No other pipeline ever had it; whoever runs it keeps positions under it."},
    "digest": TEXT | {"description": "Another one whenever the definition is, or that of a table it reads."},
    "config": {"oneOf": [ref("PipelineConfig"), {"type": "null"}], "description": "Null for the routes of a table."},
    "table": _MAYBE_TEXT | {"description": "The table whose routes these are."},
    "reported_ts": STAMP,
    "report": {"oneOf": [ref("PipelineReport"), {"type": "null"}], "description": "The last that its runner said."},
}
_MORE: dict[str, Schema] = {"next_cursor": TEXT | {"description": "There while there are more."}}

COMPONENTS: dict[str, Schema] = {
    "TableColumn": object_shape(
        "name type", {"name": TEXT, "type": TEXT | {"description": "In the words of Spark."}, "nullable": FLAG}
    ),
    "TableConfig": question_shape(_TABLE_CONFIG, "Unknown fields are ignored.", "format"),
    "TableRoute": object_shape(
        "*",
        {
            "topic": NAME,
            "operation": {"type": "string", "enum": ["insert", "update", "delete"]},
            "payload": {"type": "string", "enum": ["key", "full", "diff"]},
            "where": _MAYBE_TEXT,
            "partition_by": _MAYBE_TEXT,
            "start": {"type": "string", "enum": ["now", "snapshot", "version"]},
            "start_version": COUNT,
            "declared_ms": _TIME,
            "number": COUNT,
        },
    ),
    "TablePut": answer_shape({"created": FLAG} | _TABLE),
    "TableState": answer_shape(_TABLE),
    "TableSummary": object_shape("table format", _TABLE | {"route_count": COUNT}),
    "TableList": answer_shape({"tables": {"type": "array", "items": ref("TableSummary")}}, _MORE),
    "TableDropped": answer_shape({"table": NAME, "deleted": FLAG}),
    "PipelineDefinition": object_shape(
        "definition",
        {
            "definition": {
                "type": "string",
                "maxLength": PIPELINE_BYTES_MAX,
                "description": "What stands behind AS in CREATE PIPELINE.",
            },
            "options": object_shape("", _OPTIONS),
        },
    ),
    "PipelineConfig": object_shape(
        "*",
        {
            "kind": _PIPELINE["kind"],
            "definition": TEXT,
            "topic": TEXT,
            "path": TEXT,
            "key": _TEXTS,
            "partition_by": TEXT,
            "delete_when": TEXT,
            "sql": TEXT | {"description": "The query as Spark runs it, over the views below."},
            "where": TEXT,
            "streams": {
                "type": "array",
                "items": object_shape("*", dict.fromkeys(("view", "topic", "schema", "watermark", "delay"), TEXT)),
            },
            "tables": {"type": "array", "items": object_shape("*", {"view": TEXT, "table": TEXT})},
            "options": object_shape("*", _OPTIONS),
        },
    ),
    "RouteProgress": object_shape(
        "topic operation",
        {
            "topic": TEXT,
            "operation": TEXT,
            "number": COUNT,
            "position": TEXT,
            **_LAG,
            "records_total": COUNT,
            "errors_total": COUNT,
        },
    ),
    "LogLine": object_shape(
        "*",
        {
            "ts": _TIME,
            "level": {"type": "string", "enum": ["debug", "info", "warning", "error"]},
            "message": TEXT,
        },
    ),
    "PipelineNudge": object_shape("", {}, "There is nothing to say; a body is not looked at."),
    "PipelineReport": object_shape("runner state", _REPORT),
    "PipelineReported": object_shape(
        "runner state",
        _REPORT | {"logs": {"type": "array", "items": ref("LogLine"), "maxItems": REPORT_LINES_MAX}},
    ),
    "PipelineOrders": answer_shape(
        {
            "pipeline": NAME,
            "exists": FLAG | {"description": "False: it was dropped."},
            "paused": FLAG,
            "digest": TEXT | {"description": "Another one than in the report: read the definition again."},
        }
    ),
    "PipelinePut": answer_shape({"created": FLAG} | _PIPELINE),
    "PipelineState": answer_shape(_PIPELINE),
    "PipelineSummary": object_shape("*", _PIPELINE),
    "PipelineList": answer_shape(
        {
            "pipelines": {"type": "array", "items": ref("PipelineSummary")},
            "digest": TEXT | {"description": "Another one whenever a definition is, or one comes, goes or rests."},
        },
        _MORE,
    ),
    "PipelineLogs": answer_shape({"pipeline": NAME, "logs": {"type": "array", "items": ref("LogLine")}}),
    "PipelineDropped": answer_shape({"pipeline": NAME, "deleted": FLAG}),
}
