"""Statements about groups. CONSUME without a group reads like a diff, and leaves no trace."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from topics.core.cut import Shape
from topics.core.groupcommands import AckGroup as Ack
from topics.core.groupcommands import Consume as Claim
from topics.core.groupcommands import DropGroup as Drop
from topics.core.groupcommands import ExtendGroup as Extend
from topics.core.groupcommands import NackGroup as Nack
from topics.core.groupcommands import PauseGroup as Pause
from topics.core.groupcommands import ResetGroup as Reset
from topics.core.groups import cursor_of
from topics.core.registry import Topic
from topics.engine.host import Host
from topics.errors import GroupNotFound
from topics.groupmodel import (
    EARLIEST,
    AckedGroup,
    DroppedGroup,
    ExtendedGroup,
    GroupBatch,
    NackedGroup,
    PausedGroup,
    PlacedGroup,
    Start,
)
from topics.limits import GROUP_LIMIT_DEFAULT, SECOND_MS
from topics.model import Page, Tombstone
from topics.sql.envelope import envelopes
from topics.sql.statements import AckGroup, Consume, DropGroup, ExtendGroup, NackGroup, PauseGroup, ResetGroup
from topics.sql.systemcolumns import TIME
from topics.sqlengine.result import Result, columns, iso_time
from topics.sqlmodel import SqlTombstone

_CONSUMED = columns(
    ("topic", "VARCHAR"),
    ("partition", "BIGINT"),
    ("offset", "BIGINT"),
    ("key", "JSON"),
    ("op", "VARCHAR"),
    ("payload", "JSON"),
    ("payload_mode", "VARCHAR"),
    ("source_table", "VARCHAR"),
    ("ts", "BIGINT"),
    ("message_id", "VARCHAR"),
)
_COMMITTED = columns(
    ("topic", "VARCHAR"), ("group_id", "VARCHAR"), ("partition", "BIGINT"), ("committed_offset", "BIGINT")
)
_NACKED = columns(
    ("topic", "VARCHAR"),
    ("group_id", "VARCHAR"),
    ("partition", "BIGINT"),
    ("nacked", "BIGINT"),
    ("committed_offset", "BIGINT"),
)
_EXTENDED = columns(
    ("topic", "VARCHAR"), ("group_id", "VARCHAR"), ("partition", "BIGINT"), ("extended", "BIGINT"), ("deadline", TIME)
)
_SHAPE = Shape(tags=True)


async def consume(host: Host, statement: Consume, turn: int) -> Result:
    """`turn` says which partition is asked first, so that over time none waits for another."""
    topic = host.engine.machine.topic(statement.topic)
    count = topic.config.partitions
    if statement.partition is not None:
        numbers = [statement.partition]
    else:
        numbers = [(turn + offset) % count for offset in range(count)]
    if statement.group is None:
        await host.freshened(topic.name)
        return await _read(host, statement, topic, numbers)
    limit = statement.limit or GROUP_LIMIT_DEFAULT
    commands = [
        Claim(topic.name, statement.group, number, statement.start, limit, statement.consumer, tags=True)
        for number in numbers
    ]
    batches = await host.consume_any(commands, statement.wait_ms)
    return _result(topic, sorted(batches, key=lambda batch: batch.partition))


async def ack(host: Host, statement: AckGroup) -> Result:
    command = Ack(statement.topic, statement.group, statement.upto, statement.partition, statement.consumer)
    done = await host.submit(command)
    assert isinstance(done, AckedGroup)
    return Result(_COMMITTED, [[done.topic, done.group, done.partition, done.committed_seq]])


async def nack(host: Host, statement: NackGroup) -> Result:
    command = Nack(
        statement.topic,
        statement.group,
        statement.upto,
        statement.partition,
        statement.consumer,
        from_seq=statement.since,
        delay_ms=statement.delay_ms,
    )
    done = await host.submit(command)
    assert isinstance(done, NackedGroup)
    return Result(_NACKED, [[done.topic, done.group, done.partition, done.nacked, done.committed_seq]])


async def extend(host: Host, statement: ExtendGroup) -> Result:
    command = Extend(
        statement.topic,
        statement.group,
        statement.upto,
        statement.partition,
        statement.consumer,
        visibility_ms=statement.visibility_ms,
    )
    done = await host.submit(command)
    assert isinstance(done, ExtendedGroup)
    deadline = iso_time(done.deadline) if done.deadline else None
    return Result(_EXTENDED, [[done.topic, done.group, done.partition, done.extended, deadline]])


async def pause(host: Host, statement: PauseGroup) -> Result:
    done = await host.submit(Pause(statement.topic, statement.group, statement.paused))
    assert isinstance(done, PausedGroup)
    return Result(message=f"group {done.group} of topic {done.topic} {'paused' if done.paused else 'resumed'}")


async def reset(host: Host, statement: ResetGroup) -> Result:
    topic = host.engine.machine.topic(statement.topic)
    numbers = range(topic.config.partitions) if statement.partition is None else [statement.partition]
    rows = []
    for number in numbers:
        done = await host.submit(Reset(topic.name, statement.group, statement.start, number))
        assert isinstance(done, PlacedGroup)
        rows.append([done.topic, done.group, done.partition, done.committed_seq])
    return Result(_COMMITTED, rows)


async def drop(host: Host, statement: DropGroup) -> Result:
    done = await host.submit(Drop(statement.topic, statement.group))
    assert isinstance(done, DroppedGroup)
    if not done.deleted:
        raise GroupNotFound(
            f'topic "{done.topic}" has no group "{statement.group}"', topic=done.topic, group=statement.group
        )
    return Result(message=f"group {done.group} of topic {done.topic} dropped")


# ---- without a group


async def _read(host: Host, statement: Consume, topic: Topic, numbers: Sequence[int]) -> Result:
    limit = statement.limit or GROUP_LIMIT_DEFAULT
    start = statement.start or EARLIEST
    places = {number: _cursor(host, topic, number, start) for number in numbers}
    pages = _pages(host, topic, places, limit)
    if not pages and statement.wait_ms:
        await _wait(host, topic, places, statement.wait_ms / SECOND_MS)
        pages = _pages(host, topic, places, limit)
    return _result(topic, sorted(pages, key=lambda page: page.partition))


def _cursor(host: Host, topic: Topic, partition: int, start: Start) -> int:
    log = host.engine.machine.log(topic, partition)
    return cursor_of(log, start)


def _pages(host: Host, topic: Topic, places: dict[int, int], limit: int) -> list[Page]:
    found = []
    left = limit
    for number, cursor in places.items():
        if left <= 0:
            break
        page = host.engine.read(topic.name, cursor, partition=number, limit=left, shape=_SHAPE)
        if page.count or page.tombstone is not None:
            found.append(page)
        left -= page.count
    return found


async def _wait(host: Host, topic: Topic, places: dict[int, int], seconds: float) -> None:
    """Until one of the partitions has something behind its place."""
    machine = host.engine.machine
    loop = asyncio.get_running_loop()
    waits = [
        loop.create_task(host.wait_visible(machine.log(topic, number), cursor, seconds))
        for number, cursor in places.items()
    ]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)


# ---- rows


def _result(topic: Topic, pages: Sequence[Page | GroupBatch]) -> Result:
    rows = []
    told = []
    for page in pages:
        place = f"{topic.name}/{page.partition}/{topic.epoch}"
        for seq, record in envelopes(page.body, place):
            rows.append(
                [
                    topic.name,
                    page.partition,
                    seq,
                    record.key,
                    record.op,
                    record.payload,
                    record.payload_mode,
                    record.source_table,
                    record.ts,
                    record.message_id,
                ]
            )
        if page.tombstone is not None:
            told.append(_tombstone(topic.name, page.partition, page.tombstone))
    return Result(_CONSUMED, rows, tombstones=tuple(told))


def _tombstone(topic: str, partition: int, lost: Tombstone) -> SqlTombstone:
    return SqlTombstone(topic=topic, partition=partition, **msgspec.structs.asdict(lost))
