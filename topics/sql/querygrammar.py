"""SELECT: taken as it is, but for parameters, which are numbered, and backticks, which become double quotes.

What it means is DuckDB's to say. What is checked here is that sqlglot reads it as one query without a word that
changes anything; `query.py` then finds its tables.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

from topics.sql import query
from topics.sql.place import Place
from topics.sql.quoting import requoted
from topics.sql.reader import PARAMETER, Reader
from topics.sql.statements import Select
from topics.sql.tokens import Kind, Token

_FIRST = {"SELECT", "WITH", "FROM"}


def begins(token: Token) -> bool:
    """Whether a statement that begins with this token is a query."""
    return token.word in _FIRST or token.is_sign("(")


def select(reader: Reader) -> Select:
    """All that is left of a statement."""
    tokens: list[Token] = []
    values: list[object] = []
    numbered: dict[int, str] = {}
    while not reader.done:
        token = reader.token
        assert token is not None
        if token.kind is Kind.PARAMETER:
            value, place = reader.literal(PARAMETER)
            _check(reader, value, place)
            values.append(value)
            numbered[token.start] = f"${len(values)}"
        else:
            reader.next()
        tokens.append(token)
    text = requoted(reader.text, tokens, numbered)
    try:
        query.parse(text)
    except query.NotAQuery as error:
        at = error.at if error.at is not None else 0
        # Numbering and quotes may have moved a word by a few characters; a place is that of the word that is there.
        start = min(tokens[0].start + at, tokens[-1].end - 1)
        near = next((token for token in tokens if token.end > start), tokens[-1])
        raise reader.fail(str(error), Place(near.start, near.end), error.expected) from error
    return Select(text, tuple(values))


def _check(reader: Reader, value: object, place: Place) -> None:
    if isinstance(value, list):
        for each in value:
            _check(reader, each, place)
    elif value is not None and not isinstance(value, str | int | float | bool | bytes | Decimal | datetime | date):
        raise reader.fail("a query takes strings, numbers, TRUE, FALSE, NULL and lists", place, ["such a value"])
