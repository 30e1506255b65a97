"""Following from a time on, in each form of the client."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.client.rig import on_loop, settle, soon, take, take_kept
from tests.contract.sdk import each_form, opened, opened_in_time, written_at_two_times
from topics import Cursor, Gap, MemoryCursors, Page, Reason, Record, errors
from topics.client.transport import ReadRequest


@each_form
@on_loop
async def test_follow_begins_at_a_time(tmp_path: Path, form: str) -> None:
    async with opened_in_time(form, tmp_path) as client:
        orders = client.topic("orders")
        _, late = await written_at_two_times(orders)
        expected = [record.seq for record in (await orders.diff()).records if record.ts >= late]
        stream = orders.follow(from_ts=late)
        assert [event.seq for event in await take(stream, len(expected)) if isinstance(event, Record)] == expected
        await orders.write("later")
        (event,) = await take(stream, 1)
        assert isinstance(event, Record) and event.seq == expected[-1] + 1
        newest = orders.follow(from_ts=late + 1_000_000)
        parked = asyncio.create_task(anext(newest))
        while not parked.done():
            await orders.write("news")
            await settle()
        news = await parked
        assert isinstance(news, Record) and news.data == "news", "behind all that was there"
        with pytest.raises(errors.InvalidRequest, match="tail and from_ts each say where to begin"):
            orders.follow(from_ts=late, tail=True)
        with pytest.raises(errors.InvalidRequest, match="from_seq and from_ts each say where to begin"):
            orders.follow(1, from_ts=late)
        with pytest.raises(errors.TopicNotFound):
            await soon(anext(client.topic("missing").follow(from_ts=late)))


@each_form
@on_loop
async def test_a_time_that_is_gone_is_told_as_a_gap(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        recent = client.topic("recent")
        await recent.create(cap_records=2)
        await recent.write_many([{"data": n} for n in range(1, 6)])
        gap, *records = await take(recent.follow(from_ts=0), 3)
        assert gap == Gap(1, 3, Reason.CAP)
        assert [record.seq for record in records if isinstance(record, Record)] == [4, 5]


@each_form
@on_loop
async def test_who_was_further_does_not_go_back_to_a_time(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        orders = client.topic("orders")
        await orders.write_many([{"data": n} for n in range(1, 4)])
        cursors = MemoryCursors()
        await take_kept(orders.follow(from_ts=0, cursors=cursors, commit_ms=0), 2)
        (event,) = await take(orders.follow(from_ts=0, cursors=cursors), 1)
        assert isinstance(event, Record) and event.seq == 3


@each_form
@on_loop
async def test_many_topics_begin_at_a_time(tmp_path: Path, form: str) -> None:
    async with opened_in_time(form, tmp_path) as client:
        times = {}
        for name in ("named", "t:one", "t:two"):
            await client.topic(name).create(partitions=2)
            _, times[name] = await written_at_two_times(client.topic(name))
        late = max(times.values())
        expected = [
            (name, record.seq)
            for name in times
            for record in (await client.topic(name).diff()).records
            if record.ts >= late
        ]
        stream = client.follow(["named", "t:*"], from_ts=late)
        found = await take(stream, len(expected))
        assert sorted((name, event.seq) for name, event in found if isinstance(event, Record)) == expected
        await client.topic("t:one").write("in another partition", partition=1)
        await client.topic("t:new").write("of a new topic")
        news = [await take(stream, 1), await take(stream, 1)]
        assert sorted(event.data for ((_, event),) in news if isinstance(event, Record)) == [
            "in another partition",
            "of a new topic",
        ]
        with pytest.raises(errors.InvalidRequest, match="tail and from_ts each say where to begin"):
            client.follow(["named"], tail=True, from_ts=late)
        with pytest.raises(errors.InvalidRequest, match="from_seq and from_ts each say where to begin"):
            client.pages({"named": 3}, from_ts=late)
        with pytest.raises(errors.InvalidRequest, match="from_ts must be whole milliseconds since 1970"):
            client.pages(["named"], from_ts=-1)
        with pytest.raises(errors.TopicNotFound):
            await soon(anext(client.follow(["missing"], from_ts=late)))


@each_form
@on_loop
async def test_a_store_knows_better_than_a_time(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        for name in ("t:known", "t:other"):
            await client.topic(name).write_many([{"data": n} for n in range(1, 4)])
        for names in (["t:*"], ["t:known", "t:*"], ["t:*", "t:known"]):
            cursors = MemoryCursors()
            cursors.cursors = {"t:known": Cursor(2)}
            found = await take(client.follow(names, from_ts=0, cursors=cursors), 4)
            assert sorted((name, event.seq) for name, event in found if isinstance(event, Record)) == [
                ("t:known", 3),
                ("t:other", 1),
                ("t:other", 2),
                ("t:other", 3),
            ]


@each_form
@on_loop
async def test_topics_of_a_wildcard_count_as_one_name(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path, max_watch_topics=2) as client:
        for number in range(5):
            await client.topic(f"t:{number}").write(number)
        found = await take(client.follow(["t:*"], from_ts=0), 5)
        assert sorted(event.data for _, event in found if isinstance(event, Record)) == list(range(5))


@each_form
@on_loop
async def test_a_topic_that_goes_while_its_time_is_looked_up_is_left_out(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        for name in ("t:goes", "t:stays"):
            await client.topic(name).write(name)
        read = client._transport.read

        async def dropping(topic: str, request: ReadRequest) -> Page:
            if topic == "t:goes":
                await client.topic(topic).drop()
            return await read(topic, request)

        client._transport.read = dropping  # type: ignore[method-assign]
        ((name, event),) = await take(client.follow(["t:*"], from_ts=0), 1)
        assert isinstance(event, Record) and (name, event.data) == ("t:stays", "t:stays")
