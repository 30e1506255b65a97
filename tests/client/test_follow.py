from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import topics
from tests.client.rig import on_loop, settle, soon, take
from topics import Gap, Reason, Record, errors


@on_loop
async def test_follow_yields_what_is_there_and_what_comes(tmp_path: Path) -> None:
    async with topics.open(tmp_path) as client:
        orders = client.topic("orders")
        await orders.write_many([{"data": 1, "tag": "t", "meta": {"k": "v"}}, {"data": 2}])
        stream = orders.follow()
        first, second = await take(stream, 2)
        assert isinstance(first, Record) and isinstance(second, Record)
        assert (first.data, first.tag, first.meta, second.data) == (1, "t", {"k": "v"}, 2)
        parked = asyncio.create_task(anext(stream))
        await settle()
        assert not parked.done()
        await orders.write(3)
        third = await soon(parked)
        assert isinstance(third, Record) and (third.seq, third.data) == (3, 3)


@on_loop
async def test_follow_misses_nothing_while_writes_race_it(tmp_path: Path) -> None:
    async with topics.open(tmp_path) as client:
        orders = client.topic("orders")
        await orders.create(durability="fsync")

        async def write() -> None:
            for number in range(50):
                await orders.write(number)
                for _ in range(number % 3):
                    await asyncio.sleep(0)

        following = asyncio.create_task(take(orders.follow(), 200))
        await asyncio.gather(*(write() for _ in range(4)))
        assert [event.seq for event in await following if isinstance(event, Record)] == list(range(1, 201))


@on_loop
async def test_follow_begins_where_it_is_told(tmp_path: Path) -> None:
    async with topics.open(tmp_path) as client:
        orders = client.topic("orders")
        await orders.write_many([{"data": n} for n in range(1, 4)])
        (event,) = await take(orders.follow(from_seq=2), 1)
        assert isinstance(event, Record) and event.seq == 3
        newest = orders.follow(tail=True)
        parked = asyncio.create_task(anext(newest))
        await settle()
        await orders.write(4)
        event = await soon(parked)
        assert isinstance(event, Record) and event.seq == 4
        with pytest.raises(errors.InvalidRequest, match="give one of them"):
            orders.follow(from_seq=2, tail=True)


@on_loop
async def test_follow_leaves_out_the_own_node_and_other_tags(tmp_path: Path) -> None:
    async with topics.open(tmp_path) as client:
        orders = client.topic("orders")
        await orders.write_many([{"data": 1, "node": "me"}, {"data": 2, "tag": "x"}, {"data": 3, "tag": "y"}])
        (event,) = await take(orders.follow(node="me", match="y"), 1)
        assert isinstance(event, Record) and event.data == 3


@on_loop
async def test_follow_never_hides_a_gap(tmp_path: Path) -> None:
    async with topics.open(tmp_path) as client:
        recent = client.topic("recent")
        await recent.create(cap_records=2)
        await recent.write_many([{"data": n} for n in range(1, 6)])
        stream = recent.follow()
        gap, *records = await take(stream, 3)
        assert gap == Gap(1, 3, Reason.CAP)
        assert [record.seq for record in records if isinstance(record, Record)] == [4, 5]
        parked = asyncio.create_task(anext(stream))
        await settle()
        await recent.write_many([{"data": n} for n in range(6, 11)])
        assert await soon(parked) == Gap(6, 8, Reason.CAP)


@on_loop
async def test_follow_does_not_tell_of_deletes(tmp_path: Path) -> None:
    async with topics.open(tmp_path) as client:
        orders = client.topic("orders")
        await orders.write_many([{"data": n, "tag": f"t{n}"} for n in range(1, 5)])
        await orders.delete(before_seq=3)
        (event,) = await take(orders.follow(), 1)
        assert isinstance(event, Record) and event.seq == 3


@on_loop
async def test_follow_ends_when_its_topic_is_dropped(tmp_path: Path) -> None:
    async with topics.open(tmp_path) as client:
        orders = client.topic("orders")
        await orders.create()
        parked = asyncio.create_task(anext(orders.follow()))
        await settle()
        await orders.drop()
        with pytest.raises(errors.TopicNotFound):
            await soon(parked)


@on_loop
async def test_follow_tells_that_another_topic_took_the_name(tmp_path: Path) -> None:
    async with topics.open(tmp_path) as client:
        orders = client.topic("orders")
        await orders.write_many([{"data": "old"}, {"data": "old"}])
        stream = orders.follow()
        await take(stream, 2)
        await orders.drop()
        # As many as before and one more, so that the cursor alone could not tell.
        await orders.write_many([{"data": n} for n in range(1, 4)])
        gap, *records = await take(stream, 4)
        assert gap == Gap(1, 3, Reason.RECREATED)
        assert [record.data for record in records if isinstance(record, Record)] == [1, 2, 3]


@on_loop
async def test_follow_tells_of_a_shorter_successor_once(tmp_path: Path) -> None:
    async with topics.open(tmp_path) as client:
        orders = client.topic("orders")
        await orders.write_many([{"data": "old"}] * 5)
        stream = orders.follow()
        await take(stream, 5)
        await orders.drop()
        await orders.write("new")
        gap, record = await take(stream, 2)
        assert gap == Gap(1, 1, Reason.RECREATED)
        assert isinstance(record, Record) and record.data == "new"


@on_loop
async def test_a_reader_that_never_waits_lets_others_run(tmp_path: Path) -> None:
    async with topics.open(tmp_path, max_limit=1) as client:
        orders = client.topic("orders")
        await orders.write_many([{"data": n} for n in range(50)])
        seen: list[Record | Gap] = []

        async def read() -> None:
            async for event in orders.follow():
                seen.append(event)
                if len(seen) == 50:
                    return

        reading = asyncio.create_task(read())
        turns = 0
        while not reading.done():
            turns += 1
            await asyncio.sleep(0)
        assert turns >= 50


@on_loop
async def test_a_follower_that_was_cancelled_leaves_nothing_behind(tmp_path: Path) -> None:
    async with topics.open(tmp_path) as client:
        orders = client.topic("orders")
        await orders.create()
        parked = asyncio.create_task(anext(orders.follow()))
        await settle()
        parked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await parked
        assert (await orders.write(1)).first_seq == 1
