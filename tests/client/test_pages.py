"""What an event stream says beside records, to a follower: errors after which it goes on, and ones that end it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

import topics
from tests.client.rig import on_loop, settle, soon, take
from tests.client.scripted import Side, scripted
from tests.client.way import Way, leading
from topics import Client, Gap, Reason, Record, errors, testing
from topics.client import backoff

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
RECORD = (
    b"event: record\nid: %s\n"
    b'data: {"topic":"a","records":[{"$seq":1,"$ts":1,"data":"first"}],"to_seq":1,"head_seq":1,"earliest_seq":1}\n\n'
)


def error(code: int, more: bytes = b"") -> bytes:
    return b'event: error\ndata: {"code":%d,"error":"so it is"%b}\n\n' % (code, more)


class Interjects(Way):
    """The first event streams are answered by the test; then they end."""

    def __init__(self, url: str, streams: tuple[bytes, ...]) -> None:
        super().__init__(url)
        self._streams = list(streams)
        self.asked: list[bytes] = []
        """The heads of requests for a session or its stream."""

    def wants(self, request: bytes) -> bool:
        if b" /v0/watch" in request:
            self.asked.append(request)
        return request.startswith(b"GET /v0/watch/") and bool(self._streams)

    async def take(
        self, request: bytes, client: asyncio.StreamWriter, server: tuple[asyncio.StreamReader, asyncio.StreamWriter]
    ) -> None:
        client.write(HEAD + self._streams.pop(0))


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff, "FIRST_MS", 1)
    monkeypatch.setattr(backoff, "LONGEST_MS", 1)


@asynccontextmanager
async def following(*streams: bytes) -> AsyncIterator[tuple[Client, Interjects]]:
    """A client whose first streams are these, of a server that has one record in topic `a`."""
    async with testing.server() as server:
        async with server.client() as client:
            await client.topic("a").write("first")
        way = Interjects(server.url, streams)
        async with leading(way) as url, topics.connect(url, attempts_max=1) as client:
            yield client, way


def data(event: object) -> object:
    assert isinstance(event, Record)
    return event.data


@pytest.mark.parametrize(
    "stream",
    [b"", error(400), error(408), error(409), b": only a comment\n\n"],
    ids=["end", "400", "408", "409", "beat"],
)
@on_loop
async def test_a_stream_that_ends_before_anything_came_is_begun_anew(stream: bytes) -> None:
    async with following(stream) as (client, way):
        events = client.topic("a").follow()
        assert data(await soon(anext(events))) == "first"
        assert [head.split(b" ", 1)[0] for head in way.asked] == [b"POST", b"GET", b"POST", b"GET"]
        await events.aclose()


@pytest.mark.parametrize("code", [408, 409])
@on_loop
async def test_a_stream_that_is_opened_again_goes_on_behind_what_came(code: int) -> None:
    async with following(RECORD % b"r-7" + error(code), b"") as (client, way):
        events = client.topic("a").follow()
        assert data(await soon(anext(events))) == "first"
        await client.topic("a").write("second")
        waiting = asyncio.ensure_future(anext(events))
        while len(way.asked) < 3:
            await asyncio.sleep(0)
        assert b"Last-Event-ID: r-7\r\n" in way.asked[2], "the same session, behind the same event"
        assert data(await soon(waiting)) == "second"
        await events.aclose()


@on_loop
async def test_a_session_that_does_not_know_its_last_event_is_given_up() -> None:
    async with following(RECORD % b"r-7" + error(400)) as (client, way):
        events = client.topic("a").follow()
        assert data(await soon(anext(events))) == "first"
        await client.topic("a").write("second")
        assert data(await soon(anext(events))) == "second", "and not the first one again"
        assert b"Last-Event-ID" not in way.asked[3]
        await events.aclose()


@on_loop
async def test_how_fast_it_goes_is_no_error_and_how_much_is() -> None:
    paced = error(429, b',"retry_after_ms":5')
    async with following(paced + RECORD % b"r-1" + error(429)) as (client, _):
        events = client.topic("a").follow()
        assert data(await soon(anext(events))) == "first"
        with pytest.raises(errors.Throttled, match="so it is") as much:
            await soon(anext(events))
        assert much.value.detail["limit"] == "matched_topics"


@on_loop
async def test_what_was_lost_of_a_topic_that_is_gone_by_now_has_more_than_one_reason() -> None:
    lost = (
        b'event: tombstone\nid: r-1\ndata: {"topic":"gone","gap_from":1,"gap_to":3,"reason":"from_seq_too_old",'
        b'"head_seq":5,"earliest_seq":4}\n\n'
    )
    async with following(lost) as (client, _):
        events = client.follow(["*"])
        seen = await take(events, 2)
        assert ("gone", Gap(1, 3, Reason.MIXED)) in seen
        await events.aclose()


@on_loop
async def test_a_wildcard_from_its_end_on_tells_only_what_is_new() -> None:
    async with following() as (client, _):
        parted = client.topic("parted")
        await parted.create(partitions=2)
        await parted.write("old", partition=1)
        events = client.follow(["*"], tail=True)
        waiting = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0)
        while not waiting.done():
            await parted.write("new", partition=1)
            await settle()
        topic, event = await waiting
        assert (topic, data(event)) == ("parted", "new")
        await events.aclose()


@on_loop
async def test_an_answer_that_is_no_session_says_so() -> None:
    async def strange(side: Side) -> None:
        while head := await side.request():
            told = b'{"topics":[]}' if head.startswith(b"GET") else b"<html>"
            side.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(told), told))

    async with scripted(strange) as server, topics.connect(str(server.address)) as client:
        with pytest.raises(errors.Internal, match="not one that this client understands"):
            await soon(anext(client.follow(["a*"])))
