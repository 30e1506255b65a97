"""The system tables: what each is called, and the columns it has. Who makes them and who shows them agree on this."""

from __future__ import annotations

from topics.errors import InvalidSql
from topics.sqlmodel import SqlColumn

TEXT = "VARCHAR"
JSON = "JSON"
WHOLE = "BIGINT"
LARGE = "UBIGINT"
FLAG = "BOOLEAN"
REAL = "DOUBLE"
TIME = "TIMESTAMP WITH TIME ZONE"

_COLUMNS: dict[str, str] = {
    "topics": "topic_id name alias type partitions:B retention_seconds:R retention_max_bytes:U durability records:B "
    "bytes:B created_at:T updated_at:T routes:J config:J",
    "partitions": "topic_id partition_id:B head_offset:B earliest_offset:B evict_floor:B records:B bytes:B "
    "last_write_at:T",
    "topic_routes": "topic_id table_id op payload_mode filter_expr partition_key_expr start_from position "
    "lag_versions:B lag_records:B lag_seconds:R records:B errors:B",
    "tables": "table_id format location location_env source key_columns:J columns:J options:J routes:B created_at:T "
    "changed_at:T",
    "pipelines": "pipeline_id kind condition paused:F target sources:J definition position lag_versions:B "
    "lag_records:B lag_seconds:R input_rows_per_second:R output_rows_per_second:R input_rows:B output_rows:B "
    "error_rows:B restarts:B last_error last_error_at:T spark_ui runner reported_at:T created_at:T changed_at:T",
    "topic_offsets": "topic_id group_id partition_id:B last_acked_offset:B updated_at:T",
    "groups": "topic_id group_id partition_id:B committed_offset:B head_offset:B lag:B claimed:B consumers:B "
    "oldest_unacked_at:T paused:F",
    "queues": "topic_id partition_id:B ready:B in_flight:B delayed:B dead_lettered:B dead_letter",
    "heaps": "topic_id partition_id:B mode ready:B in_flight:B delayed:B dead_lettered:B dead_letter records:B bytes:B",
    "metrics": "name labels:J value:R",
}
"""Names of columns; text, unless a letter behind the colon says otherwise."""
_TYPES = {"": TEXT, "B": WHOLE, "U": LARGE, "R": REAL, "T": TIME, "J": JSON, "F": FLAG}

NAMES = tuple(_COLUMNS)


def columns_of(name: str) -> tuple[SqlColumn, ...]:
    """The columns of a system table; `InvalidSql` when there is none of that name."""
    if name not in _COLUMNS:
        raise InvalidSql(
            f"there is no table system.{name}; there are {', '.join(f'system.{each}' for each in NAMES)}",
            expected=[f"system.{each}" for each in NAMES],
        )
    parts = [word.partition(":") for word in _COLUMNS[name].split()]
    return tuple(SqlColumn(word, _TYPES[kind]) for word, _, kind in parts)
