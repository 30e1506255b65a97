"""Statements about topics, each one command or a few."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from topics.core import config as configs
from topics.core.commands import Append, ChangeSources, Command, Configure, Delete, Drop
from topics.core.partition import partition_of
from topics.core.records import Json as JsonText
from topics.core.records import RecordLimits, Records
from topics.core.source import Source
from topics.engine.host import Host
from topics.errors import NameTaken, TopicNotFound
from topics.limits import U64_MAX
from topics.model import Configured, Deleted, Dropped, Written
from topics.sql.statements import (
    AddSource,
    AlterTopic,
    ClearTopic,
    CreateTopic,
    Describe,
    DropSource,
    DropTopic,
    Insert,
    Json,
    Value,
)
from topics.sqlengine.result import Result, columns

T = TypeVar("T")

_WRITTEN = columns(("topic", "VARCHAR"), ("partition", "BIGINT"), ("first_offset", "BIGINT"), ("last_offset", "BIGINT"))
_OPTIONS = columns(("option", "VARCHAR"), ("value", "JSON"))


async def create(host: Host, statement: CreateTopic) -> Result:
    found = host.engine.machine.topics.get(statement.topic)
    if found is not None and not statement.if_not_exists:
        raise NameTaken(
            f'topic "{statement.topic}" is there already; CREATE TOPIC IF NOT EXISTS leaves it as it is, '
            "and ALTER TOPIC … SET changes it",
            topic=found.name,
        )
    fields = _fields(statement.options)
    done = await _submit(host, Configure(statement.topic, fields, if_missing=True), Configured)
    if done.created:
        return Result(message=f"topic {done.topic} created")
    return Result(message=f"topic {done.topic} is there already")


async def alter(host: Host, statement: AlterTopic) -> Result:
    topic = host.engine.machine.topic(statement.topic)
    await _submit(host, Configure(topic.name, _fields(statement.options), merge=True), Configured)
    return Result(message=f"topic {topic.name} changed: {', '.join(field for field, _ in statement.options)}")


async def add_source(host: Host, statement: AddSource) -> Result:
    sources = tuple(
        Source(
            statement.table,
            operation,
            statement.payload,
            statement.where,
            statement.partition_by,
            start_version=statement.start_version,
        )
        for operation in statement.operations
    )
    await host.submit(ChangeSources(statement.topic, sources, start=statement.start))
    return Result(message=f"{statement.table} is a source of topic {statement.topic}")


async def drop_source(host: Host, statement: DropSource) -> Result:
    await host.submit(ChangeSources(statement.topic, dropped=statement.table, operations=statement.operations))
    on = f" on {', '.join(statement.operations)}" if statement.operations else ""
    return Result(message=f"{statement.table} is no source of topic {statement.topic} any more{on}")


async def drop(host: Host, statement: DropTopic) -> Result:
    done = await _submit(host, Drop(statement.topic), Dropped)
    if done.deleted:
        return Result(message=f"topic {done.topic} dropped")
    if not statement.if_exists:
        raise TopicNotFound(f'topic "{statement.topic}" does not exist', topic=statement.topic)
    return Result(message=f"there is no topic {statement.topic}")


async def clear(host: Host, statement: ClearTopic) -> Result:
    topic = host.engine.machine.topic(statement.topic)
    numbers = range(topic.config.partitions) if statement.partition is None else [statement.partition]
    count = 0
    for partition in numbers:
        done = await _submit(host, Delete(topic.name, partition, before_seq=U64_MAX), Deleted)
        count += done.deleted
    return Result(message=f"{count} records of topic {topic.name} deleted")


async def insert(host: Host, statement: Insert, limits: RecordLimits) -> Result:
    by_column = dict(zip(statement.columns, zip(*statement.rows, strict=True), strict=True))
    datas: list[JsonText] = [cell.text for cell in by_column["data"] if isinstance(cell, Json)]
    metas: list[JsonText] | None = None
    if "meta" in by_column:
        metas = [cell.text if isinstance(cell, Json) else b"" for cell in by_column["meta"]]
    records = Records.check(
        datas, tags=_texts(by_column.get("tag")), nodes=_texts(by_column.get("node")), metas=metas, limits=limits
    )
    partition = statement.partition or 0
    if statement.key is not None:
        found = host.engine.machine.topics.get(statement.topic)
        partition = partition_of(statement.key, found.config.partitions if found is not None else 1)
    done = await _submit(host, Append(statement.topic, records, partition), Written)
    return Result(_WRITTEN, [[done.topic, done.partition, done.first_seq, done.last_seq]])


def describe(host: Host, statement: Describe) -> Result:
    topic = host.engine.machine.topic(statement.topic)
    fields = {"name": topic.name, **configs.as_wire(topic.config)}
    return Result(_OPTIONS, [[name, msgspec.Raw(msgspec.json.encode(value))] for name, value in fields.items()])


def _fields(options: tuple[tuple[str, Value], ...]) -> Mapping[str, object]:
    return dict(options)


def _texts(cells: tuple[object, ...] | None) -> list[str] | None:
    return None if cells is None else [cell if isinstance(cell, str) else "" for cell in cells]


async def _submit(host: Host, command: Command, kind: type[T]) -> T:
    reply = await host.submit(command)
    assert isinstance(reply, kind)
    return reply
