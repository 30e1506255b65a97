"""Where the records of a topic come from besides writers: changes of tables.

A source is one pair of a table and an operation; a topic has each pair once. What is stored is a description: which
rows, what a record holds of them, and by what they are spread over partitions. Expressions are text here, checked for
their form by whoever takes them in and evaluated where the table is read.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

import msgspec

from topics.core.names import shorten
from topics.errors import InvalidRequest, NotFound
from topics.limits import NAME_BYTES_MAX, SOURCE_EXPRESSION_BYTES_MAX, SOURCES_MAX


class Operation(StrEnum):
    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


class PayloadMode(StrEnum):
    """What a record holds of a row: its key, all of it, or what changed."""

    KEY = "key"
    FULL = "full"
    DIFF = "diff"


class RouteStart(StrEnum):
    """Where a new source begins."""

    NOW = "now"
    """With changes that are committed after it was declared."""
    SNAPSHOT = "snapshot"
    """With all rows that are there, and then every change after that."""
    VERSION = "version"


class Source(msgspec.Struct, frozen=True, gc=False):
    """Changes of one kind to one table become records. Stored as a map by field name, as a topic's config is."""

    table: str
    operation: Operation
    payload: PayloadMode = PayloadMode.KEY
    where: str | None = None
    partition_by: str | None = None
    start: RouteStart = RouteStart.NOW
    start_version: int = 0
    """With `VERSION`: the first that counts."""
    declared_ms: int = 0
    """What `NOW` is."""
    number: int = 0
    """No other source ever had it: who reads the table keeps its position under this number."""


Sources = tuple[Source, ...]


def added(topic: str, existing: Sources, new: Iterable[Source]) -> Sources:
    """The sources with these among them, each in the place of one for the same table and operation."""
    by_pair = {_pair(source): source for source in existing}
    for source in new:
        _check(source)
        by_pair[_pair(source)] = source
    if len(by_pair) > SOURCES_MAX:
        raise InvalidRequest(
            f'topic "{topic}" would have {len(by_pair)} sources, of {SOURCES_MAX} at most; drop some',
            topic=topic,
            max=SOURCES_MAX,
        )
    return tuple(by_pair[pair] for pair in sorted(by_pair))


def begun(existing: Sources, new: Iterable[Source], start: RouteStart | None, now_ms: int, number: int) -> Sources:
    """New sources with where they begin. One that replaces another goes on from there, unless `start` is said."""
    by_pair = {_pair(source): source for source in existing}
    found: list[Source] = []
    for each in new:
        before = by_pair.get(_pair(each)) if start is None else None
        if before is not None:
            place = before.start, before.start_version, before.declared_ms, before.number
        else:
            place = start or RouteStart.NOW, each.start_version, now_ms, number + len(found)
        start_kind, version, declared_ms, own = place
        found.append(
            msgspec.structs.replace(each, start=start_kind, start_version=version, declared_ms=declared_ms, number=own)
        )
    return tuple(found)


def without(topic: str, existing: Sources, table: str, operations: Iterable[Operation]) -> Sources:
    """The sources without these; each operation that is named has to be there."""
    gone = {(table, operation) for operation in operations} or {_pair(each) for each in existing if each.table == table}
    missing = sorted(gone - {_pair(source) for source in existing})
    if missing or not gone:
        on = f" on {', '.join(operation for _, operation in missing)}" if missing else ""
        raise NotFound(f'topic "{topic}" has no source "{shorten(table)}"{on}', topic=topic, table=shorten(table))
    return tuple(source for source in existing if _pair(source) not in gone)


def _pair(source: Source) -> tuple[str, Operation]:
    return source.table, source.operation


def _check(source: Source) -> None:
    if not 1 <= len(source.table.encode()) <= NAME_BYTES_MAX:
        raise InvalidRequest(f"the name of a table has 1 to {NAME_BYTES_MAX} bytes", field="table")
    for field in ("where", "partition_by"):
        text = getattr(source, field)
        if text is not None and len(text.encode()) > SOURCE_EXPRESSION_BYTES_MAX:
            raise InvalidRequest(f"an expression has at most {SOURCE_EXPRESSION_BYTES_MAX} bytes", field=field)
