"""Expressions over a table's columns: checked for their form, and kept as they were written.

They are evaluated where the table is read, by Spark, so that what Spark has no words for is refused. Queries,
aggregates, windows and parameters have no meaning there.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from topics.limits import SOURCE_EXPRESSION_BYTES_MAX
from topics.sql.place import Place
from topics.sql.quoting import requoted
from topics.sql.reader import Reader
from topics.sql.sparkfunctions import beyond_rows
from topics.sql.tokens import Kind, Token

_REFUSED: dict[type[exp.Expr], str] = {
    exp.Query: "a query",
    exp.AggFunc: "an aggregate",
    exp.Window: "a window",
    exp.Star: "*",
    exp.Alias: "an alias",
    exp.Command: "a command",
}


def expression(reader: Reader) -> str:
    """One expression in parentheses."""
    texts = _parts(reader)
    if len(texts) > 1:
        raise reader.fail("there is one condition", texts[1][1], [")"])
    return texts[0][0]


def condition(reader: Reader, *ends: tuple[str, str]) -> str:
    """One expression, in parentheses or up to the first of these pairs of words, or the end of the statement."""
    tokens = reader.tokens[reader.position :]
    count = _length(tokens, ends)
    if count and tokens[0].is_sign("(") and _closing(tokens) == count - 1:
        return expression(reader)
    taken = [_stored(reader, reader.next()) for _ in range(count)]
    if not taken:
        reader.refuse("a condition")
    return _checked(reader, taken)[0]


def _length(tokens: Sequence[Token], ends: Sequence[tuple[str, str]]) -> int:
    """How many tokens come before one of these pairs, outside of parentheses."""
    depth = 0
    for at, (token, after) in enumerate(zip_longest(tokens, tokens[1:])):
        if depth == 0 and after is not None:
            for first, second in ends:
                if token.word == first and (after.word == second or after.is_sign(second)):
                    return at
        depth += _deeper(token)
    return len(tokens)


def _closing(tokens: Sequence[Token]) -> int:
    """Where the parenthesis closes that the first token opens; -1 when it never does."""
    depth = 0
    for at, token in enumerate(tokens):
        depth += _deeper(token)
        if depth == 0:
            return at
    return -1


def _deeper(token: Token) -> int:
    return (token.is_sign("(") or token.is_sign("[")) - (token.is_sign(")") or token.is_sign("]"))


def _stored(reader: Reader, token: Token) -> Token:
    """A token of what is stored."""
    if token.kind is Kind.PARAMETER:
        raise reader.fail("no parameter can stand in what is stored", Place(token.start, token.end), ["a literal"])
    return token


def expressions(reader: Reader) -> str:
    """One expression or more in parentheses, separated by commas."""
    return ", ".join(text for text, _ in _parts(reader))


def _parts(reader: Reader) -> list[tuple[str, Place]]:
    reader.expect_sign("(")
    parts: list[list[Token]] = [[]]
    depth = 0
    while not (depth == 0 and reader.token is not None and reader.token.is_sign(")")):
        if reader.done:
            reader.refuse(")")
        token = _stored(reader, reader.next())
        depth += _deeper(token)
        if depth == 0 and token.is_sign(","):
            parts.append([])
        else:
            parts[-1].append(token)
    if any(not part for part in parts):
        reader.refuse("an expression")
    reader.expect_sign(")")
    return [_checked(reader, part) for part in parts]


def _checked(reader: Reader, tokens: list[Token]) -> tuple[str, Place]:
    place = Place(tokens[0].start, tokens[-1].end)
    text = reader.text[place.start : place.end]
    if len(text.encode()) > SOURCE_EXPRESSION_BYTES_MAX:
        raise reader.fail(f"an expression has at most {SOURCE_EXPRESSION_BYTES_MAX} bytes", place)
    try:
        tree = sqlglot.parse_one(requoted(reader.text, tokens))
        tree.sql(dialect="spark", unsupported_level=sqlglot.ErrorLevel.RAISE)
    except (SqlglotError, ValueError, RecursionError) as error:
        raise reader.fail(f"this is no expression: {_reason(error)}", place, ["an expression"]) from error
    refused = next((name for kind, name in _REFUSED.items() if tree.find(kind) is not None), beyond_rows(tree))
    if refused is not None:
        raise reader.fail(f"{refused} cannot stand in what is asked of one row", place, ["an expression of one row"])
    if not isinstance(tree, exp.Condition | exp.Func):
        raise reader.fail("this is no expression", place, ["an expression"])
    return text, place


def _reason(error: Exception) -> str:
    errors = getattr(error, "errors", None)
    return str(errors[0]["description"]) if errors else str(error).split("\n")[0]
