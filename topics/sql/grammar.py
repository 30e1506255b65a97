"""The grammar: a text of statements becomes values, or an error that says where and what was expected.

Each statement is read from its first word to its last; what is left over, said twice or out of place is refused. All
parameters must be used. What only running a statement can tell (does the topic exist) is not asked here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from topics.core.pipelinecommands import Existing
from topics.errors import InvalidSql
from topics.limits import SQL_PARAMETERS_MAX, SQL_STATEMENTS_MAX
from topics.sql import groupgrammar, pipelinegrammar, querygrammar, tablegrammar, topicgrammar
from topics.sql.pipelinestatements import DescribePipeline, DescribeTable, DropPipeline
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


def parse_script(
    text: str,
    parameters: Sequence[object] = (),
    tokens: list[Token] | None = None,
    tables: Mapping[str, Sequence[str]] | None = None,
) -> list[tuple[Statement, Origin]]:
    """The same, and where each stands. What is to be explained stands behind its EXPLAIN.

    `tokens` are those of the text, for whoever has them already. `tables` are the columns of registered tables, as far
    as they are known.
    """
    if len(parameters) > SQL_PARAMETERS_MAX:
        raise InvalidSql(f"there are {len(parameters)} parameters, of {SQL_PARAMETERS_MAX} at most")
    given = Parameters(parameters)
    parts = _split(tokenize(text) if tokens is None else tokens)
    if not parts:
        raise Reader(text, [], 1, given).fail("there is no statement", expected=["SELECT", *_STARTS])
    if len(parts) > SQL_STATEMENTS_MAX:
        raise InvalidSql(f"there are {len(parts)} statements, of {SQL_STATEMENTS_MAX} at most")
    statements = []
    for number, part in enumerate(parts, 1):
        reader = Reader(text, part, number, given, tables)
        statement = _statement(reader)
        reader.end()
        first = part[1] if isinstance(statement, Explain) else part[0]
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


def _create(reader: Reader) -> Statement:
    if reader.accept("PIPELINE"):
        return pipelinegrammar.create(reader, Existing.REFUSE)
    if reader.accept("OR"):
        reader.expect("REPLACE", "PIPELINE")
        return pipelinegrammar.create(reader, Existing.REPLACE)
    return topicgrammar.create(reader)


def _alter(reader: Reader) -> Statement:
    return pipelinegrammar.alter(reader) if reader.accept("PIPELINE") else topicgrammar.alter(reader)


def _drop(reader: Reader) -> DropTopic | DropGroup | DropPipeline:
    if reader.accept("GROUP") or reader.accept("CONSUMER", "GROUP"):
        return groupgrammar.drop(reader)
    if reader.accept("PIPELINE"):
        return pipelinegrammar.drop(reader)
    reader.expect("TOPIC")
    return topicgrammar.drop(reader)


def _show(reader: Reader) -> Show:
    what = Shown(reader.one_of(*(member.value for member in Shown)))
    if what in (Shown.TOPICS, Shown.TABLES, Shown.PIPELINES):
        like = reader.text_value("a pattern")[0] if reader.accept("LIKE") else None
        return Show(what, like=like)
    return Show(what, topic=reader.topic() if reader.accept("ON") else None)


def _describe(reader: Reader) -> Describe | DescribeTable | DescribePipeline:
    if reader.accept("TABLE"):
        return tablegrammar.describe(reader)
    if reader.accept("PIPELINE"):
        return pipelinegrammar.describe(reader)
    reader.expect("TOPIC")
    return Describe(reader.topic())


def _explain(reader: Reader) -> Explain:
    statement = _statement(reader)
    if isinstance(statement, Explain):
        raise reader.fail("EXPLAIN explains a statement, and not itself", expected=["another statement"])
    return Explain(statement)


_STARTS: dict[str, Callable[[Reader], Statement]] = {
    "CREATE": _create,
    "ALTER": _alter,
    "DROP": _drop,
    "CLEAR": topicgrammar.clear,
    "REGISTER": tablegrammar.register,
    "UNREGISTER": tablegrammar.unregister,
    "INSERT": topicgrammar.insert,
    "CONSUME": groupgrammar.consume,
    "ACK": groupgrammar.ack,
    "NACK": groupgrammar.nack,
    "EXTEND": groupgrammar.extend,
    "PAUSE": groupgrammar.pause,
    "RESUME": groupgrammar.resume,
    "RESET": groupgrammar.reset,
    "SHOW": _show,
    "DESCRIBE": _describe,
    "EXPLAIN": _explain,
}
