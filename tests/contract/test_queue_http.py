"""What becomes of jobs over HTTP: those for later, those that fail too often, and those that leave results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.client.rig import on_loop
from tests.server.api import serving
from tests.server.queues import Jobs, now_ms

DAY_MS = 86_400_000


# ---- delays


@on_loop
async def test_a_job_comes_when_its_time_has_come(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        jobs = Jobs(api)
        await jobs.create()
        await jobs.put("tomorrow", delay_ms=DAY_MS)
        await jobs.put("much later", not_before=await now_ms(api) + 2 * DAY_MS)
        await jobs.put("past", not_before=1, delay_ms=0)
        assert await jobs.counts() == (1, 0, 2, 0)
        assert [job["data"] for job in await jobs.claim(max=9)] == ["past"]
        soonest = await now_ms(api) + 120
        await jobs.put("later", delay_ms=120)
        (job,) = await jobs.claim(max=9, wait_ms=5_000)
        assert (job["data"], job["deliveries"]) == ("later", 1)
        assert job["deadline"] - 30_000 >= soonest
        assert await jobs.counts() == (0, 2, 2, 0)


@on_loop
async def test_each_job_of_a_write_has_its_own_time(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        jobs = Jobs(api)
        await jobs.create()
        tomorrow = await now_ms(api) + DAY_MS
        records = [{"data": 1, "delay_ms": DAY_MS}, {"data": "now"}, {"data": 2, "not_before": tomorrow}]
        assert (await api.post("/v0/topics/jobs", {"records": records})).status == 200
        assert await jobs.counts() == (1, 0, 2, 0)
        assert [job["data"] for job in await jobs.claim(max=9)] == ["now"]
        soonest = await now_ms(api) + 120
        records = [{"data": 3, "delay_ms": DAY_MS}, {"data": "later", "delay_ms": 120}]
        assert (await api.post("/v0/topics/jobs", {"records": records})).status == 200
        (job,) = await jobs.claim(max=9, wait_ms=5_000)
        assert (job["data"], job["deliveries"]) == ("later", 1)
        assert job["deadline"] - 30_000 >= soonest
        both = {"records": [{"data": 1}, {"data": 2, "delay_ms": 5, "not_before": 7}]}
        refused = await api.post("/v0/topics/jobs", both)
        assert (refused.refusal, refused.error["detail"]["field"]) == ((400, "invalid_request"), "records[1].delay_ms")
        assert (await jobs.counts())[:3] == (0, 2, 3)


@on_loop
async def test_only_jobs_are_delayed(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.write("log", 1)
        delayed = {"records": [{"data": 2}], "delay_ms": 60_000}
        assert (await api.post("/v0/topics/log", delayed)).refusal == (409, "not_a_queue")
        assert (await api.post("/v0/topics/new", delayed)).refusal == (409, "not_a_queue")
        assert (await api.get("/v0/topics/new")).status == 404
        by_itself = {"records": [{"data": 2, "delay_ms": 60_000}]}
        assert (await api.post("/v0/topics/log", by_itself)).refusal == (409, "not_a_queue")
        assert (await api.post("/v0/topics/log", {"records": [{"data": 2, "not_before": 5}]})).status == 200
        staged = await api.post("/v0/topics/log/stage", {"stage": "s", **delayed})
        assert staged.refusal == (409, "not_a_queue")
        negative = await api.post("/v0/topics/log", delayed | {"delay_ms": -1})
        assert (negative.refusal, negative.error["detail"]["field"]) == ((400, "invalid_request"), "delay_ms")
        made = await api.post("/v0/topics/new", delayed | {"config": {"type": "queue"}})
        assert made.status == 201 and (await Jobs(api, "new").counts()) == (0, 0, 1, 0)


# ---- dead letters, results


@on_loop
async def test_a_job_that_fails_too_often_becomes_a_dead_letter(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        jobs = Jobs(api)
        await jobs.create(max_deliveries=2, dead_letter="jobs.dead")
        await api.post("/v0/topics/jobs", {"records": [{"data": "poison", "tag": "t", "meta": {"m": "1"}}]})
        for _ in range(2):
            await jobs.claim()
            await jobs.post("nack", node="w", seqs=[1])
        assert await jobs.claim() == []
        while (await jobs.counts())[3] < 1:
            pass
        (letter,) = (await api.diff("jobs.dead", include_tags=True))["records"]
        assert (letter["data"], letter["$tag"]) == ("poison", "t")
        assert letter["meta"] == {
            "m": "1",
            "$dead_letter_from": "jobs",
            "$dead_letter_src_seq": "1",
            "$dead_letter_deliveries": "2",
            "$dead_letter_reason": "max_deliveries",
        }
        assert await jobs.counts() == (0, 0, 0, 1)


@on_loop
async def test_a_dead_letter_topic_that_takes_nothing_is_told(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.put("/v0/topics/full", {"cap_records": 1, "discard": "reject"})
        await api.write("full", 1)
        jobs = Jobs(api)
        await jobs.create(max_deliveries=1, dead_letter="full")
        await jobs.put("x")
        await jobs.claim()
        await jobs.post("nack", node="w", seqs=[1])
        assert await jobs.claim() == []
        for path in ("/v0/topics/jobs", "/v0/topics?prefix=jobs"):
            body = (await api.get(path)).body
            queue = body.get("topics", [body])[0]["queue"]
            assert "full" in queue["dead_letter_error"] and queue["delayed"] == 1


@on_loop
async def test_jobs_are_completed_with_their_results(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        jobs = Jobs(api)
        await jobs.create()
        await jobs.put(*"abc")
        await jobs.claim(max=2)
        await api.put("/v0/topics/parted", {"partitions": 4})
        produce = [
            {"topic": "results", "records": [{"data": 1}, {"data": 2}], "config": {"ttl_ms": 9_000}},
            {"topic": "parted", "records": [{"data": 3}], "partition": 2},
            {"topic": "next", "records": [{"data": 4}], "config": {"type": "queue"}, "delay_ms": 60_000},
        ]
        answer = await jobs.post("ack", node="w", seqs=[1, 2], produce=produce)
        assert answer.status == 200
        body = answer.without_performance()
        assert [(part["topic"], part["partition"], part["count"]) for part in body.pop("written")] == [
            ("results", 0, 2),
            ("parted", 2, 1),
            ("next", 0, 1),
        ]
        assert body == {"topic": "jobs", "acked": 2, "skipped": [], "ready": 1, "in_flight": 0}
        assert [record["data"] for record in (await api.diff("results"))["records"]] == [1, 2]
        assert [record["data"] for record in (await api.diff("parted", partition=2))["records"]] == [3]
        assert (await api.get("/v0/topics/results")).body["config"]["ttl_ms"] == 9_000
        assert await Jobs(api, "next").counts() == (0, 0, 1, 0)
        lost = await jobs.post("ack", node="w", seqs=[2, 3], produce=produce[:1])
        assert lost.refusal == (409, "lease_lost")
        assert lost.error["detail"] == {"topic": "jobs", "skipped": [2, 3], "gone": [2]}
        assert len((await api.diff("results"))["records"]) == 2, "nothing was done"


@on_loop
async def test_results_that_cannot_be_written_complete_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        jobs = Jobs(api)
        await jobs.create()
        await jobs.put("a")
        await jobs.claim()
        record: dict[str, Any] = {"records": [{"data": 1}]}
        refused = [
            ([{"topic": "no no", **record}], (400, "invalid_request"), "produce[0].topic"),
            ([{"topic": "a", **record}, {"topic": "a", **record}], (400, "invalid_request"), "produce[1].topic"),
            ([{"topic": "a", "records": []}], (400, "invalid_request"), "produce[0].records"),
        ]
        for produce, refusal, field in refused:
            answer = await jobs.post("ack", node="w", seqs=[1], produce=produce)
            assert (answer.refusal, answer.error["detail"]["field"]) == (refusal, field)
        missing = await jobs.post("ack", node="w", seqs=[1], produce=[{"topic": "a", "create": False, **record}])
        assert missing.refusal == (404, "topic_not_found")
        assert await jobs.counts() == (0, 1, 0, 0)
        assert (await api.get("/v0/topics/a")).status == 404
