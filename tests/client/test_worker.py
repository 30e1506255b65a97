"""A worker and a server that comes and goes."""

from __future__ import annotations

import asyncio
import logging

import pytest

import topics
from tests.client.rig import on_loop, settle, soon
from topics import errors, testing


async def jobs(client: topics.Client, *datas: object) -> topics.Queue:
    queue = client.queue("jobs")
    await queue.put_many({"data": data} for data in datas)
    return queue


@on_loop
async def test_a_worker_that_waits_goes_on_when_the_server_is_back() -> None:
    async with testing.server() as server, server.client() as client:
        queue = await jobs(client, "first")
        stop, seen = asyncio.Event(), asyncio.Queue[object]()

        async def handle(job: topics.Job) -> None:
            seen.put_nowait(job.data)

        running = asyncio.create_task(queue.run(handle, stop=stop))
        assert await soon(seen.get()) == "first"
        await server.stop()
        await server.start()
        await queue.put("second")
        assert await soon(seen.get()) == "second"
        stop.set()
        assert (await soon(running)).done == 2


@on_loop
async def test_what_was_done_while_the_server_was_away_is_acked_when_it_is_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with testing.server() as server, server.client(attempts_max=1) as client:
        queue = await jobs(client, "only")
        begun, go_on, stop = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def handle(job: topics.Job) -> None:
            begun.set()
            await go_on.wait()

        running = asyncio.create_task(queue.run(handle, stop=stop))
        await soon(begun.wait())
        await server.stop()
        go_on.set()
        while "is over, which cannot be told now, trying again" not in caplog.text:
            await settle()
        await server.start()
        while (await queue.state()).count:
            await settle()
        stop.set()
        worked = await soon(running)
        assert (worked.done, worked.lost) == (1, 0)


@on_loop
async def test_a_stop_does_not_wait_for_a_server_that_is_away(caplog: pytest.LogCaptureFixture) -> None:
    async with testing.server() as server, server.client(attempts_max=1) as client:
        queue = client.queue("jobs")
        await queue.create()
        stop = asyncio.Event()
        running = asyncio.create_task(queue.run(_nothing, stop=stop))
        await settle()
        await server.stop()
        with caplog.at_level(logging.WARNING, "topics.worker"):
            while "no jobs can be claimed, trying again" not in caplog.text:
                await settle()
        stop.set()
        assert (await soon(running)).done == 0
        await server.start()


@on_loop
async def test_a_server_that_was_never_there_is_an_error() -> None:
    async with topics.connect("http://127.0.0.1:9", attempts_max=1) as client:
        with pytest.raises(errors.ConnectionFailed):
            await client.queue("jobs").run(_nothing)


@on_loop
async def test_acks_of_one_turn_are_one_call() -> None:
    async with testing.server() as server, server.client() as client:
        queue = await jobs(client, *range(100))
        claimed = await queue.claim(100)
        calls: list[int] = []
        ack = queue._transport.ack

        async def counting(topic: str, request: object) -> object:
            calls.append(len(request.seqs))  # type: ignore[attr-defined]
            return await ack(topic, request)  # type: ignore[arg-type]

        queue._transport.ack = counting  # type: ignore[method-assign,assignment]
        assert all(await asyncio.gather(*(job.ack() for job in claimed)))
        assert calls == [100]


@on_loop
async def test_what_is_more_than_the_server_takes_at_once_is_said_in_parts() -> None:
    async with testing.server(max_claim=3) as server, server.client() as client:
        queue = await jobs(client, *range(10))
        claimed = [job for _ in range(4) for job in await queue.claim(10)]
        assert [job.data for job in claimed] == list(range(10))
        assert all(await asyncio.gather(*(job.ack() for job in claimed)))
        assert (await queue.state()).count == 0


@on_loop
async def test_a_function_may_be_an_object_and_may_give_a_coroutine() -> None:
    class Handler:
        async def __call__(self, job: topics.Job) -> None:
            seen.append(job.data)

    async def later(data: object) -> None:
        seen.append(data)

    seen: list[object] = []
    async with testing.server() as server, server.client() as client:
        queue = await jobs(client, "object")
        await soon(queue.run(Handler(), until_empty=True))
        await queue.put("coroutine")
        await soon(queue.run(lambda job: later(job.data), until_empty=True))
    assert seen == ["object", "coroutine"]


@on_loop
async def test_an_ack_that_can_never_be_said_ends_the_worker() -> None:
    async with testing.server() as server, server.client() as client:
        queue = await jobs(client, "first", "second")

        async def handle(job: topics.Job) -> None:
            await client.topic("jobs").drop()

        with pytest.raises(errors.TopicNotFound):
            await soon(queue.run(handle))


async def _nothing(job: topics.Job) -> None:
    return
