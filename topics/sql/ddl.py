"""Columns in the words of Spark: `id bigint, body string NOT NULL`."""

from __future__ import annotations

from collections.abc import Iterable

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from topics.sql.sparktext import spark_name
from topics.tablemodel import TableColumn


def parse_columns(text: str) -> tuple[TableColumn, ...]:
    """The columns; `ValueError` says why these are none."""
    try:
        tree = sqlglot.parse_one(f"CREATE TABLE t ({text})", dialect="spark")
    except (SqlglotError, ValueError, RecursionError) as error:
        raise ValueError("it is not understood") from error
    if text.rstrip().endswith(","):
        raise ValueError("a column is missing behind the last comma")
    made = tree.this if isinstance(tree, exp.Create) else None
    if not isinstance(made, exp.Schema) or not made.expressions:
        raise ValueError("it is not understood")
    return tuple(map(_column, made.expressions))


def to_ddl(columns: Iterable[TableColumn]) -> str:
    return ", ".join(
        f"{spark_name(column.name)} {column.type}{'' if column.nullable else ' NOT NULL'}" for column in columns
    )


def _column(definition: exp.Expr) -> TableColumn:
    named = isinstance(definition, exp.ColumnDef) and isinstance(definition.this, exp.Identifier)
    kind = definition.args.get("kind") if named else None
    if kind is None:
        raise ValueError(f"{definition.sql('spark')} has no type")
    constraints = [each.kind for each in definition.args.get("constraints") or ()]
    not_null = any(isinstance(each, exp.NotNullColumnConstraint) for each in constraints)
    text = kind.sql("spark")
    # Names of fields are as they are; names of types are the same in any case.
    return TableColumn(definition.name, text if "<" in text else text.lower(), not not_null)
