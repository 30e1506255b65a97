"""The statements of an outbox in SQLite. Pure: names in, text out.

A trigger names the columns of its table, so one that has got more needs new triggers: `topics cdc install` again.
SQLite has one writer at a time, so ids are given in the order of commits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from topics.cdc.outbox import OUTBOX

OPERATIONS = ("insert", "update", "delete")
_COMMENT = re.compile(r"/\* key: (\[.*\]) \*/")
_NOW_MS = "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    declared: str
    """Its type, as the table was made with."""


def name(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def trigger_name(table: str, operation: str) -> str:
    return f"topics_capture_{operation}_{table}"


def outbox() -> list[str]:
    return [
        f"CREATE TABLE IF NOT EXISTS {OUTBOX} (\n"
        "    id INTEGER PRIMARY KEY AUTOINCREMENT,\n"
        "    ts INTEGER NOT NULL,\n"
        "    table_name TEXT NOT NULL,\n"
        "    op TEXT NOT NULL CHECK (op IN ('insert', 'update', 'delete')),\n"
        "    key TEXT NOT NULL,\n"
        "    before TEXT,\n"
        "    after TEXT\n"
        ")",
        f"CREATE INDEX IF NOT EXISTS {OUTBOX}_place ON {OUTBOX} (table_name, id)",
    ]


def trigger(table: str, operation: str, key: Sequence[str], columns: Sequence[Column]) -> str:
    """The trigger for one operation. The same columns make the same text, by which a new one is told from an old."""
    newest = "OLD" if operation == "delete" else "NEW"
    before = "NULL" if operation == "insert" else image("OLD", columns)
    after = "NULL" if operation == "delete" else image("NEW", columns)
    parts = [column for each in key for column in columns if column.name == each]
    return (
        f"CREATE TRIGGER {name(trigger_name(table, operation))} AFTER {operation.upper()} ON {name(table)} BEGIN\n"
        f"    {_comment(key)}\n"
        f"    INSERT INTO {OUTBOX} (ts, table_name, op, key, before, after) VALUES (\n"
        f"        {_NOW_MS}, {literal(table)}, '{operation}',\n"
        f"        {image(newest, parts)},\n"
        f"        {before},\n"
        f"        {after}\n"
        "    );\n"
        "END"
    )


def key_in(trigger_text: str) -> tuple[str, ...]:
    """The key that a trigger was made with."""
    found = _COMMENT.search(trigger_text)
    return tuple(json.loads(found[1])) if found else ()


def _comment(key: Sequence[str]) -> str:
    # A slash may be escaped in JSON, so that no name ends the comment.
    return f"/* key: {json.dumps(list(key)).replace('/', chr(92) + '/')} */"


def image(row: str, columns: Sequence[Column]) -> str:
    """A row as JSON. JSON has no bytes, they are hexadecimal text; SQLite has no booleans, they are numbers in it."""
    return f"json_object({', '.join(f'{literal(each.name)}, {_value(row, each)}' for each in columns)})"


def _value(row: str, column: Column) -> str:
    value = f"{row}.{name(column.name)}"
    if spark_type(column.declared) == "boolean":
        return f"json(CASE WHEN {value} IS NULL THEN 'null' WHEN {value} THEN 'true' ELSE 'false' END)"
    return f"CASE typeof({value}) WHEN 'blob' THEN hex({value}) ELSE {value} END"


def spark_type(declared: str) -> str:
    """The type of Spark that holds what a column is declared as, by the rules of SQLite's affinities."""
    word = declared.upper()
    if "BOOL" in word:
        return "boolean"
    if "INT" in word:
        return "bigint"
    if any(part in word for part in ("REAL", "FLOA", "DOUB")):
        return "double"
    return "string"
