"""All routes of a table as one query: each change is looked at once, and becomes a record for each route it matches.

    changes  ->  scope      the columns of the row, `before`, `after` and `op`, as WHERE and PARTITION BY see them
             ->  judged     for each route: does it match? Evaluating may fail, so each answer is one of four
             ->  records    an array of one struct a route, inlined: topic, key, tag, meta, data

A row for which an expression fails becomes a record of `<topic>.errors`, and the query goes on. No step moves a row
from one task to another, so what happened to a row is written in the order in which it happened.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from topics.errors import InvalidRequest
from topics.spark.pipeline.payloads import (
    AFTER_TEXT,
    BEFORE_TEXT,
    POSITION,
    ROW,
    TIME,
    complaint,
    envelope,
    key_text,
    meta,
    payload,
    spread_text,
)
from topics.spark.pipeline.stops import first_line
from topics.sql.sparktext import spark_name as quoted
from topics.sql.sparktext import spark_string as literal
from topics.tablemodel import TableRoute

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ERRORS: Final = ".errors"
"""What is behind the name of a topic for rows that could not be evaluated."""
CORRUPT: Final = "_corrupt"
"""The field of a row that was made of text and does not fit."""
UNREADABLE: Final = "_topics_unreadable"
OBSERVED: Final = "routes"
MATCH: Final = "_topics_match"
BY: Final = "_topics_by"
_YES: Final = "1"
_NO: Final = "0"
_FAILED: Final = "!"
_UNREADABLE: Final = "?"
_RESERVED: Final = frozenset({"op", "before", "after"})


@dataclass(frozen=True)
class RoutedTable:
    """What the routes of a table have in common."""

    name: str
    key: tuple[str, ...]
    columns: tuple[str, ...]
    """Those of a row."""
    has_texts: bool = False
    """Whether the rows also come as JSON text, as databases have them."""


def routed(changes: DataFrame, table: RoutedTable, routes: Sequence[TableRoute]) -> DataFrame:
    """The records that these routes make of changes: `topic`, `key`, `tag`, `meta`, `data`, observed as `routes`."""
    from pyspark.sql.functions import col, count_if, expr

    scope = _scope(changes, table)
    by_counts = [_checked(scope, table, route) for route in routes]
    judged = scope.select("*", *[expr(_judge(route)).alias(f"{MATCH}{at}") for at, route in enumerate(routes)])
    spread = judged.select(
        "*", *[expr(_spread(route, at, by_counts[at], table)).alias(f"{BY}{at}") for at, route in enumerate(routes)]
    )
    structs = ", ".join(_record(route, at, table) for at, route in enumerate(routes))
    records = spread.selectExpr(f"inline(array({structs}))").where("topic IS NOT NULL")
    counts = [
        count_if((col("route") == at) & (col("failed") == failed)).alias(f"{'errors' if failed else 'records'}{at}")
        for at in range(len(routes))
        for failed in (False, True)
    ]
    return records.observe(OBSERVED, *counts).select("topic", "key", "tag", "meta", "data")


def _scope(changes: DataFrame, table: RoutedTable) -> DataFrame:
    """The names that expressions may use, and ours, which begin with `_topics_`."""
    texts = [f"before_text AS {BEFORE_TEXT}", f"after_text AS {AFTER_TEXT}"] if table.has_texts else []
    rows = changes.selectExpr(
        "op",
        "before",
        "after",
        f"position AS {POSITION}",
        f"ts AS {TIME}",
        f"CASE WHEN op = 'delete' THEN before ELSE after END AS {ROW}",
        *texts,
    )
    unreadable = f"coalesce(before.{CORRUPT}, after.{CORRUPT})" if table.has_texts else "CAST(NULL AS STRING)"
    plain = [name for name in table.columns if name.lower() not in _RESERVED]
    return rows.selectExpr(
        "*", f"{unreadable} AS {UNREADABLE}", *[f"{ROW}.{quoted(name)} AS {quoted(name)}" for name in plain]
    )


def _checked(scope: DataFrame, table: RoutedTable, route: TableRoute) -> int:
    """By how many expressions a route spreads its records; what does not fit the table is refused with its place."""
    from pyspark.errors import AnalysisException, ParseException
    from pyspark.sql.types import BooleanType, NullType, StructType

    clause, text = "WHERE", route.where or "true"
    try:
        kind = scope.selectExpr(f"({text}) AS it").schema["it"].dataType
        if not isinstance(kind, BooleanType | NullType):
            raise _refuse(table, route, f"WHERE ({text}) is {kind.simpleString()}, and it has to be true or false")
        if route.partition_by is None:
            return 0
        clause, text = "PARTITION BY", route.partition_by
        found = scope.selectExpr(f"struct({text}) AS it").schema["it"].dataType
        assert isinstance(found, StructType)
        return len(found)
    except (AnalysisException, ParseException) as error:
        words = first_line(str(error)).split(" SQLSTATE")[0]
        raise _refuse(table, route, f"{clause} ({text}): {words}") from error


def _refuse(table: RoutedTable, route: TableRoute, reason: str) -> InvalidRequest:
    return InvalidRequest(
        f'the route of table "{table.name}" to topic "{route.topic}" on {route.operation} cannot run: {reason}; the '
        f"table has {', '.join(table.columns)}",
        table=table.name,
        topic=route.topic,
    )


def tried(text: str) -> str:
    """The value of a string expression, null when evaluating it fails."""
    # The one function of Spark that swallows what goes wrong within its argument and gives that back unchanged.
    return f"CAST(try_to_binary({text}, 'utf-8') AS STRING)"


def _judge(route: TableRoute) -> str:
    """One of the four answers, null for changes that this route is not about."""
    concerns = f"op = {literal(route.operation)}"
    if route.start == "now":
        concerns += f" AND {TIME} >= {route.declared_ms}"
    answer = tried(f"CASE WHEN ({route.where}) THEN '{_YES}' ELSE '{_NO}' END") if route.where else f"'{_YES}'"
    return (
        f"CASE WHEN {concerns} THEN CASE WHEN {UNREADABLE} IS NOT NULL THEN '{_UNREADABLE}' "
        f"ELSE coalesce({answer}, '{_FAILED}') END END"
    )


def _spread(route: TableRoute, at: int, count: int, table: RoutedTable) -> str:
    """What a matching change is spread by, behind a `=`; `~` for nothing, `!` when evaluating it fails."""
    value = f"coalesce(concat('=', {key_text(table.key)}), '~')"
    if route.partition_by is not None:
        text = f"coalesce(concat('=', {spread_text(route.partition_by, count)}), '~')"
        value = f"coalesce({tried(text)}, '{_FAILED}')"
    return f"CASE WHEN {MATCH}{at} = '{_YES}' THEN {value} END"


def _record(route: TableRoute, at: int, table: RoutedTable) -> str:
    """The record of one route, or that of its failure, or null."""
    reasons = [
        (f"{MATCH}{at} = '{_UNREADABLE}'", "the row does not fit the columns of its table"),
        (f"{MATCH}{at} = '{_FAILED}'", f"WHERE ({route.where}) cannot be evaluated for this row"),
        ("true", f"PARTITION BY ({route.partition_by}) cannot be evaluated for this row"),
    ]
    body = payload(route.payload, route.operation, table.key, table.columns, table.has_texts)
    data = envelope(table.name, route.operation, route.payload, body, table.key)
    failure = complaint(table.name, route.operation, route.topic, reasons, table.key, table.has_texts)
    spread_by = f"CASE WHEN startswith({BY}{at}, '=') THEN substr({BY}{at}, 2) END"
    fine = _struct(at, route.topic, spread_by, key_text(table.key), meta(table.columns), data, False)
    wrong = _struct(
        at, route.topic + ERRORS, key_text(table.key), key_text(table.key), "CAST(NULL AS STRING)", failure, True
    )
    failed = f"{MATCH}{at} IN ('{_FAILED}', '{_UNREADABLE}') OR {BY}{at} = '{_FAILED}'"
    return f"CASE WHEN {failed} THEN {wrong} WHEN {MATCH}{at} = '{_YES}' THEN {fine} END"


def _struct(at: int, topic: str, key: str, tag: str, meta_json: str, data: str, failed: bool) -> str:
    fields = {
        "route": str(at),
        "topic": literal(topic),
        "key": key,
        "tag": tag,
        "meta": meta_json,
        "data": data,
        "failed": str(failed).lower(),
    }
    return f"named_struct({', '.join(f'{literal(name)}, {value}' for name, value in fields.items())})"
