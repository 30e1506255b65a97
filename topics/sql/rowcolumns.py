"""Columns that an expression of a route asks a row for, and that its table does not have.

In such an expression a column is that of the row, `before.x` and `after.x` say of which image, and `op` is what
happened. What comes behind a column's own name are fields of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import exp

from topics.sql.grammar import Origin
from topics.sql.place import Place, wrong
from topics.sql.sparktext import to_spark
from topics.sql.tokens import Token, tokenize

_IMAGES = ("before", "after")
_OPERATION = "op"


def check(expressions: str, clause: str, columns: Sequence[str], table: str, origin: Origin) -> None:
    """`InvalidSql`, where the column stands behind a word of the statement, when the table has no such column."""
    unknown = _unknown(expressions, columns)
    if unknown is None:
        return
    place = _place(origin, clause, unknown)
    raise wrong(origin.text, place, f"table {table} has no column {unknown.name}", list(columns), origin.number)


@dataclass(frozen=True, slots=True)
class _Unknown:
    name: str
    nth: int
    """Which word of the expressions is this name, from 0."""


def _unknown(expressions: str, columns: Sequence[str]) -> _Unknown | None:
    known = {column.lower() for column in columns}
    tree = sqlglot.parse_one(f"SELECT {to_spark(expressions)}", dialect="spark")
    bound = {name.name.lower() for each in tree.find_all(exp.Lambda) for name in each.expressions}
    for column in tree.find_all(exp.Column):
        parts = [part.name for part in column.parts]
        image = parts[0].lower() in _IMAGES and parts[0].lower() not in known
        if image and len(parts) == 1:
            continue
        name = parts[1] if image else parts[0]
        if name.lower() not in known | bound | ({_OPERATION} if not image else set()):
            words = [token.text.lower() for token in tokenize(expressions)]
            return _Unknown(name, words.index(name.lower()))
    return None


def _place(origin: Origin, clause: str, unknown: _Unknown) -> Place:
    """Where that word of the expressions stands: they begin behind the parenthesis that follows the clause's word."""
    tokens = [token for token in tokenize(origin.text) if token.start >= origin.start]
    begin = _behind(tokens, clause)
    found = tokens[begin + unknown.nth]
    return Place(found.start, found.end)


def _behind(tokens: list[Token], clause: str) -> int:
    at = next(index for index, token in enumerate(tokens) if token.word == clause)
    return next(index for index, token in enumerate(tokens) if index > at and token.is_sign("(")) + 1
