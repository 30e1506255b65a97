"""Watching in process, as the engine sees it; what it is to its reader is in tests/contract/test_sdk_follow.py."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import topics
from tests.client.rig import on_loop, settle, soon, take
from topics import Client, Dropped, Gap, Page, Reason, Record, errors
from topics.client.transport import Place, ReadRequest
from topics.embedded import Embedded
from topics.embeddedwatch import AHEAD_BYTES_MAX, AHEAD_PAGES_MAX, EmbeddedWatch
from topics.engine.watch import Watch


@asynccontextmanager
async def opened(directory: Path, **settings: int) -> AsyncIterator[tuple[Client, Embedded, Watch]]:
    async with topics.open(directory, **settings) as client:
        transport = client._transport
        assert isinstance(transport, Embedded)
        yield client, transport, transport._open_host().engine.watch


def watching(transport: Embedded, *names: str) -> EmbeddedWatch:
    stream = transport.watch([Place(topic=name, request=ReadRequest()) for name in names])
    assert isinstance(stream, EmbeddedWatch)
    return stream


def data(page: object) -> list[object]:
    assert isinstance(page, Page)
    return [record.data for record in page.records]


def scheduled() -> set[str]:
    """The timers of the loop, but for the engine's own."""
    timers = asyncio.get_running_loop()._scheduled  # type: ignore[attr-defined]
    return {timer._callback.__qualname__ for timer in timers if not timer.cancelled()} - {"Host._tick"}


@on_loop
async def test_a_new_topic_of_a_wildcard_joins_without_anybody_looking_for_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as (client, _, _):
        stream = client.follow(["t42:*"])
        parked = asyncio.create_task(anext(stream))
        await settle()
        await client.topic("t42:new").write(1)
        await settle()
        assert parked.done()
        name, event = parked.result()
        assert (name, isinstance(event, Record) and event.data) == ("t42:new", 1)


@on_loop
async def test_a_reader_that_waits_costs_no_task_and_no_timer(tmp_path: Path) -> None:
    async with opened(tmp_path) as (client, _, _):
        await client.topic("a").create(durability="ephemeral")
        tasks = asyncio.all_tasks()
        parked = asyncio.create_task(anext(client.topic("a").follow()))
        await settle()
        assert asyncio.all_tasks() - tasks == {parked}
        assert scheduled() == set()
        await client.topic("a").write(1)
        await soon(parked)


@on_loop
async def test_a_slow_reader_costs_a_bound_and_misses_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path) as (client, transport, _):
        orders = client.topic("orders")
        await orders.create(durability="ephemeral")
        stream = watching(transport, "orders")
        parked = asyncio.create_task(anext(stream))
        await settle()
        for number in range(200):
            await orders.write(number)
            await settle()
        assert len(stream._ready) <= AHEAD_PAGES_MAX
        assert stream._watcher is not None and stream._watcher.blocked
        pages = [data(await soon(parked))]
        while sum(map(len, pages)) < 200:
            pages.append(data(await soon(anext(stream))))
        assert [number for page in pages for number in page] == list(range(200))
        # What was not made for it one by one came at once.
        assert len(pages) < 2 * AHEAD_PAGES_MAX
        await stream.aclose()


@on_loop
async def test_large_records_are_bounded_by_their_bytes(tmp_path: Path) -> None:
    async with opened(tmp_path) as (client, transport, _):
        large = client.topic("large")
        await large.create(durability="ephemeral")
        stream = watching(transport, "large")
        size = AHEAD_BYTES_MAX // 3
        for number in range(12):
            await large.write(f"{number}-" + "x" * size)
        seen = data(await soon(anext(stream)))
        await settle()
        assert stream._ready_bytes <= 3 * AHEAD_BYTES_MAX and len(stream._ready) <= 2
        while len(seen) < 12:
            seen += data(await soon(anext(stream)))
        assert [str(each).partition("-")[0] for each in seen] == [str(number) for number in range(12)]
        assert stream._ready_bytes == 0
        await stream.aclose()


@on_loop
async def test_what_a_slow_reader_lost_is_told_with_its_reason(tmp_path: Path) -> None:
    async with opened(tmp_path, buffer_grace_ms=0) as (client, _, _):
        recent = client.topic("recent")
        await recent.create(durability="ephemeral", cap_records=5)
        stream = client.topic("recent").follow()
        parked = asyncio.create_task(anext(stream))
        await settle()
        for number in range(1, 101):
            await recent.write(number)
            await settle()
        seen: list[Record | Gap] = [await soon(parked)]
        while not (isinstance(seen[-1], Record) and seen[-1].seq == 100):
            seen += await take(stream, 1)
        (gap,) = [event for event in seen if isinstance(event, Gap)]
        assert (gap.gap_to, gap.reason) == (95, Reason.CAP)
        assert [event.seq for event in seen if isinstance(event, Record)] == [
            *range(1, gap.gap_from),
            *range(96, 101),
        ]


