"""The query of a pipeline: Spark SQL in which `STREAM topic` stands in place of a table.

What is read here are the streams and tables, and that the whole is one query. Each of them becomes the name of a view,
under the alias that its columns are asked for by; what the query means is Spark's to say.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from topics.pipelinemodel import PipelineStream, PipelineTable
from topics.sql import query, streamcolumns
from topics.sql.ddl import parse_columns
from topics.sql.place import Place
from topics.sql.reader import Reader
from topics.sql.sparkfunctions import beyond_rows
from topics.sql.sparktext import SparkText, spark_name, spark_token
from topics.sql.tokens import Kind, Token

STREAM_VIEW = "topics_stream_"
TABLE_VIEW = "topics_table_"

_UNITS = "microsecond|millisecond|second|minute|hour|day|week"
_TIME = re.compile(rf"\d+ (?:{_UNITS})s?(?: \d+ (?:{_UNITS})s?)*", re.IGNORECASE)
_TIME_HINT = "such as '10 seconds'"


@dataclass(slots=True)
class Pieces:
    """A text for Spark while it is put together, and the streams found in it."""

    reader: Reader
    parts: list[tuple[Place, str]] = field(default_factory=list)
    streams: list[PipelineStream] = field(default_factory=list)
    stream_places: list[Place] = field(default_factory=list)
    last_word: str = ""
    """In capitals; empty when the last token was none, or nothing is taken yet."""

    def take(self) -> Token:
        """The next token, as it is."""
        reader = self.reader
        token = reader.next()
        place = Place(token.start, token.end)
        # Behind GROUP BY sqlglot takes the bare word for the clause WINDOW; in backticks it is the function to both.
        is_function = token.word == "WINDOW" and self.last_word == "BY"
        self.parts.append((place, spark_name(token.text) if is_function else spark_token(reader.text, token)))
        self.last_word = token.word
        return token

    def take_stream(self, begin: Place) -> PipelineStream:
        """`topic [SCHEMA 'ddl'] [WATERMARK … DELAY …]`, behind STREAM at `begin`: one piece, the name of its view."""
        reader = self.reader
        stream = _stream(reader, f"{STREAM_VIEW}{len(self.streams) + 1}")
        end = reader.tokens[reader.position - 1].end
        self.streams.append(stream)
        self.stream_places.append(begin)
        self.parts.append((Place(begin.start, end), spark_name(stream.view)))
        self.last_word = ""
        return stream


@dataclass(frozen=True, slots=True)
class Query:
    sql: str
    streams: tuple[PipelineStream, ...]
    tables: tuple[PipelineTable, ...]


def read(reader: Reader) -> Query:
    """All that is left of a statement, as a query over streams and registered tables."""
    pieces = Pieces(reader)
    while not reader.done:
        place = reader.place
        if pieces.last_word in ("FROM", "JOIN") and reader.accept("STREAM"):
            pieces.take_stream(place)
        else:
            pieces.take()
    return _finished(reader, pieces)


def balanced(reader: Reader) -> str:
    """What stands in parentheses, as Spark's text."""
    reader.expect_sign("(")
    pieces = Pieces(reader)
    depth = 0
    while not (depth == 0 and reader.token is not None and reader.token.is_sign(")")):
        if reader.done:
            reader.refuse(")")
        token = pieces.take()
        depth += token.is_sign("(") - token.is_sign(")")
    if not pieces.parts:
        reader.refuse("an expression")
    reader.expect_sign(")")
    made = SparkText(reader.text, pieces.parts)
    place = Place(pieces.parts[0][0].start, pieces.parts[-1][0].end)
    try:
        tree = sqlglot.parse_one(f"SELECT {made.text}", dialect="spark")
    except (SqlglotError, ValueError, RecursionError) as error:
        raise reader.fail("this is no expression", place, ["an expression"]) from error
    beyond = "a table" if tree.find(exp.Table) is not None else beyond_rows(tree)
    if beyond is not None:
        raise reader.fail(f"{beyond} cannot stand in what is asked of one row", place, ["an expression of one row"])
    return made.text


# ---- one stream


def _stream(reader: Reader, view: str) -> PipelineStream:
    topic = reader.topic()
    schema = _schema(reader) if reader.accept("SCHEMA") else ""
    watermark = delay = ""
    if reader.accept("WATERMARK"):
        watermark = _watermark(reader)
        reader.expect("DELAY")
        delay = _delay(reader)
    return PipelineStream(view=view, topic=topic, schema=schema, watermark=watermark, delay=delay)


def _schema(reader: Reader) -> str:
    place = reader.place
    text = reader.string("columns and their types")
    try:
        parse_columns(text)
    except ValueError as error:
        message = f"these are no columns with their types: {error}"
        raise reader.fail(message, place, ["such as 'sku string, cents bigint'"]) from error
    return text


