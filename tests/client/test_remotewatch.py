"""A watch whose server forgets, deletes and comes back; the rest is in tests/contract/test_sdk_follow.py."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

import topics
from tests.client.rig import on_loop, soon, take
from tests.client.way import Way, leading
from topics import Client, Cursor, Dropped, Gap, MemoryCursors, Reason, Record, errors, testing
from topics.client import backoff
from topics.testing import TestServer


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff, "FIRST_MS", 1)
    monkeypatch.setattr(backoff, "LONGEST_MS", 1)


@asynccontextmanager
async def served() -> AsyncIterator[tuple[TestServer, Client]]:
    async with testing.server() as server, server.client(attempts_max=1000, read_timeout_ms=2000) as client:
        yield server, client


def data(seen: tuple[str, object]) -> tuple[str, object]:
    topic, event = seen
    assert isinstance(event, Record)
    return topic, event.data


@on_loop
async def test_one_connection_is_enough_for_many_topics() -> None:
    async with served() as (_, client):
        names = [f"t{number:03}" for number in range(100)]
        for name in names:
            await client.topic(name).write(name, config={"durability": "ephemeral"})
        stream = client.follow(names)
        seen = await take(stream, 100)
        assert sorted(map(data, seen)) == [(name, name) for name in names]
        assert len(client._transport._caller._waits) == 1  # type: ignore[attr-defined]
        await stream.aclose()
        assert len(client._transport._caller._waits) == 0  # type: ignore[attr-defined]


@on_loop
async def test_a_topic_that_went_while_the_server_was_away_is_told() -> None:
    async with served() as (server, client):
        for name in ("a", "b"):
            await client.topic(name).write(name)
        stream = client.follow(["a", "b"])
        await take(stream, 2)
        waiting = asyncio.create_task(anext(stream))
        await server.stop()
        await server.start()
        async with server.client() as other:
            # Whether before or after the follower is back.
            await other.topic("a").drop()
        assert await soon(waiting) == ("a", Dropped(topic="a", deleted=True))
        await client.topic("b").write("more")
        assert list(map(data, await take(stream, 1))) == [("b", "more")]


@on_loop
async def test_a_topic_that_was_made_anew_is_told_and_read_from_its_beginning() -> None:
    cursors = MemoryCursors()
    async with served() as (_, client):
        topic = client.topic("a")
        await topic.write_many([{"data": "old"}] * 2)
        await client.topic("b").write("b")
        cursors.cursors = {"a": Cursor(2, (await topic.state()).epoch), "gone": Cursor(5, 1)}
        await topic.drop()
        await topic.write_many([{"data": n} for n in range(3)])
        stream = client.follow(["a", "gone"], cursors=cursors, commit_ms=0)
        dropped, gap, *records = await take(stream, 5)
        assert dropped == ("gone", Dropped(topic="gone", deleted=True))
        assert isinstance(gap[1], Gap) and gap[1].reason is Reason.RECREATED
        assert [data(each) for each in records] == [("a", 0), ("a", 1), ("a", 2)]
        await topic.write("last")
        await take(stream, 1)
        await stream.aclose()
        assert cursors.cursors == {"a": Cursor(3, (await topic.state()).epoch)}


@on_loop
async def test_why_something_was_lost_is_found_out() -> None:
    async with served() as (_, client):
        recent = client.topic("recent")
        await recent.create(cap_records=2)
        await recent.write_many([{"data": n} for n in range(1, 6)])
        gap, *records = await take(client.follow(["recent"]), 3)
        assert gap == ("recent", Gap(1, 3, Reason.CAP))
        assert [data(each)[1] for each in records] == [4, 5]


@on_loop
async def test_a_wildcard_follows_every_partition_and_tells_an_end_once() -> None:
    async with served() as (_, client):
        events = client.topic("w:events")
        await events.create(partitions=3)
        for partition in range(3):
            await events.write(partition, partition=partition)
        stream = client.follow(["w:*"], node="me", match=["tag", "Glob", "x*"])
        everything = client.follow(["w:*"])
        assert sorted(data(each)[1] for each in await take(everything, 3)) == [0, 1, 2]
        await events.write_many([{"data": "mine", "tag": "x", "node": "me"}, {"data": "theirs", "tag": "x1"}])
        assert list(map(data, await take(stream, 1))) == [("w:events", "theirs")]
        await take(everything, 2)
        await events.drop()
        await client.topic("w:other").write("next")
        last, following = await take(everything, 2)
        assert last == ("w:events", Dropped(topic="w:events", deleted=True))
        assert data(following) == ("w:other", "next")


@on_loop
async def test_what_is_refused_is_raised() -> None:
    async with testing.server(api_keys="k:read:allowed:,all") as server:
        async with server.client("all") as client:
            await client.topic("other").write(1)
        async with server.client("k") as client:
            with pytest.raises(errors.Forbidden):
                await soon(anext(client.follow(["other"])))
        async with server.client("wrong") as client:
            with pytest.raises(errors.Unauthorized):
                await soon(anext(client.follow(["other"])))
    with pytest.raises(errors.ConnectionFailed):
        async with server.client(attempts_max=1) as client:
            await soon(anext(client.follow(["other"])))


class LosesTheFirst(Way):
    """The first event stream is lost, although the server has written its first event."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.lost: list[bytes] = []

    def wants(self, request: bytes) -> bool:
        return request.startswith(b"GET /v0/watch/") and not self.lost

    async def take(
        self, request: bytes, client: asyncio.StreamWriter, server: tuple[asyncio.StreamReader, asyncio.StreamWriter]
    ) -> None:
        reader, writer = server
        writer.write(request)
        self.lost.append(await reader.readuntil(b"event: record"))
        client.transport.abort()


