"""The grammar: a text of statements becomes values, or an error that says where and what was expected.

Each statement is read from its first word to its last; what is left over, said twice or out of place is refused. All
parameters must be used. What only running a statement can tell (does the topic exist) is not asked here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from topics.errors import InvalidSql
from topics.limits import SQL_PARAMETERS_MAX, SQL_STATEMENTS_MAX
from topics.sql import groupgrammar, querygrammar, topicgrammar
from topics.sql.reader import Parameters, Reader
from topics.sql.statements import Describe, DropGroup, DropTopic, Explain, Show, Shown, Statement
from topics.sql.tokens import Token, tokenize


class Origin(NamedTuple):
    """Where a statement stands: the whole text, where in it the statement begins, and which one it is, from 1."""

    text: str
    start: int
    number: int


def parse(text: str, parameters: Sequence[object] = ()) -> list[Statement]:
    """The statements of a text, with the values of its parameters in place. At least one; `InvalidSql` otherwise."""
    return [statement for statement, _ in parse_script(text, parameters)]


def parse_script(text: str, parameters: Sequence[object] = ()) -> list[tuple[Statement, Origin]]:
    """The same, and where each stands. What is to be explained stands behind its EXPLAIN."""
    if len(parameters) > SQL_PARAMETERS_MAX:
        raise InvalidSql(f"there are {len(parameters)} parameters, of {SQL_PARAMETERS_MAX} at most")
    given = Parameters(parameters)
    parts = _split(tokenize(text))
    if not parts:
        raise Reader(text, [], 1, given).fail("there is no statement", expected=list(_STARTS))
    if len(parts) > SQL_STATEMENTS_MAX:
        raise InvalidSql(f"there are {len(parts)} statements, of {SQL_STATEMENTS_MAX} at most")
    statements = []
    for number, tokens in enumerate(parts, 1):
        reader = Reader(text, tokens, number, given)
        statement = _statement(reader)
        reader.end()
        first = tokens[1] if isinstance(statement, Explain) else tokens[0]
        statements.append((statement, Origin(text, first.start, number)))
    given.check_used()
    return statements


def _split(tokens: list[Token]) -> list[list[Token]]:
    """The tokens of each statement; semicolons with nothing between them separate nothing."""
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token.is_sign(";"):
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]


def _statement(reader: Reader) -> Statement:
    token = reader.token
    if token is not None and (querygrammar.begins(token)):
        return querygrammar.select(reader)
    for word, read in _STARTS.items():
        if reader.accept(word):
            return read(reader)
    reader.refuse("SELECT", "WITH")


def _drop(reader: Reader) -> DropTopic | DropGroup:
    if reader.accept("GROUP"):
        return groupgrammar.drop(reader)
    reader.expect("TOPIC")
    return topicgrammar.drop(reader)


def _show(reader: Reader) -> Show:
    what = Shown(reader.one_of(*(member.value for member in Shown)))
    if what is Shown.TOPICS:
        like = reader.text_value("a pattern")[0] if reader.accept("LIKE") else None
        return Show(what, like=like)
    return Show(what, topic=reader.topic() if reader.accept("ON") else None)


def _describe(reader: Reader) -> Describe:
    reader.expect("TOPIC")
    return Describe(reader.topic())


def _explain(reader: Reader) -> Explain:
    statement = _statement(reader)
    if isinstance(statement, Explain):
        raise reader.fail("EXPLAIN explains a statement, and not itself", expected=["another statement"])
    return Explain(statement)


_STARTS: dict[str, Callable[[Reader], Statement]] = {
    "CREATE": topicgrammar.create,
    "ALTER": topicgrammar.alter,
    "DROP": _drop,
    "CLEAR": topicgrammar.clear,
    "INSERT": topicgrammar.insert,
    "CONSUME": groupgrammar.consume,
    "ACK": groupgrammar.ack,
    "RESET": groupgrammar.reset,
    "SHOW": _show,
    "DESCRIBE": _describe,
    "EXPLAIN": _explain,
}