@on_loop
async def test_closing_and_cancelling_leave_nothing_in_the_engine(tmp_path: Path) -> None:
    async with opened(tmp_path) as (client, transport, watch):
        await client.topic("a").create()
        tasks = asyncio.all_tasks()
        streams = [client.topic("a").follow(), client.follow(["a", "x:*"])]
        for stream in streams:
            parked = asyncio.create_task(anext(stream))
            await settle()
            assert len(watch) == len(transport._watches) == 1
            parked.cancel()
            await asyncio.gather(parked, return_exceptions=True)
            assert len(watch) == len(transport._watches) == 0 and watch._watchers_by_prefix == {}
        idle = watching(transport, "a", "x:*")
        parked = asyncio.create_task(anext(idle))
        await settle()
        await idle.aclose()
        await idle.aclose()
        with pytest.raises(StopAsyncIteration):
            await soon(parked)
        assert len(watch) == len(transport._watches) == 0 and watch._watchers_by_prefix == {}
        assert asyncio.all_tasks() == tasks


@on_loop
async def test_a_name_that_is_not_there_leaves_the_others_unwatched(tmp_path: Path) -> None:
    async with opened(tmp_path) as (client, transport, watch):
        await client.topic("a").create()
        with pytest.raises(errors.TopicNotFound, match="missing"):
            await soon(anext(watching(transport, "a", "x:*", "missing")))
        assert len(watch) == 0 and transport._watches == set() and watch._watchers_by_prefix == {}


@on_loop
async def test_the_end_of_the_engine_comes_behind_what_was_there(tmp_path: Path) -> None:
    async with opened(tmp_path) as (client, transport, _):
        await client.topic("a").write_many([{"data": 1}, {"data": 2}])
        stream = watching(transport, "a")
        assert data(await soon(anext(stream))) == [1, 2]
        await client.topic("a").write(3)
        await settle()
    assert data(await soon(anext(stream))) == [3]
    for _ in range(2):
        with pytest.raises(errors.ShuttingDown, match=str(tmp_path)):
            await soon(anext(stream))
    with pytest.raises(errors.NotReady):
        await soon(anext(client.topic("a").follow()))


@on_loop
async def test_a_failure_of_the_engine_is_the_reader_s(tmp_path: Path) -> None:
    async with opened(tmp_path) as (client, transport, watch):
        await client.topic("a").write(1)
        stream = watching(transport, "a", "x:*")
        await soon(anext(stream))
        assert stream._watcher is not None
        (subscription,) = stream._watcher.subscriptions.values()
        stream.failed(subscription, errors.Damaged("a block cannot be read"))
        with pytest.raises(errors.Damaged, match="a block cannot be read"):
            await soon(anext(stream))
        assert len(watch) == 0 and watch._watchers_by_prefix == {}


@on_loop
async def test_a_topic_with_partitions_ends_once_and_its_successor_joins(tmp_path: Path) -> None:
    async with opened(tmp_path) as (client, _, _):
        events = client.topic("w:events")
        await events.create(partitions=3)
        stream = client.follow(["w:*"])
        for partition in range(3):
            await events.write(partition, partition=partition)
        assert sorted(event.data for _, event in await take(stream, 3) if isinstance(event, Record)) == [0, 1, 2]
        await events.drop()
        await events.create(partitions=2)
        for partition in range(2):
            await events.write(f"new {partition}", partition=partition)
        ended, *records = await take(stream, 3)
        assert ended == ("w:events", Dropped(topic="w:events", deleted=True))
        assert sorted(event.data for _, event in records if isinstance(event, Record)) == ["new 0", "new 1"]
        parked = asyncio.create_task(anext(stream))
        await settle()
        assert not parked.done()
        parked.cancel()
        await asyncio.gather(parked, return_exceptions=True)


@on_loop
async def test_where_to_begin_must_be_a_seq(tmp_path: Path) -> None:
    async with opened(tmp_path) as (client, _, watch):
        await client.topic("a").create()
        with pytest.raises(errors.InvalidRequest, match="from_seq must be a whole number from 0"):
            await soon(anext(client.topic("a").follow(from_seq=-1)))
        assert len(watch) == 0
