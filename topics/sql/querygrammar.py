"""SELECT: taken as it is, but for parameters, which are numbered, and backticks, which become double quotes.

What it means is DuckDB's to say. What is checked here is that sqlglot reads it as one query without a word that
changes anything; `query.py` then finds its tables.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Final

from topics.limits import SQL_LIST_DEPTH_MAX
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


_ALLOWED: Final = "a string, a number, a boolean, null, or a list of these or of lists"


def _check(reader: Reader, value: object, place: Place, at: str = "", depth: int = 0) -> None:
    """Refuse a parameter that DuckDB has no value for; `at` is where in the parameter."""
    where = f"params[{reader.parameters.last}]{at}"
    if isinstance(value, list):
        if depth == SQL_LIST_DEPTH_MAX:
            why = f"params[{reader.parameters.last}] has more than {SQL_LIST_DEPTH_MAX} lists in each other"
            raise reader.fail(why, place, [_ALLOWED])
        for number, each in enumerate(value):
            _check(reader, each, place, f"{at}[{number}]", depth + 1)
        present = [isinstance(each, list) for each in value if each is not None]
        if any(present) and not all(present):
            raise reader.fail(f"{where} mixes lists with other values", place, [_ALLOWED])
    elif isinstance(value, dict):
        raise reader.fail(f"{where} is an object", place, [_ALLOWED, "an object as JSON text"])
    elif value is not None and not isinstance(value, str | int | float | bool | bytes | Decimal | datetime | date):
        raise reader.fail(f"{where} is no value of a query", place, [_ALLOWED])
