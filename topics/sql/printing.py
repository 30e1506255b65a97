"""A statement as text, which reads back as the same statement."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import assert_never

from topics.core.source import Operation, PayloadMode, RouteStart
from topics.groupmodel import Start, StartKind
from topics.sql import pipelineprinting
from topics.sql.pipelinestatements import CatalogStatement
from topics.sql.quoting import quoted_name, quoted_string
from topics.sql.statements import (
    AckGroup,
    AddSource,
    AlterTopic,
    Cell,
    ClearTopic,
    Consume,
    CreateTopic,
    Describe,
    DropGroup,
    DropSource,
    DropTopic,
    Explain,
    ExtendGroup,
    Insert,
    Json,
    NackGroup,
    PauseGroup,
    ResetGroup,
    Select,
    Show,
    Statement,
    Value,
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_text(statement: Statement) -> str:
    """One statement, without a semicolon. Values that came as parameters are literals in it, but for a query's."""
    if isinstance(statement, CatalogStatement):
        return pipelineprinting.to_text(statement)
    match statement:
        case CreateTopic():
            exists = "IF NOT EXISTS " if statement.if_not_exists else ""
            options = f" WITH {_options(statement.options)}" if statement.options else ""
            return f"CREATE TOPIC {exists}{quoted_name(statement.topic)}{options}"
        case AlterTopic():
            return f"ALTER TOPIC {quoted_name(statement.topic)} SET {_options(statement.options)}"
        case AddSource():
            return _add_source(statement)
        case DropSource():
            on = f" ON {_operations(statement.operations)}" if statement.operations else ""
            return f"ALTER TOPIC {quoted_name(statement.topic)} DROP SOURCE {quoted_name(statement.table)}{on}"
        case DropTopic():
            return f"DROP TOPIC {'IF EXISTS ' if statement.if_exists else ''}{quoted_name(statement.topic)}"
        case ClearTopic():
            return f"CLEAR TOPIC {quoted_name(statement.topic)}{_partition(statement.partition)}"
        case Insert():
            return _insert(statement)
        case Consume():
            return _consume(statement)
        case AckGroup():
            return f"ACK {_claim(statement)} UPTO OFFSET {statement.upto}"
        case NackGroup():
            since = f" FROM OFFSET {statement.since}" if statement.since else ""
            delay = f" DELAY {statement.delay_ms}" if statement.delay_ms else ""
            return f"NACK {_claim(statement)}{since} UPTO OFFSET {statement.upto}{delay}"
        case ExtendGroup():
            time = f" FOR {statement.visibility_ms}" if statement.visibility_ms is not None else ""
            return f"EXTEND {_claim(statement)} UPTO OFFSET {statement.upto}{time}"
        case PauseGroup():
            verb = "PAUSE" if statement.paused else "RESUME"
            return f"{verb} GROUP {quoted_string(statement.group)} ON {quoted_name(statement.topic)}"
        case ResetGroup():
            on = f"{quoted_string(statement.group)} ON {quoted_name(statement.topic)}{_partition(statement.partition)}"
            return f"RESET GROUP {on} TO {_start(statement.start)}"
        case DropGroup():
            return f"DROP GROUP {quoted_string(statement.group)} ON {quoted_name(statement.topic)}"
        case Show():
            on = f" ON {quoted_name(statement.topic)}" if statement.topic is not None else ""
            like = f" LIKE {quoted_string(statement.like)}" if statement.like is not None else ""
            return f"SHOW {statement.what.value}{on}{like}"
        case Describe():
            return f"DESCRIBE TOPIC {quoted_name(statement.topic)}"
        case Select():
            return statement.text
        case Explain():
            return f"EXPLAIN {to_text(statement.statement)}"
        case _:
            assert_never(statement)


def _add_source(statement: AddSource) -> str:
    parts = [
        f"ALTER TOPIC {quoted_name(statement.topic)} ADD SOURCE {quoted_name(statement.table)}",
        f"ON {_operations(statement.operations)}",
    ]
    if statement.start is not None:
        version = f" {statement.start_version}" if statement.start is RouteStart.VERSION else ""
        parts.append(f"FROM {statement.start.upper()}{version}")
    if statement.where is not None:
        parts.append(f"WHERE ({statement.where})")
    if statement.partition_by is not None:
        parts.append(f"PARTITION BY ({statement.partition_by})")
    if statement.payload is not PayloadMode.KEY:
        parts.append(f"WITH (payload = '{statement.payload.value}')")
    return " ".join(parts)


def _insert(statement: Insert) -> str:
    rows = ", ".join(f"({', '.join(map(_cell, row))})" for row in statement.rows)
    key = f" KEY {quoted_string(statement.key)}" if statement.key is not None else ""
    where = f"{quoted_name(statement.topic)}{_partition(statement.partition)}{key}"
    return f"INSERT INTO TOPIC {where} ({', '.join(statement.columns)}) VALUES {rows}"


def _consume(statement: Consume) -> str:
    group = "" if statement.group is None else _group(statement.group, statement.consumer)
    start = "" if statement.start is None else f" FROM {_start(statement.start)}"
    limit = "" if statement.limit is None else f" LIMIT {statement.limit}"
    wait = f" WAIT {statement.wait_ms}" if statement.wait_ms else ""
    return f"CONSUME FROM {quoted_name(statement.topic)}{_partition(statement.partition)}{group}{start}{limit}{wait}"


def _claim(statement: AckGroup | NackGroup | ExtendGroup) -> str:
    group = _group(statement.group, statement.consumer)
    return f"{quoted_name(statement.topic)}{group}{_partition(statement.partition or None)}"


def _group(group: str, consumer: str) -> str:
    named = f" CONSUMER {quoted_string(consumer)}" if consumer else ""
    return f" GROUP {quoted_string(group)}{named}"


def _partition(partition: int | None) -> str:
    return "" if partition is None else f" PARTITION {partition}"


def _operations(operations: tuple[Operation, ...]) -> str:
    return ", ".join(operation.value.upper() for operation in operations)


def _start(start: Start) -> str:
    match start.kind:
        case StartKind.EARLIEST | StartKind.LATEST:
            return start.kind.value.upper()
        case StartKind.SEQ:
            return f"OFFSET {start.value}"
        case StartKind.TS:
            try:
                time = (_EPOCH + timedelta(milliseconds=start.value)).isoformat(sep=" ", timespec="milliseconds")
            except OverflowError:
                return f"TIMESTAMP {start.value}"
            return f"TIMESTAMP {quoted_string(time)}"
        case _:
            assert_never(start.kind)


def _options(options: tuple[tuple[str, Value], ...]) -> str:
    return f"({', '.join(f'{name} = {_value(value)}' for name, value in options)})"


def _value(value: Value) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case str():
            return quoted_string(value)
        case tuple():
            return f"({', '.join(map(_value, value))})"
        case _:
            return repr(value)


def _cell(cell: Cell) -> str:
    match cell:
        case None:
            return "NULL"
        case Json():
            return quoted_string(cell.text.decode())
        case str():
            return quoted_string(cell)
        case _:
            assert_never(cell)
