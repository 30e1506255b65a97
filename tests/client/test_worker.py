"""A worker and a server that comes and goes."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest

import topics
from tests.client.rig import on_loop, settle, soon
from topics import errors, testing
from topics.client import backoff
from topics.client import worker as workers


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
        together = asyncio.Barrier(10)

        async def handle(job: topics.Job) -> None:
            await together.wait()

        assert (await soon(queue.run(handle, concurrency=10, until_empty=True))).done == 10
        assert (await queue.state()).count == 0


@on_loop
async def test_a_single_job_that_is_refused_is_an_error_and_not_cut_any_further() -> None:
    async with testing.server() as server, server.client() as client:
        queue = await jobs(client, "one")
        (job,) = await queue.claim()
        with pytest.raises(errors.InvalidRequest, match="lease_ms"):
            await job.extend(-1)
        assert await job.ack()


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


@on_loop
async def test_a_failure_that_comes_too_late_is_a_job_that_was_lost(caplog: pytest.LogCaptureFixture) -> None:
    async with testing.server() as server, server.client() as client:
        queue = await jobs(client, "only")

        async def handle(job: topics.Job) -> None:
            server.pass_time(60_001)
            await client.queue("jobs", node="another").claim()
            raise ValueError("too late")

        worked = await soon(queue.run(handle, until_empty=True, lease_ms=60_000))
        assert (worked.done, worked.failed, worked.lost) == (0, 0, 1)
        assert "<Job jobs/1 delivery 1> was lost" in caplog.text


@on_loop
async def test_what_cannot_be_given_back_when_a_worker_ends_is_left_to_its_lease(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with testing.server() as server, server.client(attempts_max=1) as client:
        queue = await jobs(client, "settled", "held")
        begun, settled = asyncio.Event(), asyncio.Event()

        async def handle(job: topics.Job) -> None:
            if job.data == "settled":
                await job.ack()
                settled.set()
            else:
                begun.set()
            await asyncio.Event().wait()

        running = asyncio.create_task(queue.run(handle, concurrency=2, lease_ms=60_000))
        await soon(asyncio.gather(begun.wait(), settled.wait()))
        await server.stop()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await soon(running)
        assert "<Job jobs/2 delivery 1> could not be given back, and is free when its lease runs out" in caplog.text
        assert "jobs/1" not in caplog.text, "there was nothing to give back"
        await server.start()
        server.pass_time(60_001)
        assert [job.data for job in await queue.claim(2)] == ["held"]


@on_loop
async def test_a_job_that_was_done_while_the_server_was_away_may_be_lost_by_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with testing.server() as server, server.client(attempts_max=1) as client:
        queue = await jobs(client, "only")
        begun, go_on, stop = asyncio.Event(), asyncio.Event(), asyncio.Event()
        held: list[topics.Job] = []

        async def handle(job: topics.Job) -> None:
            held.append(job)
            begun.set()
            await go_on.wait()

        acks: list[object] = []
        ack = queue._transport.ack

        async def counting(topic: str, request: object) -> object:
            acks.append(request)
            return await ack(topic, request)  # type: ignore[arg-type]

        queue._transport.ack = counting  # type: ignore[method-assign,assignment]
        monkeypatch.setattr(backoff, "FIRST_MS", 1)
        running = asyncio.create_task(queue.run(handle, stop=stop))
        await soon(begun.wait())
        await server.stop()
        go_on.set()
        while len(acks) < 3:
            await asyncio.sleep(0)
        # As if it had turned out that somebody else has it.
        held[0]._held.lose()
        stop.set()
        worked = await soon(running)
        assert (worked.done, worked.lost) == (0, 1)
        await server.start()


@on_loop
async def test_a_worker_that_ends_by_itself_leaves_nobody_waiting_for_its_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(workers, "STOP_LOOK_S", 0.001)
    async with testing.server() as server, server.client() as client:
        queue = await jobs(client, "only")
        looked = threading.Event()

        class Looked(threading.Event):
            def wait(self, timeout: float | None = None) -> bool:
                looked.set()
                return super().wait(timeout)

        def handle(job: topics.sync.Job) -> None:
            assert looked.wait(10)

        worked = await soon(queue.run(handle, until_empty=True, stop=Looked()))
        assert worked.done == 1
        while any(thread.name == "topics stop" for thread in threading.enumerate()):
            await asyncio.sleep(0)


async def _nothing(job: topics.Job) -> None:
    return