def _watermark(reader: Reader) -> str:
    token = reader.token
    if token is not None and token.is_sign("("):
        return balanced(reader)
    name, place = reader.name("a column of the time, or an expression in parentheses")
    first = name.split(".")[0].lower()
    if first not in streamcolumns.COLUMNS and first != streamcolumns.VALUE:
        raise reader.fail(f"a topic has no column {first}", place, ["ts", "(value.…), with a SCHEMA"])
    return ".".join(map(spark_name, name.split(".")))


def _delay(reader: Reader) -> str:
    """`'10 seconds'`, with the words before it that Spark has, or `INTERVAL 10 SECONDS`."""
    reader.accept("OF")
    interval = reader.accept("INTERVAL")
    place = reader.place
    token = reader.token
    if interval and token is not None and token.kind is Kind.NUMBER:
        number = reader.whole("a number")
        unit, _ = reader.name("a unit of time")
        text = f"{number} {unit.lower()}"
    else:
        text = " ".join(reader.string("a time").split())
    if not _TIME.fullmatch(text):
        raise reader.fail(f"{text} is no length of time", place, [_TIME_HINT])
    return text.lower()


# ---- the whole


def _finished(reader: Reader, pieces: Pieces) -> Query:
    if not pieces.parts:
        reader.refuse("SELECT", "WITH")
    if not pieces.streams:
        first, last = pieces.parts[0][0], pieces.parts[-1][0]
        message = "a pipeline reads at least one topic as a stream"
        raise reader.fail(message, Place(first.start, last.end), ["FROM STREAM topic"])
    made = SparkText(reader.text, pieces.parts)
    tree = _tree(reader, made)
    streams = {stream.view: stream for stream in pieces.streams}
    found = _tables(reader, made, tree, streams)
    _check_unreached(reader, pieces, found)
    streamcolumns.check(reader, made, tree, streams)
    tables: dict[str, PipelineTable] = {}
    parts: list[str] = []
    at = 0
    for node, start, end in found:
        name = _name(node)
        if name in streams:
            view, alias = name, streams[name].topic.rpartition(".")[2]
        else:
            view = tables.setdefault(name, PipelineTable(view=f"{TABLE_VIEW}{len(tables) + 1}", table=name)).view
            alias = name.rpartition(".")[2]
        parts += [made.text[at:start], spark_name(view), "" if node.alias else f" AS {spark_name(alias)}"]
        at = end
    sql = "".join([*parts, made.text[at:]])
    return Query(sql, tuple(pieces.streams), tuple(tables.values()))


def _tree(reader: Reader, made: SparkText) -> exp.Query:
    try:
        trees = sqlglot.parse(made.text, dialect="spark")
    except RecursionError as error:
        raise reader.fail("this query is nested too deeply", expected=["a flatter one"]) from error
    except (SqlglotError, ValueError) as error:
        unreadable = query.unreadable(made.text, error)
        expected = unreadable.expected or ("a query that Spark understands",)
        raise reader.fail(str(unreadable), made.place(unreadable.at or 0), expected) from error
    tree = trees[0] if len(trees) == 1 else None
    if not isinstance(tree, exp.Query):
        raise reader.fail("this is no query", made.place(0), ["SELECT"])
    change = query.change_in(tree)
    if change is not None:
        raise reader.fail(f"a query only reads, and {change.key.upper()} does more", made.place(0), ["SELECT"])
    beyond = beyond_rows(tree)
    if beyond is not None:
        raise reader.fail(f"{beyond} reaches beyond streams and tables", made.place(0), ["another function"])
    return tree


def _tables(
    reader: Reader, made: SparkText, tree: exp.Query, streams: dict[str, PipelineStream]
) -> list[tuple[exp.Table, int, int]]:
    """Each place where a stream or a table is named, in order of the text."""
    found = []
    for node in tree.find_all(exp.Table):
        if not isinstance(node.this, exp.Identifier | exp.Dot) or query.is_cte(node):
            continue
        # A hint such as BROADCAST(u) says an alias that is there anyway.
        if node.find_ancestor(exp.Hint) is not None:
            continue
        ends = [part.meta for part in node.parts if isinstance(part, exp.Identifier) and "start" in part.meta]
        if len(ends) != len(node.parts):
            raise reader.fail(f"{node.sql('spark')} is not understood as a table", expected=["the name of a table"])
        found.append((node, int(ends[0]["start"]), int(ends[-1]["end"]) + 1))
    return sorted(found, key=lambda each: each[1])


def _check_unreached(reader: Reader, pieces: Pieces, found: Sequence[tuple[exp.Table, int, int]]) -> None:
    """A stream that the query does not have as a table stands where none can be."""
    reached = {_name(node) for node, _, _ in found}
    for stream, place in zip(pieces.streams, pieces.stream_places, strict=True):
        if stream.view not in reached:
            raise reader.fail("a stream cannot stand here", place, ["a table behind FROM or JOIN"])


def _name(node: exp.Table) -> str:
    return ".".join(part.name for part in node.parts)