@pytest.mark.parametrize("names", [["a"], ["a", "t:*"]], ids=["one", "many"])
@on_loop
async def test_what_was_written_and_never_came_is_told_again(names: list[str]) -> None:
    async with served() as (server, writing):
        await writing.topic("a").write_many([{"data": 1}, {"data": 2}])
        way = LosesTheFirst(server.url)
        async with leading(way) as url, topics.connect(url) as client:
            stream = client.follow(names)
            assert list(map(data, await take(stream, 2))) == [("a", 1), ("a", 2)]
            assert len(way.lost) == 1
            await stream.aclose()


@on_loop
async def test_a_follower_says_when_its_server_is_away_and_when_it_is_back() -> None:
    heard: list[str | None] = []
    async with testing.server() as server:
        await_back = asyncio.Event()

        def tell(error: errors.TopicsError | None) -> None:
            heard.append(None if error is None else error.code)
            if error is None:
                await_back.set()

        async with topics.connect(server.url, attempts_max=1, on_outage=tell) as client:
            await client.topic("a").write(1)
            stream = client.topic("a").follow()
            await take(stream, 1)
            waiting = asyncio.create_task(anext(stream))
            await server.stop()
            await server.start()
            async with server.client() as other:
                await other.topic("a").write(2)
            event = await soon(waiting)
            assert isinstance(event, Record) and event.data == 2
            await soon(await_back.wait())
            assert heard[-1] is None and len(heard) == 2 and heard[0] is not None
            await stream.aclose()


@on_loop
async def test_what_cannot_be_read_ends_the_stream() -> None:
    async with served() as (server, client):
        await client.topic("a").write(1)
        stream = client.topic("a").follow()
        await take(stream, 1)
        engine = server._server._context.host.engine
        (watched,) = engine.watch._feeds.values()
        (cohort,) = watched._cohorts.values()
        watched._fail(next(iter(cohort.members)), errors.Damaged("a block cannot be read"))
        with pytest.raises(errors.Internal, match="a block cannot be read"):
            await soon(anext(stream))
