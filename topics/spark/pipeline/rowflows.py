"""Records as rows of a table: what MERGE and APPEND write that have no query of their own.

A record that is a change (its meta says so) is what it says: its payload is the row, its operation whether that row is
there or gone. Any other record's data is the row. A record that does not fit the columns stops the pipeline, with its
place: a table that left it out would not be what the topic says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from topics.errors import InvalidRequest
from topics.sql.envelope import CHANGE_TYPE
from topics.sql.sparktext import spark_name as quoted
from topics.sql.sparktext import spark_string as literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

GONE: Final = "_topics_gone"
"""Of a row that is written: whether it is to be deleted."""
_CHANGE: Final = "_topics_change"
_PARSED: Final = "_topics_parsed"
_CORRUPT: Final = "_topics_corrupt"
_OPTIONS: Final = f"map('mode', 'PERMISSIVE', 'columnNameOfCorruptRecord', '{_CORRUPT}')"


def as_rows(records: DataFrame, columns: StructType, *, where: str, gone_when: str, merges: bool) -> DataFrame:
    """The rows that records of a topic are, with `GONE` where the table is merged into."""
    marked = records.selectExpr(
        "*", f"coalesce(get_json_object(meta, '$.content-type') = {literal(CHANGE_TYPE)}, false) AS {_CHANGE}"
    )
    ddl = ", ".join(
        [*(f"{quoted(each.name)} {each.dataType.simpleString()}" for each in columns), f"{_CORRUPT} string"]
    )
    body = f"CASE WHEN {_CHANGE} THEN get_json_object(data, '$.payload') ELSE data END"
    parsed = marked.selectExpr("*", f"from_json({body}, {literal(ddl)}, {_OPTIONS}) AS {_PARSED}")
    shown = [each.name for each in columns if each.name not in records.columns]
    scope = parsed.selectExpr("*", *[f"{_PARSED}.{quoted(name)} AS {quoted(name)}" for name in shown])
    if where:
        scope = scope.where(where)
    removed = f"{_CHANGE} AND get_json_object(data, '$.op') = 'delete'"
    if gone_when:
        removed = f"({removed}) OR (NOT {_CHANGE} AND coalesce(({gone_when}), false))"
    chosen = [f"{_checked(merges)}.{quoted(each.name)} AS {quoted(each.name)}" for each in columns]
    return scope.selectExpr(*chosen, *([f"{removed} AS {GONE}"] if merges else []))


def _checked(merges: bool) -> str:
    """The parsed row, or an end with the reason why there is none."""
    place = "concat('topic ', topic, ', partition ', CAST(partition AS STRING), ', seq ', CAST(seq AS STRING), ': ')"
    misfit = literal("the record does not fit the columns of the pipeline: ")
    partial = literal(
        "the record is a change whose payload is not the whole row: give its route WITH (payload = 'full')"
    )
    mode = "get_json_object(data, '$.payload_mode')"
    kept = f"{mode} = 'key' AND get_json_object(data, '$.op') = 'delete'" if merges else "false"
    return (
        f"(CASE WHEN {_CHANGE} AND NOT ({mode} = 'full' OR ({kept})) THEN raise_error(concat({place}, {partial})) "
        f"WHEN {_PARSED} IS NULL OR {_PARSED}.{_CORRUPT} IS NOT NULL THEN raise_error(concat({place}, {misfit}, data)) "
        f"ELSE {_PARSED} END)"
    )


def refuse_without_columns(pipeline: str, topic: str) -> InvalidRequest:
    return InvalidRequest(
        f'pipeline "{pipeline}" writes a table that is not there yet, and no columns are known: say STREAM {topic} '
        "SCHEMA 'id bigint, …'",
        pipeline=pipeline,
        expected="SCHEMA 'ddl'",
    )
