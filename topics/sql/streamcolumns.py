"""Columns that a query asks a stream or a table for, and that it does not have: refused when a pipeline is declared.

Only what is certain is refused. A column that may come from a table whose columns nobody has told, a subquery, a
lateral view or a function is left to Spark, which knows all of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, traverse_scope

from topics.pipelinemodel import PipelineStream
from topics.sql.ddl import parse_columns
from topics.sql.place import Place
from topics.sql.reader import Reader
from topics.sql.sparktext import SparkText

COLUMNS = ("topic", "partition", "seq", "ts", "node", "tag", "meta", "data", "state", "attempts", "priority")
"""Of every topic; the last three of those that are handed out."""
VALUE = "value"
EVENT_TIME = "event_time"
"""The time by which a stream has a watermark, when that is no column of its own."""
_NAME = re.compile(r"`?\w+`?")
_MADE = frozenset({"window", "session_window"})
"""Columns that functions of the same name make in a query that groups by them."""


@dataclass(frozen=True, slots=True)
class _Source:
    """A stream or a table whose columns are known, all in small letters."""

    name: str
    columns: frozenset[str]
    fields: frozenset[str] = field(default_factory=frozenset)
    """What is within `value`, of a stream with a schema."""


def check(reader: Reader, made: SparkText, tree: exp.Query, streams: Mapping[str, PipelineStream]) -> None:
    known = {view: _of_stream(stream) for view, stream in streams.items()}
    known |= {name: _Source(name, frozenset(map(str.lower, found))) for name, found in reader.tables.items()}
    try:
        scopes = traverse_scope(tree)
    except SqlglotError:
        return
    for scope in scopes:
        _check_scope(reader, made, scope, known)


def _check_scope(reader: Reader, made: SparkText, scope: Scope, known: Mapping[str, _Source]) -> None:
    by_alias: dict[str, _Source] = {}
    # The columns of a scope are also those that subqueries within it may mean.
    nested = scope.is_subquery or bool(scope.subquery_scopes)
    closed = not nested and not scope.expression.args.get("laterals")
    for alias, source in scope.sources.items():
        name = ".".join(part.name for part in source.parts) if isinstance(source, exp.Table) else ""
        found = known.get(name)
        if found is None:
            closed = False
        else:
            own = isinstance(source, exp.Table) and not source.alias
            by_alias[(found.name.rpartition(".")[2] if own else alias).lower()] = found
    named = {each.alias.lower() for each in getattr(scope.expression, "selects", ()) if each.alias}
    for column in scope.columns:
        parts = [part.name.lower() for part in column.parts]
        if parts[0] in by_alias and len(parts) > 1:
            _check_column(reader, made, column, [by_alias[parts[0]]], parts[1:], 1)
        elif closed and by_alias and parts[0] not in named and parts[0] not in _MADE:
            _check_column(reader, made, column, list(by_alias.values()), parts, 0)


def _check_column(
    reader: Reader, made: SparkText, column: exp.Column, sources: list[_Source], parts: list[str], at: int
) -> None:
    having = [source for source in sources if parts[0] in source.columns]
    if not having:
        hint = "; SCHEMA '…' behind the name of a topic makes a column value" if parts[0] == VALUE else ""
        names = " and ".join(source.name for source in sources) + (" has" if len(sources) == 1 else " have")
        expected = sorted({name for source in sources for name in source.columns})
        raise reader.fail(f"{names} no column {parts[0]}{hint}", _place(made, column, at), expected)
    fields = {name for source in having for name in source.fields}
    if parts[0] == VALUE and len(parts) > 1 and fields and parts[1] not in fields:
        raise reader.fail(f"the schema has no field {parts[1]}", _place(made, column, at + 1), sorted(fields))


def _of_stream(stream: PipelineStream) -> _Source:
    timed = stream.watermark and not _NAME.fullmatch(stream.watermark)
    columns = {*COLUMNS, *([EVENT_TIME] if timed else [])}
    if not stream.schema:
        return _Source(stream.topic, frozenset(columns))
    fields = frozenset(column.name.lower() for column in parse_columns(stream.schema))
    return _Source(stream.topic, frozenset(columns | {VALUE, "_corrupt"}), fields)


def _place(made: SparkText, column: exp.Column, at: int) -> Place:
    part = column.parts[min(at, len(column.parts) - 1)]
    return made.place(int(part.meta.get("start", 0)))
