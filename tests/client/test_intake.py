"""Jobs on their way to a worker: lost while they wait, left behind when the server is away, or asked for no more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

import topics
from tests.client.rig import on_loop, settle, soon
from tests.contract.jobs import counts, filled
from topics import errors, testing
from topics.client import backoff


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff, "FIRST_MS", 1)
    monkeypatch.setattr(backoff, "LONGEST_MS", 1)


@asynccontextmanager
async def served(count: int) -> AsyncIterator[tuple[testing.TestServer, topics.Client, topics.Queue]]:
    async with testing.server() as server, server.client(attempts_max=1) as client:
        yield server, client, await filled(client, count)


@on_loop
async def test_a_job_that_is_lost_while_it_waits_is_not_handed_out() -> None:
    async with served(3) as (_, client, queue):
        jobs = aiter(queue.work(concurrency=3, lease_ms=90))
        async with await soon(anext(jobs)) as first:
            await client.topic("jobs").delete(before_seq=4)
            while not first.lost:
                await asyncio.sleep(0)
        for data in (4, 5, 6):
            await queue.put(data)
        assert [(await soon(anext(jobs))).data for _ in range(3)] == [4, 5, 6]


@on_loop
async def test_whoever_leaves_the_loop_while_the_server_is_away_leaves_the_rest_to_its_leases() -> None:
    async with served(3) as (server, _, queue):
        jobs = queue.work(concurrency=3, lease_ms=5000)
        await soon(anext(jobs))
        await server.stop()
        await soon(jobs.aclose())  # type: ignore[attr-defined]
        await server.start()
        assert await counts(queue) == (0, 3, 0)
        server.pass_time(5001)
        assert await counts(queue) == (3, 0, 0)


@on_loop
async def test_whoever_leaves_the_loop_of_a_queue_that_is_gone_is_told() -> None:
    async with served(2) as (_, client, queue):
        jobs = queue.work(concurrency=2)
        await soon(anext(jobs))
        await client.topic("jobs").drop()
        with pytest.raises(errors.TopicNotFound, match="does not exist"):
            await soon(jobs.aclose())  # type: ignore[attr-defined]


@on_loop
async def test_whoever_is_cancelled_while_they_wait_for_a_job_gets_none() -> None:
    async with served(0) as (_, _, queue):
        waiting = asyncio.ensure_future(anext(queue.work()))
        await settle()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await soon(waiting)
        await queue.put("for somebody else")
        assert await counts(queue) == (1, 0, 0)


@on_loop
async def test_that_a_server_is_back_is_said(caplog: pytest.LogCaptureFixture) -> None:
    async with served(0) as (server, _, queue):
        waiting = asyncio.ensure_future(anext(queue.work()))
        await settle()
        await server.stop()
        while "no jobs can be claimed, trying again" not in caplog.text:
            await asyncio.sleep(0)
        await server.start()
        await queue.put("at last")
        assert (await soon(waiting)).data == "at last"
        assert "jobs can be claimed again" in caplog.text
        assert caplog.text.count("trying again") == 1, "an outage is told once"


@on_loop
async def test_a_queue_of_several_partitions_that_is_dropped_ends_the_loop() -> None:
    async with testing.server() as server, server.client() as client:
        queue = client.queue("jobs")
        await queue.create(partitions=3)
        waiting = asyncio.ensure_future(anext(queue.work()))
        claiming = server._server._context.host.engine.claiming  # type: ignore[union-attr]
        while claiming.waiting_count() < 3:
            await asyncio.sleep(0)
        await client.topic("jobs").drop()
        with pytest.raises(errors.TopicNotFound):
            await soon(waiting)
