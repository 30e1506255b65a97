"""A queue's verbs over a real socket: every field, clamp, status and counter."""

from __future__ import annotations

import asyncio
import struct
from contextlib import AsyncExitStack
from pathlib import Path
from socket import SO_LINGER, SOL_SOCKET
from typing import Any

import msgspec
import pytest

from tests.client.rig import on_loop, soon
from tests.engine.queuerig import QueueRig
from tests.server.api import serving
from tests.server.probing import serving as on_rig
from tests.server.queues import Jobs, now_ms, seqs_of
from topics.server.message import Request, Response
from topics.server.routes.queues import claim

DAY_MS = 86_400_000
KEYS = "all-secret,rw-secret:rw,reader-secret:read,writer-secret:write,tenant-secret:rw:tenant42:"


# ---- claim


@on_loop
async def test_a_claim_brings_jobs_with_their_leases(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        jobs = Jobs(api)
        await jobs.create(lease_ms=20_000)
        records = [{"data": {"n": 1}, "tag": 'a "b"', "node": "p", "meta": {"trace": "z9"}}, {"data": 2}, {"data": 3}]
        await api.post("/v0/topics/jobs", {"records": records})
        before = await now_ms(api)
        answer = await jobs.post("claim", node="w1", max=2)
        after = await now_ms(api)
        assert answer.status == 200 and answer.headers["content-type"] == "application/json"
        body = answer.body
        first, second = body["claimed"]
        deadline = first.pop("deadline")
        assert before + 20_000 <= deadline <= after + 20_000
        lease_id = first.pop("lease_id")
        assert lease_id.startswith("lease_") and int(lease_id.removeprefix("lease_"), 16) > 0
        stamp = first.pop("$ts")
        assert first == {
            "$seq": 1,
            "$tag": 'a "b"',
            "$node": "p",
            "deliveries": 1,
            "data": {"n": 1},
            "meta": {"trace": "z9"},
        }
        assert second["lease_id"] != lease_id
        assert (second["$seq"], second["$ts"], second["data"], second["deadline"]) == (2, stamp, 2, deadline)
        assert set(body) == {"topic", "claimed", "count", "ready", "performance"}
        assert (body["topic"], body["count"], body["ready"]) == ("jobs", 2, 1)
        assert body["performance"]["throttle_wait_ms"] == 0.0 and body["performance"]["server_total_ms"] >= 0
        assert await jobs.counts() == (1, 2, 0, 0)


@on_loop
async def test_a_claim_without_jobs_is_no_error(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        jobs = Jobs(api)
        await jobs.create()
        answer = await jobs.post("claim", node="w", max=5)
        assert answer.without_performance() == {"topic": "jobs", "claimed": [], "count": 0, "ready": 0}


@on_loop
async def test_what_is_too_much_is_clamped(tmp_path: Path) -> None:
    async with serving(tmp_path, max_claim=3) as api:
        jobs = Jobs(api)
        await jobs.create()
        await jobs.put(*range(5))
        before = await now_ms(api)
        long = await jobs.claim(max=2**40, lease_ms=2**50)
        assert seqs_of(long) == [1, 2, 3]
        assert before + DAY_MS <= long[0]["deadline"] <= await now_ms(api) + DAY_MS
        before = await now_ms(api)
        short = await jobs.claim(max=1, lease_ms=0)
        assert before + 100 <= short[0]["deadline"] <= await now_ms(api) + 100
        many = await jobs.post("ack", node="w", seqs=[1, 2, 3, 4])
        assert many.refusal == (400, "batch_too_large")


@on_loop
async def test_what_ran_out_is_handed_out_first_and_counted(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        jobs = Jobs(api)
        await jobs.create()
        await jobs.put("a")
        (slow,) = await jobs.claim("slow", lease_ms=100)
        # Nothing else is there: the answer comes when the lease has run out.
        (again,) = await jobs.claim("quick", wait_ms=5_000)
        assert (again["$seq"], again["deliveries"]) == (1, 2)
        assert again["lease_id"] != slow["lease_id"]
        late = await jobs.ack([1], "slow")
        assert late == {"topic": "jobs", "acked": 0, "skipped": [1], "ready": 0, "in_flight": 1}
        stale = await jobs.ack([1], "quick", lease_ids=[slow["lease_id"]])
        assert (stale["acked"], stale["skipped"]) == (0, [1])
        fenced = await jobs.ack([1], "quick", lease_ids=[again["lease_id"]])
        assert (fenced["acked"], fenced["in_flight"]) == (1, 0)


@on_loop
async def test_a_claim_waits_for_a_job(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        jobs = Jobs(api)
        await jobs.create()
        waiting = asyncio.ensure_future(jobs.claim(wait_ms=30_000))
        while (await api.get("/v0/metrics", Accept="application/json")).body["topics_queue_claims_waiting"] < 1:
            pass
        await jobs.put("x")
        assert [job["data"] for job in await soon(waiting)] == ["x"]
        # And it gives up: 1 ms is over before long.
        assert await soon(jobs.claim(wait_ms=1)) == []


@pytest.mark.parametrize("how", ["hangs up", "ends its side", "is reset"])
@on_loop
async def test_who_goes_away_while_waiting_is_leased_nothing(tmp_path: Path, how: str) -> None:
    async with serving(tmp_path) as api:
        jobs = Jobs(api)
        await jobs.create()
        reader, writer = await asyncio.open_connection(api.address.hostname, api.address.port)
        body = b'{"node":"gone","wait_ms":30000}'
        head = "POST /v0/topics/jobs/claim HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)

        async def waiting(count: int) -> None:
            while True:
                found = (await api.get("/v0/metrics", Accept="application/json")).body["topics_queue_claims_waiting"]
                if found == count:
                    return

        await soon(waiting(1))
        if how == "hangs up":
            writer.close()
        elif how == "is reset":
            writer.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        else:
            writer.write_eof()
            answer = await soon(reader.read())
            assert answer.startswith(b"HTTP/1.1 200") and b'"claimed":[]' in answer
        await soon(waiting(0))
        await jobs.put("x")
        (job,) = await jobs.claim("there")
        assert job["deliveries"] == 1
        writer.close()


@on_loop
async def test_a_server_that_stops_answers_who_waits(tmp_path: Path) -> None:
    async with AsyncExitStack() as server:
        api = await server.enter_async_context(serving(tmp_path))
        jobs = Jobs(api)
        await jobs.create()
        waiting = asyncio.ensure_future(jobs.claim(wait_ms=30_000))
        while (await api.get("/v0/metrics", Accept="application/json")).body["topics_queue_claims_waiting"] < 1:
            pass
        await server.aclose()
        assert await soon(waiting) == []


def test_who_goes_away_while_its_lease_is_being_stored_gives_it_back() -> None:
    rig = QueueRig()
    rig.queue(leases_durable=True)
    rig.write("q", 1)
    with on_rig(rig) as probe:
        body = b'{"node":"gone","wait_ms":30000}'
        request = Request("POST", "/v0/topics/q/claim", "", {}, body, 0, params={"topic": "q"})
        answers: list[Response] = []
        claim(probe.context, request, answers.append)
        rig.engine.claiming.serve()
        assert rig.counts() == (0, 1, 0, 0), "leased, and not on disk yet"
        assert request.on_gone is not None and answers == []
        request.on_gone()
        rig.work()
    (answer,) = answers
    assert msgspec.json.decode(answer.body)["claimed"] == []
    assert rig.counts() == (1, 0, 0, 0)


@on_loop
async def test_a_window_divides_evenly(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        jobs = Jobs(api)
        await jobs.create(claim_jitter_ms=300)
        await jobs.put(*range(50))
        found = await soon(asyncio.gather(*(jobs.claim(f"w{n}", max=10) for n in range(10))))
        assert [len(each) for each in found] == [5] * 10
        assert sorted(seq for each in found for seq in seqs_of(each)) == list(range(1, 51))


# ---- ack, nack, extend


@on_loop
async def test_an_ack_is_the_delete(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        jobs = Jobs(api)
        await jobs.create(durable=True)
        await jobs.put(*"abcd")
        await jobs.claim(max=3)
        answer = await jobs.post("ack", node="w", seqs=[3, 1, 1, 4, 99])
        assert answer.without_performance() == {
            "topic": "jobs",
            "acked": 2,
            "skipped": [4, 99],
            "ready": 1,
            "in_flight": 1,
        }
        assert answer.body["performance"]["fsync_ms"] > 0
        assert await jobs.ack([1, 3]) == {"topic": "jobs", "acked": 0, "skipped": [1, 3], "ready": 1, "in_flight": 1}
        assert [record["$seq"] for record in (await api.diff("jobs"))["records"]] == [2, 4]
    async with serving(tmp_path) as api:
        jobs = Jobs(api)
        assert await jobs.counts() == (1, 1, 0, 0), "jobs and leases are there after a restart"
        assert (await jobs.ack([2]))["acked"] == 1


@on_loop
async def test_a_nack_gives_back_now_or_later(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        jobs = Jobs(api)
        await jobs.create()
        await jobs.put("a", "b")
        await jobs.claim(max=2)
        answer = await jobs.post("nack", node="w", seqs=[1, 7])
        assert answer.without_performance() == {
            "topic": "jobs",
            "nacked": 1,
            "skipped": [7],
            "ready": 1,
            "in_flight": 1,
        }
        later = await jobs.post("nack", node="w", seqs=[2], delay_ms=2**50)
        assert (later.body["nacked"], later.body["ready"], later.body["in_flight"]) == (1, 1, 0)
        assert await jobs.counts() == (1, 0, 1, 0)
        (again,) = await jobs.claim("other", max=9)
        assert (again["$seq"], again["deliveries"]) == (1, 2)
        assert (await jobs.post("nack", node="w", seqs=[1])).body["skipped"] == [1], "it is somebody else's"
        soonest = await now_ms(api) + 150
        await jobs.post("nack", node="other", seqs=[1], delay_ms=150)
        (third,) = await jobs.claim("w", wait_ms=5_000)
        assert (third["$seq"], third["deliveries"]) == (1, 3)
        assert third["deadline"] - 30_000 >= soonest, "never early"


@on_loop
async def test_extend_sets_the_deadline_from_now(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        jobs = Jobs(api)
        await jobs.create()
        await jobs.put("a", "b")
        first, second = await jobs.claim(max=2, lease_ms=100)
        before = await now_ms(api)
        lease_ids = [first["lease_id"], "lease_ffff", "nonsense"]
        answer = await jobs.post("extend", node="w", seqs=[1, 2, 3], lease_ms=60_000, lease_ids=lease_ids)
        body = answer.without_performance()
        deadline = body.pop("deadlines")["1"]
        assert body == {"topic": "jobs", "extended": 1, "skipped": [2, 3]}
        assert before + 60_000 <= deadline <= await now_ms(api) + 60_000
        (again,) = await jobs.claim("other", max=2, wait_ms=5_000)
        assert again["$seq"] == second["$seq"] == 2, "the other one ran out"
        assert (await jobs.ack([1], lease_ids=[first["lease_id"]]))["acked"] == 1, "extending keeps the lease's id"


# ---- partitions, refusals, keys


@on_loop
async def test_a_partition_is_a_queue_of_its_own(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        jobs = Jobs(api)
        await jobs.create(partitions=2)
        await jobs.put("x", partition=1)
        assert await jobs.claim() == []
        claimed = await jobs.post("claim", node="w", partition=1)
        assert (claimed.body["partition"], claimed.body["count"]) == (1, 1)
        extended = await jobs.post("extend", node="w", seqs=[1], lease_ms=1_000, partition=1)
        assert (extended.body["partition"], extended.body["extended"]) == (1, 1)
        state = (await api.get("/v0/topics/jobs?partition=1")).body
        assert state["queue"] == {"ready": 0, "in_flight": 1, "delayed": 0, "dead_lettered": 0}
        assert (await jobs.ack([1], partition=1))["acked"] == 1
        assert (await jobs.post("claim", node="w", partition=2)).refusal == (400, "invalid_request")


VERBS = {
    "claim": {"node": "w"},
    "ack": {"node": "w", "seqs": [1]},
    "nack": {"node": "w", "seqs": [1]},
    "extend": {"node": "w", "seqs": [1], "lease_ms": 500},
}


@on_loop
async def test_a_queue_is_never_made_by_its_verbs_and_a_log_is_none(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.write("log", 1)
        for verb, body in VERBS.items():
            assert (await Jobs(api, "nowhere").post(verb, **body)).refusal == (404, "topic_not_found"), verb
            refused = await Jobs(api, "log").post(verb, **body)
            assert refused.refusal == (409, "not_a_queue"), verb
            assert refused.error["detail"] == {"topic": "log", "type": "log"}
            assert (await Jobs(api, "no%20no").post(verb, **body)).refusal == (400, "invalid_request"), verb
        assert (await api.get("/v0/topics/nowhere")).status == 404
        assert "queue" not in (await api.get("/v0/topics/log")).body


@on_loop
async def test_what_is_wrong_is_named_and_changes_nothing(tmp_path: Path) -> None:
    refused: list[tuple[str, dict[str, Any], str, str]] = [
        ("claim", {}, "invalid_request", "node"),
        ("claim", {"node": ""}, "invalid_request", "node"),
        ("claim", {"node": "x" * 2000}, "invalid_request", "node"),
        ("claim", {"node": "w", "max": 0}, "invalid_request", "max"),
        ("claim", {"node": "w", "max": "3"}, "invalid_request", "max"),
        ("claim", {"node": "w", "lease_ms": -1}, "invalid_request", "lease_ms"),
        ("ack", {"node": "w", "seqs": []}, "invalid_request", "seqs"),
        ("ack", {"node": "w", "seqs": [0]}, "invalid_request", "seqs"),
        ("ack", {"node": "w", "seqs": [2**64]}, "invalid_request", "seqs"),
        ("ack", {"node": "w", "seqs": list(range(1, 1002))}, "batch_too_large", "seqs"),
        ("ack", {"node": "w", "seqs": [1], "lease_ids": []}, "invalid_request", "lease_ids"),
        ("nack", {"node": "w", "seqs": [1, 2], "lease_ids": ["lease_1"]}, "invalid_request", "lease_ids"),
        ("extend", {"node": "w", "seqs": [1]}, "invalid_request", "lease_ms"),
    ]
    async with serving(tmp_path) as api:
        jobs = Jobs(api)
        await jobs.create()
        await jobs.put("a", "b")
        await jobs.claim()
        for verb, body, code, field in refused:
            answer = await jobs.post(verb, **body)
            assert (*answer.refusal, answer.error["detail"]["field"]) == (400, code, field), (verb, body)
        assert await jobs.counts() == (1, 1, 0, 0)
        assert (await api.get("/v0/topics/jobs/claim")).refusal == (405, "method_not_allowed")


@on_loop
async def test_what_a_key_may_do(tmp_path: Path) -> None:
    async with serving(tmp_path, api_keys=KEYS) as api:
        api.key = "all-secret"
        for name in ("jobs", "tenant42:jobs"):
            await Jobs(api, name).create()
            await Jobs(api, name).put("a", "b", "c")
        for key, allowed in [
            ("rw-secret", {"claim", "ack", "nack", "extend"}),
            ("writer-secret", {"ack", "nack", "extend"}),
            ("reader-secret", set()),
            ("tenant-secret", set()),
        ]:
            api.key = key
            for verb, body in VERBS.items():
                status = (await Jobs(api).post(verb, **body)).status
                assert status == (200 if verb in allowed else 403), (key, verb)
        api.key = "tenant-secret"
        mine = Jobs(api, "tenant42:jobs")
        (job,) = await mine.claim()
        record = {"records": [{"data": 1}]}
        outside = await mine.post("ack", node="w", seqs=[job["$seq"]], produce=[{"topic": "results", **record}])
        assert (outside.refusal, outside.error["detail"]["field"]) == ((403, "forbidden"), "produce[0].topic")
        letters = {"topic": "tenant42:next", "config": {"type": "queue", "dead_letter": "outside"}, **record}
        config = await mine.post("ack", node="w", seqs=[job["$seq"]], produce=[letters])
        assert config.refusal == (403, "forbidden")
        inside = await mine.post("ack", node="w", seqs=[job["$seq"]], produce=[{"topic": "tenant42:r", **record}])
        assert inside.status == 200
