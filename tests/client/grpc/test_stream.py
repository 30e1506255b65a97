"""A consumer's stream, and a server that ends it, says strange things or is slow to answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

import grpc
import pytest

import topics
from tests.client.grpc.scripted import Script, Side, scripted
from tests.client.rig import on_loop, soon
from topics import errors
from topics.client import backoff
from topics.proto import messages as proto


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff, "FIRST_MS", 1)
    monkeypatch.setattr(backoff, "LONGEST_MS", 1)


@asynccontextmanager
async def popping(*scripts: Script, prefetch: int = 1) -> AsyncIterator[AsyncIterator[topics.Message]]:
    async with scripted(*scripts) as client, aclosing(client.heap("jobs").pop(prefetch=prefetch)) as messages:
        yield messages


async def deliver_last(side: Side) -> None:
    await side.open()
    await side.deliver("last")
    await side.ended()


async def end_at_once(side: Side) -> None:
    await side.heard("open")


async def end_when_opened(side: Side) -> None:
    await side.open()


@pytest.mark.parametrize("script", [end_at_once, end_when_opened])
@on_loop
async def test_a_stream_that_its_server_ends_is_begun_again(script: Script) -> None:
    async with popping(script, deliver_last) as messages:
        assert (await soon(anext(messages))).data == b"last"


@on_loop
async def test_what_a_server_says_when_it_refuses_ends_the_loop() -> None:
    async def refuse(side: Side) -> None:
        await side.heard("open")
        await side.fail(grpc.StatusCode.PERMISSION_DENIED, "not for you")

    async with popping(refuse) as messages:
        with pytest.raises(errors.Forbidden, match="not for you"):
            await soon(anext(messages))


@on_loop
async def test_a_server_that_does_not_open_a_stream_in_time_is_told_so() -> None:
    async def say_nothing(side: Side) -> None:
        await side.ended()

    async with scripted(say_nothing, timeout_ms=50) as client:
        with pytest.raises(errors.TimedOut, match="no stream of messages was opened within 50 ms"):
            await soon(anext(client.heap("jobs").pop()))


@on_loop
async def test_what_came_on_a_stream_that_is_over_is_lost_and_not_handed_out() -> None:
    over = asyncio.Event()

    async def end_later(side: Side) -> None:
        await side.open()
        await side.deliver("first", "second")
        await over.wait()

    async with popping(end_later, deliver_last, prefetch=2) as messages:
        first = await soon(anext(messages))
        over.set()
        assert await soon(first.ack()) is False
        assert (await soon(anext(messages))).data == b"last"
        assert first.lost and not first.settled
        assert await first.ack() is False and await first.nack() is False and await first.extend() is False


@on_loop
async def test_a_settle_that_is_never_answered_is_lost_with_its_stream() -> None:
    async def hear_and_break(side: Side) -> None:
        await side.open()
        await side.deliver("first")
        await side.heard("settle")
        await side.fail(grpc.StatusCode.UNAVAILABLE, "gone")

    async with popping(hear_and_break, deliver_last) as messages:
        first = await soon(anext(messages))
        assert await soon(first.nack(reason="no")) is False
        assert first.lost


@on_loop
async def test_answers_find_who_waits_when_somebody_has_given_up() -> None:
    heard, answer = asyncio.Event(), asyncio.Event()

    async def answer_late(side: Side) -> None:
        await side.open()
        await side.deliver("first", "second")
        await side.heard("settle")
        heard.set()
        # Nothing that this client knows.
        await side.say(opened=proto.WorkOpened())
        await answer.wait()
        await side.say(settled=proto.Settled(extended=1))
        await side.heard("settle")
        await side.say(settled=proto.Settled(nacked=1))
        await side.ended()

    async with popping(answer_late, prefetch=2) as messages:
        first, second = await soon(anext(messages)), await soon(anext(messages))
        giving_up = asyncio.create_task(first.extend(1000))
        await soon(heard.wait())
        giving_up.cancel()
        await asyncio.gather(giving_up, return_exceptions=True)
        answer.set()
        assert await soon(second.nack()) is True
        assert second.settled and not first.lost


@on_loop
async def test_who_has_given_up_is_not_told_of_the_end() -> None:
    heard, over = asyncio.Event(), asyncio.Event()

    async def hear_and_end(side: Side) -> None:
        await side.open()
        await side.deliver("first")
        await side.heard("settle")
        heard.set()
        await over.wait()

    async with popping(hear_and_end, deliver_last) as messages:
        first = await soon(anext(messages))
        giving_up = asyncio.create_task(first.extend(1000))
        await soon(heard.wait())
        giving_up.cancel()
        await asyncio.gather(giving_up, return_exceptions=True)
        over.set()
        assert (await soon(anext(messages))).data == b"last"
        assert first.lost


@on_loop
async def test_a_client_that_is_closed_ends_its_consumers_and_says_so() -> None:
    async with scripted(deliver_last) as client:
        heap = client.heap("jobs")
        async with aclosing(heap.pop()) as messages:
            first = await soon(anext(messages))
            waiting = asyncio.ensure_future(anext(messages))
            await asyncio.sleep(0)
            await client.close()
            with pytest.raises(errors.ShuttingDown, match="the client is closed"):
                await soon(waiting)
            assert await first.ack() is False
        for call in (heap.info(), anext(heap.pop())):
            with pytest.raises(errors.ShuttingDown, match="use it inside `async with`"):
                await soon(call)
