"""Workers through the SDK, in each of its forms."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import topics
from tests.client.rig import on_loop, settle, soon
from tests.contract.jobs import counts, filled
from tests.contract.sdk import each_form
from tests.contract.sdk import opened_in_time as opened
from topics import errors

NEVER_MS = 86_400_000


@each_form
@on_loop
async def test_work_gives_jobs_as_they_come(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        queue = await filled(client, 2)
        jobs = aiter(queue.work())
        for expected in (1, 2):
            async with await soon(anext(jobs)) as job:
                assert job.data == expected
        waiting = asyncio.ensure_future(anext(jobs))
        await settle()
        await queue.put(3)
        async with await soon(waiting) as job:
            assert job.data == 3


@each_form
@on_loop
async def test_no_more_jobs_are_out_than_a_worker_takes(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        queue = await filled(client, 5)
        jobs: AsyncIterator[topics.Job] = aiter(queue.work(concurrency=2))
        one, two = await soon(anext(jobs)), await soon(anext(jobs))
        third = asyncio.ensure_future(anext(jobs))
        await settle()
        assert not third.done() and await counts(queue) == (3, 2, 0)
        await two.ack()
        three = await soon(third)
        assert three.data == 3
        await asyncio.gather(one.ack(), three.ack())
        assert await counts(queue) == (2, 0, 0)


@each_form
@on_loop
async def test_whoever_leaves_the_loop_gives_back_what_was_claimed_ahead(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        queue = await filled(client, 5)
        jobs = queue.work(concurrency=5)
        async with await soon(anext(jobs)):
            assert await counts(queue) == (0, 5, 0)
        await jobs.aclose()  # type: ignore[attr-defined]
        assert await counts(queue) == (4, 0, 0)


@each_form
@on_loop
async def test_a_job_that_nobody_says_anything_about_makes_room_when_its_lease_is_over(
    tmp_path: Path, form: str
) -> None:
    async with opened(form, tmp_path) as client:
        queue = await filled(client, 1)
        jobs = aiter(queue.work(lease_ms=100))
        forgotten = await soon(anext(jobs))
        again = await soon(anext(jobs))
        assert (again.seq, again.deliveries, forgotten.settled) == (1, 2, False)


@each_form
@on_loop
async def test_a_function_does_all_jobs_and_some_again(
    tmp_path: Path, form: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(form, tmp_path) as client:
        queue = await filled(client, 50)
        tries: dict[int, int] = {}
        at_once = most_at_once = 0

        async def handle(job: topics.Job) -> None:
            nonlocal at_once, most_at_once
            at_once += 1
            most_at_once = max(most_at_once, at_once)
            tries[job.data] = job.deliveries
            await asyncio.sleep(0)
            at_once -= 1
            if job.data % 10 == 0 and job.deliveries < 3:
                raise ValueError("not yet")

        with caplog.at_level(logging.CRITICAL, "topics.worker"):
            worked = await soon(queue.run(handle, concurrency=8, until_empty=True, retry_ms=0))
        assert (worked.done, worked.failed, worked.lost) == (50, 10, 0)
        assert tries == {number: 3 if number % 10 == 0 else 1 for number in range(1, 51)}
        assert 1 < most_at_once <= 8
        assert await counts(queue) == (0, 0, 0)


@each_form
@on_loop
async def test_a_failure_is_logged_and_waits_for_its_next_try(
    tmp_path: Path, form: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(form, tmp_path) as client:
        queue = await filled(client, 1)

        async def handle(job: topics.Job) -> None:
            raise ValueError("no good")

        worked = await soon(queue.run(handle, until_empty=True, retry_ms=NEVER_MS, retry_ms_max=NEVER_MS))
        assert (worked.done, worked.failed) == (0, 1)
        assert "<Job jobs/1 delivery 1> failed; it is tried again in" in caplog.text and "no good" in caplog.text
        assert await counts(queue) == (0, 0, 1)


@each_form
@on_loop
async def test_a_plain_function_runs_in_threads_at_once(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        queue = await filled(client, 8)
        together = threading.Barrier(4)
        names: set[str] = set()

        def handle(job: topics.sync.Job) -> None:
            together.wait(10)
            names.add(threading.current_thread().name)
            if job.data == 8:
                job.complete({"results": [{"data": "eight"}]})
            elif job.data == 7:
                assert job.extend(60_000)

        worked = await soon(queue.run(handle, concurrency=4, until_empty=True))
        assert worked.done == 8 and len(names) == 4
        assert (await client.topic("results").state()).count == 1


@each_form
@on_loop
async def test_while_a_function_runs_its_lease_is_kept(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        queue = await filled(client, 1)
        deliveries: list[int] = []

        async def handle(job: topics.Job) -> None:
            deliveries.append(job.deliveries)
            assert await client.queue("jobs").claim(wait_ms=1000) == [], "five leases long"

        worked = await soon(queue.run(handle, lease_ms=200, until_empty=True))
        assert (worked.done, deliveries) == (1, [1])


@each_form
@on_loop
async def test_a_function_whose_job_is_gone_is_cancelled(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        queue = await filled(client, 1)
        begun = asyncio.Event()
        cancelled = asyncio.Event()

        async def handle(job: topics.Job) -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                assert job.lost
                cancelled.set()
                raise

        running = asyncio.create_task(queue.run(handle, lease_ms=300, until_empty=True))
        await soon(begun.wait())
        await client.topic("jobs").delete(before_seq=2)
        worked = await soon(running)
        assert cancelled.is_set() and (worked.done, worked.lost) == (0, 1)


@each_form
@on_loop
async def test_a_stop_finishes_what_is_under_way(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        queue = await filled(client, 5)
        begun, go_on, stop = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def handle(job: topics.Job) -> None:
            begun.set()
            await go_on.wait()

        running = asyncio.create_task(queue.run(handle, concurrency=2, stop=stop))
        await soon(begun.wait())
        stop.set()
        await settle()
        go_on.set()
        worked = await soon(running)
        assert worked.done in (1, 2)
        assert await counts(queue) == (5 - worked.done, 0, 0)


@each_form
@on_loop
async def test_a_stop_ends_a_worker_that_waits(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        queue = await filled(client, 0)
        for stop in (asyncio.Event(), threading.Event()):
            running = asyncio.create_task(queue.run(_nothing, stop=stop))
            await settle()
            stop.set()
            assert (await soon(running)).done == 0


@each_form
@on_loop
async def test_what_is_not_done_in_time_is_given_back(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        queue = await filled(client, 1)
        begun, stop = asyncio.Event(), asyncio.Event()

        async def handle(job: topics.Job) -> None:
            begun.set()
            await asyncio.Event().wait()

        running = asyncio.create_task(queue.run(handle, stop=stop, shutdown_ms=1))
        await soon(begun.wait())
        stop.set()
        assert (await soon(running)).done == 0
        assert await counts(queue) == (1, 0, 0)


@each_form
@on_loop
async def test_a_worker_that_is_cancelled_gives_everything_back(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        queue = await filled(client, 5)
        begun = asyncio.Event()

        async def handle(job: topics.Job) -> None:
            begun.set()
            await asyncio.Event().wait()

        running = asyncio.create_task(queue.run(handle, concurrency=3))
        await soon(begun.wait())
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await soon(running)
        assert await counts(queue) == (5, 0, 0)


@each_form
@on_loop
async def test_a_worker_ends_when_its_queue_does(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        queue = await filled(client, 0)
        running = asyncio.create_task(queue.run(_nothing))
        await settle()
        await client.topic("jobs").drop()
        with pytest.raises(errors.TopicNotFound):
            await soon(running)


@each_form
@on_loop
async def test_wrong_options_are_refused_by_name(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        queue = await filled(client, 0)
        with pytest.raises(errors.InvalidRequest, match="concurrency must be a whole number from 1"):
            await queue.run(_nothing, concurrency=0)
        with pytest.raises(errors.InvalidRequest, match="handler must be a function of a job, not str"):
            await queue.run("handle", until_empty=True)  # type: ignore[arg-type]
        with pytest.raises(errors.InvalidRequest, match="retry_ms must be"):
            await queue.run(_nothing, retry_ms=-1)


@each_form
@on_loop
async def test_a_worker_does_the_jobs_of_all_partitions_unless_one_is_named(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        queue = client.queue("parted")
        await queue.create(partitions=3)
        for partition in (0, 1, 2, 2):
            await queue.put(partition, partition=partition)
        assert (await soon(queue.run(_nothing, partition=2, until_empty=True))).done == 2
        seen: asyncio.Queue[tuple[int, int]] = asyncio.Queue()
        stop = asyncio.Event()

        async def handle(job: topics.Job) -> None:
            seen.put_nowait((job.partition, job.data))

        running = asyncio.create_task(queue.run(handle, concurrency=2, stop=stop))
        assert {await soon(seen.get()), await soon(seen.get())} == {(0, 0), (1, 1)}
        for partition in (2, 0):
            await queue.put("late", partition=partition)
            assert await soon(seen.get()) == (partition, "late")
        stop.set()
        assert (await soon(running)).done == 4
        states = [await queue.state(partition=partition) for partition in range(3)]
        assert [state.count for state in states] == [0, 0, 0]


@each_form
@on_loop
async def test_what_several_partitions_have_at_once_waits_its_turn(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        queue = client.queue("parted")
        await queue.create(partitions=3)
        at_once = most_at_once = 0

        async def handle(job: topics.Job) -> None:
            nonlocal at_once, most_at_once
            at_once += 1
            most_at_once = max(most_at_once, at_once)
            await settle()
            at_once -= 1
            if job.data == "last":
                stop.set()

        stop = asyncio.Event()
        running = asyncio.create_task(queue.run(handle, stop=stop))
        await settle()
        await asyncio.gather(*(queue.put(number, partition=number % 3) for number in range(9)))
        while sum([(await queue.state(partition=partition)).count for partition in range(3)]):
            await settle()
        await queue.put("last", partition=1)
        assert (await soon(running)).done == 10 and most_at_once == 1


async def _nothing(job: topics.Job) -> None:
    return
