"""Queues through the SDK, in each of its forms."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.client.rig import on_loop, settle, soon, take
from tests.contract.jobs import counts, filled
from tests.contract.sdk import each_form
from tests.contract.sdk import opened_in_time as opened
from topics import errors, testing

NEVER_MS = 86_400_000


# ---- putting


@each_form
@on_loop
async def test_the_first_put_makes_the_queue(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        queue = client.queue("jobs")
        done = await queue.put({"sku": "A1"}, tag="order-1", meta={"trace": "z"}, config={"lease_ms": 5000})
        assert (done.created, done.first_seq) == (True, 1)
        assert (await queue.state()).config.lease_ms == 5000
        assert await counts(queue) == (1, 0, 0)
        (job,) = await queue.claim()
        assert (job.queue, job.seq, job.data, job.tag, job.meta) == (
            "jobs",
            1,
            {"sku": "A1"},
            "order-1",
            {"trace": "z"},
        )
        assert (job.deliveries, job.settled, job.lost, repr(job)) == (1, False, False, "<Job jobs/1 delivery 1>")
        assert job.deadline_ms > job.ts and job.lease_id.startswith("lease_")


@each_form
@on_loop
async def test_a_put_with_a_key_is_put_once(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        queue = client.queue("jobs")
        first, again = [await queue.put(1, idempotency_key="request-17") for _ in range(2)]
        assert (first.deduped, again.deduped, again.first_seq) == (False, True, 1)
        assert await counts(queue) == (1, 0, 0)


@each_form
@on_loop
async def test_a_job_of_tomorrow_is_nobodys_today(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        queue = client.queue("jobs")
        await queue.put("later", delay_ms=NEVER_MS)
        await queue.put("in a century", not_before=datetime(2126, 1, 1, tzinfo=UTC))
        await queue.put("long ago", not_before=1000)
        assert await counts(queue) == (1, 0, 2)
        assert [job.data for job in await queue.claim(10)] == ["long ago"]
        with pytest.raises(errors.InvalidRequest, match="not_before must have a time zone"):
            await queue.put(1, not_before=datetime(2126, 1, 1))
        with pytest.raises(errors.InvalidRequest, match="delay_ms"):
            await queue.put(1, delay_ms=-1)


@each_form
@on_loop
async def test_a_delayed_job_comes_when_its_time_has_come(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        queue = client.queue("jobs")
        await queue.put("soon", delay_ms=50)
        (job,) = await soon(queue.claim(wait_ms=10_000))
        assert job.data == "soon"


@each_form
@on_loop
async def test_each_job_of_a_put_may_have_its_own_time(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        queue = client.queue("jobs")
        await queue.put_many(
            [
                {"data": "tomorrow", "delay_ms": NEVER_MS},
                {"data": "now"},
                {"data": "in a century", "not_before": datetime(2126, 1, 1, tzinfo=UTC)},
                {"data": "long ago", "not_before": 1000},
            ]
        )
        assert await counts(queue) == (2, 0, 2)
        assert [job.data for job in await queue.claim(10)] == ["now", "long ago"]
        await queue.put_many([{"data": 1}, {"data": 2, "delay_ms": 5}], delay_ms=NEVER_MS)
        assert (await counts(queue))[2] == 4, "the later of the two counts"
        await queue.put_many([{"data": "tomorrow", "delay_ms": NEVER_MS}, {"data": "soon", "delay_ms": 50}])
        (job,) = await soon(queue.claim(10, wait_ms=10_000))
        assert (job.data, job.deliveries) == ("soon", 1)
        with pytest.raises(errors.InvalidRequest, match=r"records\[1\] has delay_ms and not_before"):
            await queue.put_many([{"data": 1}, {"data": 2, "delay_ms": 5, "not_before": 5}])
        with pytest.raises(errors.InvalidRequest, match=r"records\[0\].not_before must have a time zone"):
            await queue.put_many([{"data": 1, "not_before": datetime(2126, 1, 1)}])
        with pytest.raises(errors.NotAQueue):
            await client.topic("log").write_many([{"data": 1, "delay_ms": 5}])


@each_form
@on_loop
async def test_staged_jobs_wait_from_their_publish_on(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        queue = client.queue("jobs")
        await queue.create()
        await client.stage("all", "jobs", [{"data": "a"}, {"data": "b"}], delay_ms=NEVER_MS)
        await client.stage("till", "jobs", [{"data": "c"}], not_before=datetime(2126, 1, 1, tzinfo=UTC))
        await client.stage(
            "each", "jobs", [{"data": "d", "delay_ms": NEVER_MS}, {"data": "e"}, {"data": "f", "not_before": 9}]
        )
        await client.publish(["all", "till", "each"], producer=("p", 1))
        assert await counts(queue) == (2, 0, 4)
        assert [job.data for job in await queue.claim(10)] == ["e", "f"]
        await client.stage(
            "soon", "jobs", [{"data": "tomorrow", "delay_ms": NEVER_MS}, {"data": "soon", "delay_ms": 5}]
        )
        await client.publish(["soon"], producer=("p", 2))
        (job,) = await soon(queue.claim(10, wait_ms=10_000))
        assert job.data == "soon"
        with pytest.raises(errors.InvalidRequest, match="wait in one way"):
            await client.stage("s", "jobs", [{"data": 1, "delay_ms": 5}], delay_ms=5)
        with pytest.raises(errors.InvalidRequest, match="delay_ms"):
            await client.stage("s", "jobs", [{"data": 1}], delay_ms=-5)


@each_form
@on_loop
async def test_results_may_wait_each_its_own_time(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        queue = await filled(client, 1)
        following = client.queue("next")
        await following.create()
        (job,) = await queue.claim()
        await job.complete({"next": [{"data": "later", "delay_ms": NEVER_MS}, {"data": "now"}]})
        assert await counts(following) == (1, 0, 1)
        assert [job.data for job in await following.claim(10)] == ["now"]


@each_form
@on_loop
async def test_bytes_come_back_as_bytes(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        queue = client.queue("jobs")
        await queue.put(b"\x00\xff", content_type="image/png")
        (job,) = await queue.claim()
        assert (job.data, job.meta["content-type"]) == (b"\x00\xff", "image/png")


# ---- claiming


@each_form
@on_loop
async def test_what_is_claimed_is_acked_given_back_or_kept(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        queue = await filled(client, 4)
        one, two, three, four = await queue.claim(10)
        assert await one.ack()
        assert await two.nack()
        assert await three.nack(NEVER_MS)
        before_ms = four.deadline_ms
        assert await four.extend(NEVER_MS) and four.deadline_ms > before_ms + 1000
        assert [job.settled for job in (one, two, three, four)] == [True, True, True, False]
        assert await counts(queue) == (1, 1, 1)
        (again,) = await queue.claim(10)
        assert (again.seq, again.deliveries) == (2, 2)
        assert not await two.ack(), "the lease of the first delivery is over"
        assert not await one.ack()
        assert await again.ack()


@each_form
@on_loop
async def test_a_claim_waits_for_a_job(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        queue = await filled(client, 0)
        assert await queue.claim() == []
        waiting = asyncio.create_task(queue.claim(wait_ms=10_000))
        await settle()
        await queue.put("here")
        assert [job.data for job in await soon(waiting)] == ["here"]


@each_form
@on_loop
async def test_a_claim_that_is_given_up_leaves_nothing_leased(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        queue = await filled(client, 0)
        waiting = asyncio.create_task(queue.claim(wait_ms=10_000))
        await settle()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await queue.put("left")
        (job,) = await soon(queue.claim(wait_ms=10_000))
        assert (job.data, job.deliveries) == ("left", 1)


@each_form
@on_loop
async def test_a_claim_that_is_given_up_as_its_job_comes_gives_it_back(tmp_path: Path, form: str) -> None:
    """At whatever moment: before the server has leased it, while the answer is on its way, when it has come."""
    async with opened(form, tmp_path) as client:
        queue = await filled(client, 0)
        for turns in range(25):
            waiting = asyncio.create_task(queue.claim(wait_ms=60_000, lease_ms=3_600_000))
            await settle()
            putting = asyncio.create_task(queue.put(turns))
            for _ in range(turns):
                await asyncio.sleep(0)
            waiting.cancel()
            (given_up,) = await asyncio.gather(waiting, return_exceptions=True)
            await soon(putting)
            if isinstance(given_up, list):
                (job,) = given_up
            else:
                (job,) = await soon(queue.claim(wait_ms=60_000))
            assert (job.data, job.deliveries) == (turns, 1)
            await job.ack()


@on_loop
async def test_a_claim_that_is_given_up_as_the_client_is_closed_gives_its_job_back() -> None:
    async with testing.server() as server, server.client() as other:
        queue = await filled(other, 1)
        for turns in range(25):
            async with server.client() as client:
                claiming = asyncio.create_task(client.queue("jobs").claim(lease_ms=3_600_000))
                for _ in range(turns):
                    await asyncio.sleep(0)
                claiming.cancel()
                (given_up,) = await asyncio.gather(claiming, return_exceptions=True)
                for job in given_up if isinstance(given_up, list) else []:
                    await job.nack()
            (job,) = await soon(queue.claim(wait_ms=30_000))
            assert job.data == 1
            await job.nack()


@each_form
@on_loop
async def test_a_lease_that_ran_out_is_lost_to_the_next(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        queue = await filled(client, 1)
        (slow,) = await queue.claim(lease_ms=100)
        (quick,) = await soon(queue.claim(wait_ms=10_000, lease_ms=60_000))
        assert (quick.seq, quick.deliveries) == (1, 2)
        assert not await slow.extend() and slow.lost
        assert not await slow.ack()
        assert await quick.ack()


@each_form
@on_loop
async def test_a_block_acks_its_job_and_gives_it_back_when_it_raises(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        queue = await filled(client, 2)
        one, two = await queue.claim(2)
        async with one:
            assert not one.settled
        with pytest.raises(ValueError, match="no good"):
            async with two:
                raise ValueError("no good")
        assert one.settled and two.settled
        ready, in_flight, delayed = await counts(queue)
        assert (ready + delayed, in_flight) == (1, 0)


@each_form
@on_loop
async def test_inside_a_block_a_lease_is_kept(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        queue = await filled(client, 1)
        (job,) = await queue.claim(lease_ms=600)
        others = client.queue("jobs")
        async with job:
            assert await others.claim(wait_ms=1500) == [], "longer than two leases"
        assert job.settled and not job.lost
        assert await counts(queue) == (0, 0, 0)


@each_form
@on_loop
async def test_results_come_with_the_end_of_their_job(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        queue = await filled(client, 1)
        (slow,) = await queue.claim(lease_ms=100)
        (quick,) = await soon(queue.claim(wait_ms=10_000, lease_ms=60_000))
        with pytest.raises(errors.LeaseLost):
            await slow.complete({"results": [{"data": "slow"}]})
        async with quick:
            done = await quick.complete({"results": [{"data": "quick", "tag": "a"}], "bytes": [{"data": b"\x00"}]})
        assert [written.topic for written in done.written] == ["results", "bytes"]
        assert [record.data for record in (await client.topic("results").diff()).records] == ["quick"]
        assert [record.data for record in (await client.topic("bytes").diff()).records] == [b"\x00"]
        assert await counts(queue) == (0, 0, 0)


@each_form
@on_loop
async def test_what_is_no_queue_says_so(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        await client.topic("plain").write(1)
        with pytest.raises(errors.NotAQueue):
            await client.queue("plain").claim()
        with pytest.raises(errors.TopicNotFound):
            await client.queue("missing").claim(lease_ms=1000)
        with pytest.raises(errors.TopicNotFound):
            await anext(aiter(client.queue("missing").work()))


# ---- dead letters


@each_form
@on_loop
async def test_dead_letters_come_back(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        queue = client.queue("jobs")
        await queue.create(max_deliveries=1, dead_letter="dead")
        await client.topic("dead").create()
        await queue.put_many({"data": number, "tag": f"job-{number % 2}"} for number in range(600))
        while claimed := await queue.claim(1000):
            await asyncio.gather(*(job.nack() for job in claimed))
        await take(client.topic("dead").follow(), 600)
        assert (await queue.redrive(dry_run=True)).moved == 600
        assert (await queue.redrive(match="job-1", limit=50)).moved == 50
        told: list[int] = []
        done = await queue.redrive(match="job-1", on_progress=lambda step: told.append(step.moved))
        assert (done.moved, done.done, told[-1]) == (250, True, 250) and told == sorted(told)
        assert await counts(queue) == (300, 0, 0)
        jobs = await queue.claim(1000)
        assert {job.deliveries for job in jobs} == {1} and not any("$dead_letter_from" in job.meta for job in jobs)
        await client.queue("other").create()
        assert (await queue.redrive(destination="other", rate_per_second=100_000)).moved == 300
        assert await counts(client.queue("other")) == (300, 0, 0)


@each_form
@on_loop
async def test_a_queue_without_dead_letters_says_so(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        queue = await filled(client, 0)
        with pytest.raises(errors.InvalidRequest, match="has no dead_letter in its config"):
            await queue.redrive()
        with pytest.raises(errors.InvalidRequest, match="rate_per_second must be"):
            await queue.redrive(dead_letter="dead", rate_per_second=0)


# ---- who holds what


@each_form
@on_loop
async def test_leases_a_page_at_a_time(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        queue = client.queue("jobs", node="me")
        await queue.put_many({"data": number} for number in range(4))
        await queue.put("later", delay_ms=NEVER_MS)
        jobs = await queue.claim(3)
        page = await queue.leases(limit=2)
        assert [(lease.seq, lease.node, lease.lease_id, lease.deadline) for lease in page.leases] == [
            (job.seq, "me", job.lease_id, job.deadline_ms) for job in jobs[:2]
        ]
        assert all(lease.since is not None and lease.since <= lease.deadline for lease in page.leases)
        assert page.oldest_ready is not None and (page.oldest_ready.seq, page.oldest_ready.deliveries) == (4, 0)
        assert page.next_after is not None
        rest = await queue.leases(after=page.next_after)
        assert ([lease.seq for lease in rest.leases], rest.next_after) == ([3], None)
        assert [lease.seq for lease in (await queue.leases(delayed=True)).leases] == [5]
        with pytest.raises(errors.InvalidRequest, match="after"):
            await queue.leases(after=-1)


@each_form
@on_loop
async def test_leases_and_dead_letters_of_another_partition(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        queue = client.queue("jobs", node="me")
        await client.topic("dead").create(partitions=2)
        await queue.create(partitions=2, max_deliveries=1, dead_letter="dead")
        await queue.put("one", partition=1)
        (job,) = await queue.claim(partition=1)
        assert [lease.lease_id for lease in (await queue.leases(partition=1)).leases] == [job.lease_id]
        assert (await queue.leases()).leases == []
        await job.nack()
        assert await queue.claim(partition=1) == [], "who asks for it finds that it is dead"
        await take(client.follow(["dead*"]), 1)
        moved = [(await queue.redrive(partition=partition)).moved for partition in range(2)]
        assert sorted(moved) == [0, 1]
        with pytest.raises(errors.InvalidRequest, match="limit must be 1 or more, not 0"):
            await queue.redrive(limit=0)
