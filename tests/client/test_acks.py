"""Acks of jobs and of messages that go out together: what each gets when somebody gives up, or the server is away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

import topics
from tests.client.rig import on_loop, settle, soon
from topics import errors, testing

each_kind = pytest.mark.parametrize("kind", ["job", "message"])


class Gate:
    """Lets acks pass to the server when it is opened, and counts what each call names."""

    def __init__(self, transport: Any) -> None:
        self._ack = transport.ack
        self.opened = asyncio.Event()
        self.counts: list[int] = []
        transport.ack = self.ack

    async def ack(self, topic: str, request: Any) -> Any:
        self.counts.append(len(request if isinstance(request, Sequence) else request.seqs))
        await self.opened.wait()
        return await self._ack(topic, request)


@asynccontextmanager
async def held(
    kind: str, count: int
) -> AsyncIterator[tuple[testing.TestServer, Any, list[topics.Job] | list[topics.Message]]]:
    async with testing.server() as server, server.client(attempts_max=1) as client:
        if kind == "job":
            await client.queue("work").put_many({"data": number} for number in range(count))
            yield server, client._transport, await client.queue("work").claim(count)
        else:
            heap = client.heap("work")
            await heap.create()
            await heap.enqueue_many([{"payload": number} for number in range(count)])
            yield server, client._transport.heaps, await heap.take(count)


@each_kind
@on_loop
async def test_who_gives_up_waiting_does_not_hold_up_the_others(kind: str) -> None:
    async with held(kind, 4) as (_, transport, (first, second, third, fourth)):
        gate = Gate(transport)
        under_way = asyncio.ensure_future(first.ack())
        gives_up_early = asyncio.ensure_future(second.ack())
        await settle()
        waiting = [asyncio.ensure_future(third.ack()), asyncio.ensure_future(fourth.ack())]
        await settle()
        for each in (gives_up_early, waiting[0]):
            each.cancel()
        gate.opened.set()
        assert await soon(under_way) is True and await soon(waiting[1]) is True
        assert gate.counts == [2, 2], "those of one turn together, and those that came meanwhile"
        for each in (second, third):
            assert await soon(each.ack()) is False, "it was acked, although nobody waited"


@each_kind
@on_loop
async def test_a_call_that_fails_is_told_to_everybody_and_the_next_one_is_made(kind: str) -> None:
    async with held(kind, 2) as (server, transport, jobs):
        gate = Gate(transport)
        waiting = [asyncio.ensure_future(job.ack()) for job in jobs]
        await settle()
        waiting[0].cancel()
        await server.stop()
        gate.opened.set()
        with pytest.raises(errors.ConnectionFailed):
            await soon(waiting[1])
        assert not jobs[1].settled and not jobs[1].lost, "nobody knows, so it can be said again"
        await server.start()
        assert await soon(jobs[1].ack()) is (kind == "job"), "a heap gives back what was leased when it stops"


@each_kind
@on_loop
async def test_what_is_acked_is_not_lost_when_an_extend_finds_it_gone(kind: str) -> None:
    async with held(kind, 1) as (_, transport, (job,)):
        ack, answered = transport.ack, asyncio.Event()

        async def late(topic: str, request: Any) -> Any:
            done = await ack(topic, request)
            await answered.wait()
            return done

        transport.ack = late
        acking = asyncio.ensure_future(job.ack())
        while await job.extend():
            await asyncio.sleep(0)
        assert job.lost, "as far as is known by now"
        answered.set()
        assert await soon(acking) is True
        assert job.settled and not job.lost


@each_kind
@on_loop
async def test_what_is_settled_is_not_to_be_had_any_more(kind: str) -> None:
    async with held(kind, 1) as (_, _, (job,)):
        assert await job.ack() is True
        assert await job.ack() is False
        assert await job.nack() is False
        assert await job.extend() is False
        assert job.settled and not job.lost
