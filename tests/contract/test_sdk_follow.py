from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.client.rig import on_loop, settle, soon, take, take_kept
from tests.contract.sdk import each_form, opened
from topics import Cursor, Dropped, Gap, MemoryCursors, Reason, Record, errors
from topics.engine import watcher


@each_form
@on_loop
async def test_follow_yields_what_is_there_and_what_comes(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
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


@each_form
@on_loop
async def test_follow_misses_nothing_while_writes_race_it(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
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


@each_form
@on_loop
async def test_follow_begins_where_it_is_told(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
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


@each_form
@on_loop
async def test_follow_leaves_out_the_own_node_and_other_tags(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        orders = client.topic("orders")
        await orders.write_many([{"data": 1, "node": "me"}, {"data": 2, "tag": "x"}, {"data": 3, "tag": "y"}])
        (event,) = await take(orders.follow(node="me", match="y"), 1)
        assert isinstance(event, Record) and event.data == 3


@each_form
@on_loop
async def test_follow_never_hides_a_gap(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
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


@each_form
@on_loop
async def test_follow_does_not_tell_of_deletes(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        orders = client.topic("orders")
        await orders.write_many([{"data": n, "tag": f"t{n}"} for n in range(1, 5)])
        await orders.delete(before_seq=3)
        (event,) = await take(orders.follow(), 1)
        assert isinstance(event, Record) and event.seq == 3


@each_form
@on_loop
async def test_follow_ends_when_its_topic_is_dropped(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        orders = client.topic("orders")
        await orders.create()
        parked = asyncio.create_task(anext(orders.follow()))
        await settle()
        await orders.drop()
        with pytest.raises(errors.TopicNotFound):
            await soon(parked)


@each_form
@pytest.mark.parametrize("count", [1, 3], ids=["shorter", "longer"])
@on_loop
async def test_follow_tells_that_another_topic_took_the_name(tmp_path: Path, form: str, count: int) -> None:
    cursors = MemoryCursors()
    async with opened(form, tmp_path) as client:
        orders = client.topic("orders")
        await orders.write_many([{"data": "old"}, {"data": "old"}])
        await take_kept(orders.follow(cursors=cursors, commit_ms=0), 2)
        assert cursors.cursors["orders"].seq == 2
        await orders.drop()
        # With one more than before, the seq of the cursor alone could not tell.
        await orders.write_many([{"data": n} for n in range(count)])
        gap, *records = await take_kept(orders.follow(cursors=cursors, commit_ms=0), 1 + count)
        assert gap == Gap(1, count, Reason.RECREATED)
        assert [record.data for record in records if isinstance(record, Record)] == list(range(count))
        await orders.write("more")
        (event,) = await take(orders.follow(cursors=cursors), 1)
        assert isinstance(event, Record) and event.data == "more"


@each_form
@on_loop
async def test_follow_goes_on_where_it_was(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        orders = client.topic("orders")
        await orders.write_many([{"data": n} for n in range(1, 5)])
        cursors = MemoryCursors()
        stream = orders.follow(cursors=cursors, commit_ms=0)
        await take(stream, 3)
        # The third was not done with: nobody asked for the fourth.
        await stream.aclose()
        assert cursors.cursors["orders"].seq == 2
        (event,) = await take(orders.follow(from_seq=1, cursors=cursors), 1)
        assert isinstance(event, Record) and event.seq == 3


@each_form
@on_loop
async def test_a_gap_is_done_with_like_a_record(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        recent = client.topic("recent")
        await recent.create(cap_records=2)
        await recent.write_many([{"data": n} for n in range(1, 6)])
        cursors = MemoryCursors()
        stream = recent.follow(cursors=cursors, commit_ms=0)
        assert (await take(stream, 2))[0] == Gap(1, 3, Reason.CAP)
        await stream.aclose()
        assert cursors.cursors["recent"].seq == 3
        (event,) = await take(recent.follow(cursors=cursors), 1)
        assert isinstance(event, Record) and event.seq == 4


@each_form
@on_loop
async def test_each_partition_has_a_cursor_of_its_own(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        events = client.topic("events")
        await events.create(partitions=2)
        cursors = MemoryCursors()
        for partition in (0, 1):
            await events.write_many([{"data": 1}, {"data": 2}, {"data": 3}], partition=partition)
            await take_kept(events.follow(partition=partition, cursors=cursors, commit_ms=0), 1 + partition)
        assert {name: cursor.seq for name, cursor in cursors.cursors.items()} == {"events": 1, "events/1": 2}


@each_form
@on_loop
async def test_a_store_that_fails_stops_the_follower(tmp_path: Path, form: str) -> None:
    class Full(MemoryCursors):
        async def save(self, cursors: Mapping[str, Cursor]) -> None:
            raise OSError("no space")

    async with opened(form, tmp_path) as client:
        orders = client.topic("orders")
        await orders.write_many([{"data": 1}, {"data": 2}])
        stream = orders.follow(cursors=Full(), commit_ms=0)
        await take(stream, 1)
        with pytest.raises(OSError, match="no space"):
            await soon(anext(stream))


@each_form
@on_loop
async def test_many_topics_are_one_stream(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        for name in ("a", "b", "c"):
            await client.topic(name).write_many([{"data": f"{name}{n}"} for n in range(1, 4)])
        seen = await take(client.follow({"a": 0, "b": 2}), 4)
        assert sorted((name, event.data) for name, event in seen if isinstance(event, Record)) == [
            ("a", "a1"),
            ("a", "a2"),
            ("a", "a3"),
            ("b", "b3"),
        ]
        assert [event.seq for name, event in seen if name == "a" and isinstance(event, Record)] == [1, 2, 3]
        stream = client.follow(["a", "c"], tail=True)
        parked = asyncio.create_task(anext(stream))
        while not parked.done():
            await client.topic("c").write("news")
            await settle()
        name, event = await parked
        assert (name, event.data) == ("c", "news")
        with pytest.raises(errors.TopicNotFound):
            await soon(anext(client.follow(["a", "missing"])))
        for wrong in ({}, []):
            with pytest.raises(errors.InvalidRequest, match="names none"):
                client.follow(wrong)
        with pytest.raises(errors.InvalidRequest, match="give one of them"):
            client.follow({"a": 1}, tail=True)


@each_form
@on_loop
async def test_a_wildcard_takes_in_what_is_made_later(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        await client.topic("t42:a").write(1)
        await client.topic("t43:a").write("not this one")
        stream = client.follow(["t42:*"])
        assert [(name, event.data) for name, event in await take(stream, 1)] == [("t42:a", 1)]
        await client.topic("t42:b").write(2)
        await client.topic("t42:a").write(3)
        later = await take(stream, 2)
        assert sorted((name, event.data) for name, event in later) == [("t42:a", 3), ("t42:b", 2)]


@each_form
@on_loop
async def test_the_end_of_one_topic_is_not_the_end_of_the_others(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        for name in ("a", "b"):
            await client.topic(name).write(name)
        cursors = MemoryCursors()
        stream = client.follow(["a", "b"], cursors=cursors, commit_ms=0)
        assert {name for name, _ in await take(stream, 2)} == {"a", "b"}
        await client.topic("a").drop()
        assert await take(stream, 1) == [("a", Dropped(topic="a", deleted=True))]
        await client.topic("b").write("more")
        ((name, event),) = await take(stream, 1)
        assert (name, event.data) == ("b", "more")
        assert cursors.cursors.keys() == {"b"}


@each_form
@on_loop
async def test_a_reader_that_never_waits_lets_others_run(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path, max_limit=1) as client:
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


@each_form
@on_loop
async def test_a_follower_that_was_cancelled_leaves_nothing_behind(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        orders = client.topic("orders")
        await orders.create()
        parked = asyncio.create_task(anext(orders.follow()))
        await settle()
        parked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await parked
        assert (await orders.write(1)).first_seq == 1


@each_form
@on_loop
async def test_a_stream_ends_when_all_its_topics_have(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        for name in ("a", "b"):
            await client.topic(name).write(name)
        stream = client.follow(["a", "b"])
        await take(stream, 2)
        for name in ("a", "b"):
            await client.topic(name).drop()
            assert await take(stream, 1) == [(name, Dropped(topic=name, deleted=True))]
        with pytest.raises(StopAsyncIteration):
            await soon(anext(stream))


@each_form
@on_loop
async def test_a_wildcard_goes_on_where_it_was_in_every_partition(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        events = client.topic("w:events")
        await events.create(partitions=2)
        for partition in (0, 1):
            await events.write_many([{"data": f"old {partition}"}] * 2, partition=partition)
        cursors = MemoryCursors()
        await take_kept(client.follow(["w:*"], cursors=cursors, commit_ms=0), 4)
        assert {name: cursor.seq for name, cursor in cursors.cursors.items()} == {"w:events": 2, "w:events/1": 2}
        for partition in (0, 1):
            await events.write(f"new {partition}", partition=partition)
        stream = client.follow(["w:*"], cursors=cursors, commit_ms=0)
        seen = [event for _, event in await take(stream, 2)]
        assert sorted(event.data for event in seen if isinstance(event, Record)) == ["new 0", "new 1"]
        await events.drop()
        assert await take(stream, 1) == [("w:events", Dropped(topic="w:events", deleted=True))]
        more = asyncio.ensure_future(anext(stream))
        while cursors.cursors:
            await asyncio.sleep(0)
        more.cancel()
        await asyncio.gather(more, return_exceptions=True)


@each_form
@on_loop
async def test_a_wildcard_that_matches_too_many_says_so(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "MATCHED_TOPICS_MAX", 2)
    async with opened(form, tmp_path) as client:
        for name in ("t:1", "t:2"):
            await client.topic(name).write(name)
        stream = client.follow(["t:*"])
        await take(stream, 2)
        await client.topic("t:3").write("one too many")
        with pytest.raises(errors.Throttled, match="one watcher follows at most 2 logs"):
            await soon(anext(stream))
        with pytest.raises(errors.Throttled, match="one watcher follows at most 2 logs"):
            await soon(anext(client.follow(["t:*"])))


@each_form
@on_loop
async def test_one_topic_has_a_name(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        with pytest.raises(errors.InvalidRequest, match=r"client\.follow takes the beginning of names"):
            client.topic("t42:*").follow()


@each_form
@on_loop
async def test_pages_tell_the_partition_and_keep_the_place(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        events = client.topic("p:events")
        await events.create(partitions=2)
        for partition in (0, 1):
            await events.write_many([{"data": f"old {partition}"}] * 2, partition=partition)
        cursors = MemoryCursors()
        pages = await take_kept(client.pages(["p:*"], cursors=cursors, commit_ms=0), 2)
        assert sorted((page.topic, page.partition, [record.data for record in page.records]) for page in pages) == [
            ("p:events", 0, ["old 0", "old 0"]),
            ("p:events", 1, ["old 1", "old 1"]),
        ]
        assert {name: cursor.seq for name, cursor in cursors.cursors.items()} == {"p:events": 2, "p:events/1": 2}
        stream = client.pages(["p:*"], cursors=cursors, commit_ms=0)
        await events.write("new", partition=1)
        (page,) = await take(stream, 1)
        assert (page.partition, [record.data for record in page.records]) == (1, ["new"])
        await events.drop()
        assert await take(stream, 1) == [Dropped(topic="p:events", deleted=True)]
        parked = asyncio.create_task(anext(stream))
        await settle()
        assert not cursors.cursors
        parked.cancel()


@each_form
@on_loop
async def test_a_partition_is_named_behind_a_slash(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        events = client.topic("events")
        await events.create(partitions=2)
        await events.write_many([{"data": 1}, {"data": 2}], partition=1)
        ((name, event),) = await take(client.follow({"events/1": 1}), 1)
        assert (name, event.data) == ("events", 2)
        for wrong in ("events/one", "events/", "events/2", "events/*", "no name"):
            with pytest.raises(errors.InvalidRequest):
                await soon(anext(client.follow([wrong])))
            with pytest.raises(errors.InvalidRequest):
                await soon(anext(client.pages([wrong], from_ts=0)))


@each_form
@on_loop
async def test_a_star_alone_is_every_topic_there_is_and_will_be(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        await client.topic("a").write(1)
        stream = client.follow(["*"])
        assert [(name, event.data) for name, event in await take(stream, 1)] == [("a", 1)]
        await client.topic("other:b").write(2)
        assert [(name, event.data) for name, event in await take(stream, 1)] == [("other:b", 2)]


@each_form
@on_loop
async def test_a_topic_that_went_while_nobody_followed_is_told_once_and_not_the_end(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        events = client.topic("w:events")
        await events.create(partitions=2)
        for partition in (0, 1):
            await events.write(partition, partition=partition)
        cursors = MemoryCursors()
        await take_kept(client.follow(["w:*"], cursors=cursors, commit_ms=0), 2)
        await events.drop()
        await client.topic("w:other").write("still here")
        stream = client.follow(["w:*"], cursors=cursors, commit_ms=0)
        assert await take(stream, 1) == [("w:events", Dropped(topic="w:events", deleted=True))]
        ((name, event),) = await take(stream, 1)
        assert (name, event.data) == ("w:other", "still here")
        assert cursors.cursors == {}, "nobody has to be told again"
        await stream.aclose()
        alone = MemoryCursors()
        await take_kept(client.topic("w:other").follow(cursors=alone, commit_ms=0), 1)
        await client.topic("w:other").drop()
        with pytest.raises(errors.TopicNotFound, match="was deleted"):
            await soon(anext(client.topic("w:other").follow(cursors=alone)))


@each_form
@on_loop
async def test_a_wildcard_goes_on_when_a_topic_was_made_anew_with_fewer_partitions(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        events = client.topic("w:events")
        await events.create(partitions=2)
        for partition in (0, 1):
            await events.write("old", partition=partition)
        cursors = MemoryCursors()
        await take_kept(client.follow(["w:*"], cursors=cursors, commit_ms=0), 2)
        await events.drop()
        await events.write("new")
        seen = await take(client.follow(["w:*"], cursors=cursors, commit_ms=0), 3)
        assert seen[:2] == [
            ("w:events", Dropped(topic="w:events", deleted=True)),
            ("w:events", Gap(1, 1, Reason.RECREATED)),
        ]
        assert seen[2][1].data == "new"
        named = MemoryCursors()
        named.cursors["w:events/1"] = Cursor(1, 1)
        with pytest.raises(errors.InvalidRequest, match="has partitions 0 to 0, not 1"):
            await soon(anext(events.follow(partition=1, cursors=named)))
