"""Jobs pushed over a real socket: what comes, how much of it, and what becomes of it when a worker goes."""

from __future__ import annotations

import asyncio
import struct
from contextlib import AsyncExitStack
from pathlib import Path
from socket import SO_LINGER, SOL_SOCKET

import pytest

from tests.client.rig import on_loop, soon
from tests.server.api import serving
from tests.server.queues import Jobs, pushed, seqs_of, working
from tests.server.sserig import listening
from topics.engine.engine import Engine
from topics.errors import Throttled

# ---- what is pushed


@on_loop
async def test_a_job_as_it_is_pushed(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        jobs = Jobs(api)
        await jobs.create(lease_ms=20_000)
        async with working(api, lease_ms=5_000) as stream:
            assert stream.headers["content-type"] == "text/event-stream; charset=utf-8"
            assert stream.headers["cache-control"] == "no-store"
            assert stream.headers["x-accel-buffering"] == "no"
            body = b'{"records":[{"data":{"a":\n[1,\r\n2]},"tag":"t","meta":{"m":"1"}}]}'
            await api.post("/v0/topics/jobs", body)
            (job,) = await pushed(stream, 1)
            assert list(job)[:2] == ["topic", "$seq"]
            lease_id, deadline, stamp = job.pop("lease_id"), job.pop("deadline"), job.pop("$ts")
            assert job == {
                "topic": "jobs",
                "$seq": 1,
                "$tag": "t",
                "deliveries": 1,
                "data": {"a": [1, 2]},
                "meta": {"m": "1"},
            }
            assert stamp + 5_000 <= deadline < stamp + 20_000
            assert (await jobs.ack([1], lease_ids=[lease_id]))["acked"] == 1


@on_loop
async def test_there_are_never_more_under_way_than_asked_for(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        jobs = Jobs(api)
        await jobs.create()
        await jobs.put(*range(10))
        async with working(api, max=3) as stream:
            assert seqs_of(await pushed(stream, 3)) == [1, 2, 3]
            assert await jobs.counts() == (7, 3, 0, 0)
            await jobs.ack([2])
            assert seqs_of(await pushed(stream, 1)) == [4]
            await jobs.post("nack", node="w", seqs=[1], delay_ms=60_000)
            assert seqs_of(await pushed(stream, 1)) == [5]
            await jobs.post("extend", node="w", seqs=[3], lease_ms=60_000)
            await jobs.ack([4, 5])
            assert seqs_of(await pushed(stream, 2)) == [6, 7]
            # Somebody deletes a job under way: there is room for another.
            await api.post("/v0/topics/jobs/delete", {"before_seq": 4})
            assert seqs_of(await pushed(stream, 1)) == [8]
            assert await jobs.counts() == (2, 3, 0, 0)
        async with working(api, "other", max=10) as stream:
            again = await pushed(stream, 5)
            assert sorted(seqs_of(again)) == [6, 7, 8, 9, 10]
            assert [job["deliveries"] for job in again] == [2, 2, 2, 1, 1]


@on_loop
async def test_a_lease_that_runs_out_makes_room(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        jobs = Jobs(api)
        await jobs.create()
        await jobs.put("a")
        async with working(api, lease_ms=100) as stream:
            first, second = await pushed(stream, 2)
            assert [first["deliveries"], second["deliveries"]] == [1, 2]
            assert first["lease_id"] != second["lease_id"] and second["deadline"] > first["deadline"]


@on_loop
async def test_how_much_is_clamped(tmp_path: Path) -> None:
    async with serving(tmp_path, max_claim=2) as api:
        jobs = Jobs(api)
        await jobs.create()
        await jobs.put(*range(5))
        async with working(api, max=10**9) as stream:
            await pushed(stream, 2)
            assert await jobs.counts() == (3, 2, 0, 0)


@on_loop
async def test_streams_and_claims_share_evenly(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        jobs = Jobs(api)
        await jobs.create(claim_jitter_ms=200)
        async with working(api, "s1", max=10) as one, working(api, "s2", max=10) as two:
            claims = [asyncio.ensure_future(jobs.claim(f"c{n}", max=10, wait_ms=9_000)) for n in range(2)]
            while (await api.get("/v0/metrics", Accept="application/json")).body["topics_queue_claims_waiting"] < 2:
                pass
            await jobs.put(*range(20))
            found = [*await soon(asyncio.gather(*claims)), await pushed(one, 5), await pushed(two, 5)]
            assert [len(each) for each in found] == [5] * 4
            assert sorted(seq for each in found for seq in seqs_of(each)) == list(range(1, 21))


@on_loop
async def test_partitions(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        jobs = Jobs(api)
        await jobs.create(partitions=2)
        async with working(api, partition=1) as stream:
            await jobs.put("there", partition=0)
            await jobs.put("here", partition=1)
            (job,) = await pushed(stream, 1)
            assert (job["data"], job["partition"]) == ("here", 1)


# ---- how it ends


@pytest.mark.parametrize("how", ["closes", "ends its side", "is reset"])
@on_loop
async def test_what_a_worker_leaves_is_there_at_once(tmp_path: Path, how: str) -> None:
    async with serving(tmp_path) as api:
        jobs = Jobs(api)
        await jobs.create()
        await jobs.put("a", "b", "c", "d")
        polled = await jobs.claim("w", max=1)
        assert seqs_of(polled) == [1]
        async with working(api, "w", max=2) as stream, working(api, "w", max=1) as twin:
            assert sorted(seqs_of([*await pushed(stream, 2), *await pushed(twin, 1)])) == [2, 3, 4]
            held = await jobs.counts()
            assert held == (0, 4, 0, 0)
            if how == "closes":
                stream.writer.close()
            elif how == "is reset":
                stream.writer.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
                stream.writer.transport.abort()
            else:
                stream.writer.write_eof()
            # Far sooner than a lease would run out. Only what that connection had is free.
            again = await jobs.claim("other", max=9, wait_ms=9_000)
            again += await jobs.claim("other", max=9)
            assert len(again) == 2 and all(job["deliveries"] == 2 for job in again)
            assert await jobs.counts() == (0, 4, 0, 0)
            assert (await jobs.ack([1], "w"))["acked"] == 1


@on_loop
async def test_heartbeats_come_when_nothing_else_does(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await Jobs(api).create()
        async with working(api, heartbeat_ms=1) as stream:
            beat = await stream.next(beats=True)
            assert beat.comment.startswith("hb ") and int(beat.comment[3:]) > 1_700_000_000_000


@on_loop
async def test_a_queue_that_is_deleted_ends_its_streams(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        jobs = Jobs(api)
        await jobs.create()
        await jobs.put("a")
        async with working(api) as stream:
            await pushed(stream, 1)
            await api.delete("/v0/topics/jobs")
            (last,) = await stream.rest()
            assert (last.event, last.id) == ("error", None)
            assert last.fields["code"] == 404 and "jobs" in last.fields["error"]
        await api.write("jobs", 1)
        assert (await api.get("/v0/topics/jobs/work?node=w")).refusal == (409, "not_a_queue")


@on_loop
async def test_a_queue_that_becomes_a_log_says_so_on_its_streams(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await Jobs(api).create()
        async with working(api) as stream:
            await api.delete("/v0/topics/jobs")
            await api.put("/v0/topics/jobs", {"type": "log"})
            (last,) = await stream.rest()
            assert (last.event, last.id, last.fields["code"]) == ("error", None, 409)
            assert "made anew as a log" in last.fields["error"]


@on_loop
async def test_a_worker_is_told_that_the_server_is_behind_and_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    behind = True

    def check(engine: Engine, log_id: int) -> None:
        if behind:
            raise Throttled("the disk is behind", limit="queue_bytes")

    monkeypatch.setattr(Engine, "_check_fact", check)
    monkeypatch.setattr("topics.engine.claiming.PACED_AFTER_MS", 0)
    async with serving(tmp_path) as api:
        jobs = Jobs(api)
        await jobs.create()
        async with working(api) as stream:
            await jobs.put("a")
            told = await stream.next()
            assert (told.event, told.id) == ("error", None)
            assert (told.fields["code"], told.fields["retry_after_ms"]) == (429, 50)
            behind = False
            while (event := await stream.next()).event == "error":
                assert event.fields["code"] == 429
            assert (event.event, event.fields["data"]) == ("job", "a")


@on_loop
async def test_a_server_that_stops_says_so_and_frees_what_was_out(tmp_path: Path) -> None:
    async with AsyncExitStack() as server:
        api = await server.enter_async_context(serving(tmp_path))
        await Jobs(api).create()
        await Jobs(api).put("a", "b")
        async with working(api, max=2) as stream:
            await pushed(stream, 2)
            closing = asyncio.ensure_future(server.aclose())
            frames = await stream.rest()
        await soon(closing)
    assert [(frame.event, frame.fields["code"]) for frame in frames] == [("error", 503)]
    async with serving(tmp_path) as api:
        assert await Jobs(api).counts() == (2, 0, 0, 0)
        assert [job["deliveries"] for job in await Jobs(api).claim(max=2)] == [2, 2]


@on_loop
async def test_a_worker_that_reads_nothing_is_leased_no_more_and_has_to_go(tmp_path: Path) -> None:
    async with serving(tmp_path, watch_buffer_bytes=65_536, slow_consumer_timeout_ms=1_000) as api:
        jobs = Jobs(api)
        await jobs.create()
        async with listening(api, "/v0/topics/jobs/work?node=slow&max=1000") as stream:
            # All at once: they are handed out a few at a time.
            await jobs.put(*("x" * 500_000 for _ in range(40)))
            ready, in_flight, *_ = await jobs.counts()
            assert ready > 0, "leased only as long as it was read"
            # It reads nothing until it is gone, and then all of it is free.
            claimed = await soon(until_free(jobs, 40))
            assert claimed == 40
            assert in_flight < 40
            assert stream.status == 200


async def until_free(jobs: Jobs, count: int) -> int:
    while (found := (await jobs.counts())[0]) < count:
        pass
    return found
