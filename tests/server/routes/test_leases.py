from __future__ import annotations

from pathlib import Path

import pytest

from tests.client.rig import on_loop
from tests.server.api import serving
from tests.server.queues import Jobs, now_ms


@on_loop
async def test_who_holds_what_since_when_and_until_when(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        jobs = Jobs(api)
        await jobs.create(lease_ms=60_000)
        await jobs.put(1, 2, 3, 4)
        await jobs.put("later", delay_ms=60_000)
        before = await now_ms(api)
        mine, yours = await jobs.claim("a", 2), await jobs.claim("b", 1, lease_ms=5_000)
        answer = await api.get("/v0/topics/jobs/leases")
        assert answer.status == 200
        fields = answer.without_performance()
        since = [lease.pop("since") for lease in fields["leases"]]
        assert fields == {
            "topic": "jobs",
            "leases": [
                {"seq": job["$seq"], "node": node, "lease_id": job["lease_id"], "deadline": job["deadline"]}
                | {"deliveries": 1}
                for node, job in (("a", mine[0]), ("a", mine[1]), ("b", yours[0]))
            ],
            "next_after": None,
            "oldest_ready": {"seq": 4, "ts": fields["oldest_ready"]["ts"], "deliveries": 0},
        }
        assert all(before - 1000 <= each <= mine[0]["deadline"] - 60_000 + 1000 for each in since)
        assert 0 < fields["oldest_ready"]["ts"] <= before
        delayed = (await api.get("/v0/topics/jobs/leases?state=delayed")).body["leases"]
        assert [(lease["seq"], lease["node"], lease["lease_id"], lease["deliveries"]) for lease in delayed] == [
            (5, None, None, 0)
        ]


@on_loop
async def test_a_lease_of_an_earlier_process_has_no_beginning(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        jobs = Jobs(api)
        await jobs.create(lease_ms=60_000, leases_durable=True)
        await jobs.put(1)
        await jobs.claim("a")
    async with serving(tmp_path) as api:
        (lease,) = (await api.get("/v0/topics/jobs/leases")).body["leases"]
        assert (lease["seq"], lease["node"], lease["since"]) == (1, "a", None)


@on_loop
async def test_a_job_is_taken_from_whoever_has_it_by_its_lease(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        jobs = Jobs(api)
        await jobs.create(lease_ms=60_000)
        await jobs.put(1, 2)
        await jobs.claim("a")
        (lease,) = (await api.get("/v0/topics/jobs/leases")).body["leases"]
        named = {"node": lease["node"], "seqs": [lease["seq"]], "lease_ids": [lease["lease_id"]]}
        assert (await jobs.post("nack", **named)).body["nacked"] == 1
        found = (await api.get("/v0/topics/jobs/leases")).body
        assert (found["leases"], found["oldest_ready"]["seq"], found["oldest_ready"]["deliveries"]) == ([], 1, 1)


@on_loop
async def test_pages(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        jobs = Jobs(api)
        await jobs.create(lease_ms=60_000, partitions=2)
        await jobs.put(*range(5), partition=1)
        await jobs.claim("a", 5, partition=1)
        assert (await api.get("/v0/topics/jobs/leases")).body["leases"] == []
        first = (await api.get("/v0/topics/jobs/leases?partition=1&limit=3")).body
        assert (first["partition"], [lease["seq"] for lease in first["leases"]]) == (1, [1, 2, 3])
        second = (await api.get(f"/v0/topics/jobs/leases?partition=1&limit=3&after={first['next_after']}")).body
        assert ([lease["seq"] for lease in second["leases"]], second["next_after"]) == ([4, 5], None)


@pytest.mark.parametrize(
    ("path", "refusal"),
    [
        ("/v0/topics/nothing/leases", (404, "topic_not_found")),
        ("/v0/topics/log/leases", (409, "not_a_queue")),
        ("/v0/topics/jobs/leases?state=dead", (400, "invalid_request")),
        ("/v0/topics/jobs/leases?after=x", (400, "invalid_request")),
        ("/v0/topics/jobs/leases?partition=1", (400, "invalid_request")),
    ],
)
@on_loop
async def test_what_is_refused(tmp_path: Path, path: str, refusal: tuple[int, str]) -> None:
    async with serving(tmp_path) as api:
        await Jobs(api).create()
        await api.write("log", 1)
        assert (await api.get(path)).refusal == refusal
