"""Statements about pipelines: create, drop, pause, resume, describe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from topics.core.pipelinecommands import Existing
from topics.core.table import has_secret
from topics.limits import PIPELINE_BYTES_MAX, TRIGGER_MS_MAX, U32_MAX
from topics.pipelinemodel import PipelineConfig, PipelineKind, PipelineOptions, PipelineStream
from topics.sql import pipelinequery
from topics.sql.ddl import parse_columns
from topics.sql.pipelinestatements import CreatePipeline, DescribePipeline, DropPipeline, PausePipeline
from topics.sql.place import Place
from topics.sql.reader import Parameters, Reader
from topics.sql.tablegrammar import if_not_exists, names, options
from topics.sql.tokens import Kind, Token, tokenize
from topics.tablemodel import TableFormat

_OPTIONS: dict[str, tuple[object, ...] | int | None] = {
    "trigger_ms": TRIGGER_MS_MAX,
    "checkpoint": None,
    "starting": ("earliest", "latest"),
    "output_mode": ("append", "update", "complete"),
    "max_records": U32_MAX,
}
"""What each may be: one of several words, a whole number up to another, or any text."""


def create(reader: Reader, existing: Existing) -> CreatePipeline:
    """Behind CREATE [OR REPLACE] PIPELINE."""
    existing = if_not_exists(reader, existing)
    pipeline = reader.pipeline()
    said = _options(reader) if reader.accept("WITH") else PipelineOptions()
    reader.expect("AS")
    return CreatePipeline(pipeline, _definition(reader, said), existing)


def definition(
    text: str, said: Mapping[str, object], tables: Mapping[str, Sequence[str]] | None = None
) -> PipelineConfig:
    """A pipeline out of what stands behind AS, and options by name. `tables` are columns, as in `parse_script`."""
    reader = Reader(text, tokens := _without_end(text), 1, Parameters(()), tables)
    for token in tokens:
        if token.is_sign(";"):
            raise reader.fail("; is not understood here", Place(token.start, token.end), ["one definition"])
    checked = {name: _checked(reader, name, value, None) for name, value in said.items()}
    config = _definition(reader, PipelineOptions(**checked))
    reader.end()
    return config


def drop(reader: Reader) -> DropPipeline:
    if_exists = reader.accept("IF")
    if if_exists:
        reader.expect("EXISTS")
    return DropPipeline(reader.pipeline(), if_exists)


def alter(reader: Reader) -> PausePipeline:
    pipeline = reader.pipeline()
    return PausePipeline(pipeline, reader.one_of("PAUSE", "RESUME") == "PAUSE")


def describe(reader: Reader) -> DescribePipeline:
    return DescribePipeline(reader.pipeline())


# ---- what a pipeline does


def _definition(reader: Reader, said: PipelineOptions) -> PipelineConfig:
    begin = reader.place
    for token in reader.tokens[reader.position :]:
        if token.kind is Kind.PARAMETER:
            place = Place(token.start, token.end)
            raise reader.fail("no parameter can stand in what is stored", place, ["a literal"])
    kind = PipelineKind(reader.one_of("INSERT", "MERGE", "APPEND").lower())
    reader.expect("INTO")
    made = _insert(reader) if kind is PipelineKind.INSERT else _into_table(reader, kind)
    text = reader.text[begin.start : reader.tokens[-1].end]
    if len(text.encode()) > PIPELINE_BYTES_MAX:
        raise reader.fail(f"a pipeline has at most {PIPELINE_BYTES_MAX} bytes", begin)
    return msgspec.structs.replace(made, definition=text, options=said)


def _insert(reader: Reader) -> PipelineConfig:
    reader.expect("TOPIC")
    topic = reader.topic()
    partition_by = ""
    if reader.accept("PARTITION"):
        reader.expect("BY")
        partition_by = pipelinequery.balanced(reader)
    query = pipelinequery.read(reader)
    return PipelineConfig(
        kind=PipelineKind.INSERT,
        definition="",
        topic=topic,
        partition_by=partition_by,
        sql=query.sql,
        streams=query.streams,
        tables=query.tables,
    )


def _into_table(reader: Reader, kind: PipelineKind) -> PipelineConfig:
    reader.expect("DELTA")
    reader.expect_sign(".")
    path_place = reader.place
    path = _without_secret(reader, reader.string("a path"), path_place)
    if not path:
        raise reader.fail("the path of the table is empty", path_place, ["a path"])
    key: tuple[str, ...] = ()
    key_place = reader.place
    delete_when = ""
    if kind is PipelineKind.MERGE:
        reader.expect("KEY")
        key = names(reader, "a column")
        if reader.accept("DELETE"):
            reader.expect("WHEN")
            delete_when = pipelinequery.balanced(reader)
    into = PipelineConfig(kind=kind, definition="", path=path, key=key, delete_when=delete_when)
    if not _is_all(reader):
        query = pipelinequery.read(reader)
        return msgspec.structs.replace(into, sql=query.sql, streams=query.streams, tables=query.tables)
    pieces = pipelinequery.Pieces(reader)
    reader.expect("FROM")
    place = reader.place
    reader.expect("STREAM")
    stream = pieces.take_stream(place)
    where = pipelinequery.balanced(reader) if reader.accept("WHERE") else ""
    _check_key(reader, key, key_place, stream)
    return msgspec.structs.replace(into, where=where, streams=(stream,))


def _is_all(reader: Reader) -> bool:
    """Whether `FROM STREAM …` comes, and with that all records of one topic."""
    return [token.word for token in reader.tokens[reader.position : reader.position + 1]] == ["FROM"]


def _check_key(reader: Reader, key: tuple[str, ...], place: Place, stream: PipelineStream) -> None:
    fields = [column.name for column in parse_columns(stream.schema)] if stream.schema else []
    missing = next((column for column in key if fields and column not in fields), None)
    if missing is not None:
        raise reader.fail(f"the schema has no field {missing}, which is in the key", place, fields)


# ---- options


def _options(reader: Reader) -> PipelineOptions:
    said = options(reader, {name: name for name in _OPTIONS}, "pipeline")
    return PipelineOptions(**{name: _checked(reader, name, value, place) for name, (value, place) in said.items()})


def _checked(reader: Reader, name: str, value: object, place: Place | None) -> Any:
    """The value of an option; an error stands where the value does, if it stands anywhere."""
    if name not in _OPTIONS:
        raise reader.fail(f"{name} is no option of a pipeline", place, sorted(_OPTIONS))
    allowed = _OPTIONS[name]
    if isinstance(allowed, tuple):
        good, expected = value in allowed, [f"'{word}'" for word in allowed]
    elif isinstance(allowed, int):
        good = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= allowed
        expected = [f"a whole number from 0 to {allowed}"]
    else:
        good, expected = isinstance(value, str) and bool(value), ["a path"]
    if not good:
        raise reader.fail(f"{name} cannot be {value!r}", place, expected)
    return value if name != "checkpoint" else _without_secret(reader, str(value), place)


def _without_secret(reader: Reader, path: str, place: Place | None) -> str:
    if has_secret(path, TableFormat.DELTA):
        raise reader.fail(
            "the path has a password in it, which would be stored and shown; give the runner's Hadoop its credentials",
            place,
            ["a path without a password"],
        )
    return path


def _without_end(text: str) -> list[Token]:
    """Semicolons behind everything say nothing."""
    tokens = tokenize(text)
    while tokens and tokens[-1].is_sign(";"):
        tokens.pop()
    return tokens
