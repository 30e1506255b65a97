from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.client.rig import on_loop
from tests.server.api import Answer, Api, serving


async def make(api: Api, topic: str = "jobs", **fields: Any) -> Answer:
    answer = await api.post("/v1/heaps", {"topic": topic, **fields})
    assert answer.status == 201, answer.body
    return answer


async def confirmed(api: Api, method: str, path: str, body: object = None) -> Answer:
    """The call that the first one is answered with a token for."""
    asked = await api.call(method, f"{path}?force=true", body)
    assert asked.refusal == (412, "FAILED_PRECONDITION"), asked.body
    token = asked.error["detail"]["confirmation_token"]
    return await api.call(method, f"{path}?force=true&confirmation_token={token}", body)


DESTRUCTIVE = {"delete_heap", "purge_heap", "delete_dead_letters"}


def audited(directory: Path, *outcomes: str) -> list[dict[str, Any]]:
    """The lines about what cannot be undone; without outcomes those that were written before it was answered."""
    path = directory / "data" / "audit" / "audit.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    wanted = [line for line in lines if line["action"] in DESTRUCTIVE]
    return [line for line in wanted if (line["outcome"] in outcomes if outcomes else line["outcome"] != "done")]


@on_loop
async def test_a_heap_is_made_looked_at_listed_and_changed(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        made = await make(
            api,
            mode="MAX",
            partitions=3,
            replication_factor=3,
            visibility_timeout_default="1.5s",
            retention_time=60,
            max_retries_default=7,
            dlq_policy={"enabled": True, "retention_time": "30s"},
        )
        told = made.without_performance()
        assert told["topic"] == "jobs" and told["heap_id"]
        assert (told["mode"], told["partitions"], told["replication_factor"], told["replicas"]) == ("MAX", 3, 3, 1)
        assert (told["visibility_timeout_default"], told["retention_time"], told["max_retries_default"]) == (1.5, 60, 7)
        assert told["dlq_policy"] == {"enabled": True, "topic": "jobs.dlq", "retention_time": 30}
        assert len(told["warnings"]) == 1 and "replic" in told["warnings"][0]
        shown = (await api.get("/v1/heaps/jobs")).without_performance()
        assert shown["stats"]["total_messages"] == 0 and set(shown["stats"]["partition_stats"]) == {"0", "1", "2"}

        changed = await api.patch("/v1/heaps/jobs", {"max_retries_default": 0, "dlq_policy": {"enabled": False}})
        assert changed.status == 200
        assert (changed.body["max_retries_default"], changed.body["dlq_policy"]["topic"]) == (0, None)
        assert changed.body["visibility_timeout_default"] == 1.5, "what is not named stays"

        await make(api, "more")
        first = (await api.get("/v1/heaps?page_size=1")).body
        second = (await api.get(f"/v1/heaps?page_size=1&page_token={first['next_page_token']}")).body
        assert [heap["topic"] for heap in first["heaps"] + second["heaps"]] == ["jobs", "more"]
        assert [heap["topic"] for heap in (await api.get("/v1/heaps?prefix=m")).body["heaps"]] == ["more"]


@on_loop
async def test_errors_have_canonical_codes_and_ours(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await make(api)
        again = await api.post("/v1/heaps", {"topic": "jobs"})
        assert again.refusal == (409, "ALREADY_EXISTS") and again.error["reason"] == "topic_exists"
        assert "already exists" in again.error["message"]
        missing = await api.get("/v1/heaps/nowhere")
        assert missing.refusal == (404, "NOT_FOUND") and missing.error["reason"] == "topic_not_found"
        for bad in ({"topic": "no spaces"}, {}, {"topic": "x", "mode": "UP"}, {"topic": "x", "retention_time": -1}):
            assert (await api.post("/v1/heaps", bad)).refusal == (400, "INVALID_ARGUMENT"), bad
        await api.write("plain", 1)
        assert (await api.get("/v1/heaps/plain")).refusal == (412, "FAILED_PRECONDITION")
        assert (await api.get("/v1/nothing")).refusal == (404, "NOT_FOUND")
        assert (await api.put("/v1/heaps", {})).refusal == (405, "UNIMPLEMENTED")


@on_loop
async def test_numbers_of_one_heap_of_a_partition_and_of_all(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await make(api, partitions=2)
        await make(api, "more")
        for topic, key in (("jobs", "a"), ("jobs", "b"), ("more", "c")):
            await api.post("/v1/enqueue", {"topic": topic, "partition_key": key})
        everything = (await api.get("/v1/stats")).body
        assert everything["global_stats"]["total_messages"] == 3
        assert {name: stats["total_enqueues"] for name, stats in everything["topic_stats"].items()} == {
            "jobs": 2,
            "more": 1,
        }
        one = (await api.get("/v1/stats?topic=jobs&partition_id=1")).body["topic_stats"]
        assert set(one) == {"jobs"} and set(one["jobs"]["partition_stats"]) == {"1"}
        assert (await api.get("/v1/stats?partition_id=1")).refusal == (400, "INVALID_ARGUMENT")
        assert (await api.get("/v1/stats?topic=nowhere")).refusal == (404, "NOT_FOUND")


@on_loop
async def test_what_cannot_be_undone_is_confirmed_and_noted(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await make(api)
        for number in range(3):
            await api.post("/v1/enqueue", {"topic": "jobs", "priority": number})
        plain = await api.delete("/v1/heaps/jobs")
        assert plain.refusal == (412, "FAILED_PRECONDITION") and "confirmation_token" not in plain.error["detail"]
        asked = await api.delete("/v1/heaps/jobs?force=true")
        detail = asked.error["detail"]
        assert (detail["action"], detail["name"]) == ("delete_heap", "jobs") and detail["expires_at"].endswith("Z")
        token = detail["confirmation_token"]
        other = await api.post(f"/v1/heaps/jobs/purge?force=true&confirmation_token={token}")
        assert other.refusal == (412, "FAILED_PRECONDITION"), "a token is for one action"
        forged = await api.delete("/v1/heaps/jobs?force=true&confirmation_token=9999999999999.00")
        assert forged.refusal == (412, "FAILED_PRECONDITION")
        assert audited(tmp_path) == [], "nothing was begun"

        purged = await confirmed(api, "POST", "/v1/heaps/jobs/purge")
        assert (purged.status, purged.body["purged"]) == (200, 3)
        gone = await api.delete(f"/v1/heaps/jobs?force=true&confirmation_token={token}")
        assert (gone.status, gone.body["deleted"]) == (200, True)
        assert (await api.get("/v1/heaps/jobs")).status == 404
        noted = [(line["action"], line["name"], line["over"], line["outcome"]) for line in audited(tmp_path)]
        assert noted == [("purge_heap", "jobs", "http", "begun"), ("delete_heap", "jobs", "http", "begun")]

        await make(api)
        late = await api.delete(f"/v1/heaps/jobs?force=true&confirmation_token={token}")
        assert late.refusal == (412, "FAILED_PRECONDITION"), "a token is for one life of a name"


@on_loop
async def test_keys_see_and_touch_what_is_theirs(tmp_path: Path) -> None:
    keys = "boss,dh_reader:read:a.,dh.writer:rw:a."
    async with serving(tmp_path, api_keys=keys) as api:
        assert (await api.get("/v1/heaps")).refusal == (401, "UNAUTHENTICATED")
        api.key = "boss"
        await make(api, "a.jobs")
        await make(api, "b.jobs")
        api.key = "dh_reader"
        assert [heap["topic"] for heap in (await api.get("/v1/heaps")).body["heaps"]] == ["a.jobs"]
        assert set((await api.get("/v1/stats")).body["topic_stats"]) == {"a.jobs"}
        for refused in (
            await api.get("/v1/heaps/b.jobs"),
            await api.get("/v1/peek?topic=b.jobs"),
            await api.post("/v1/enqueue", {"topic": "a.jobs"}),
            await api.post("/v1/heaps", {"topic": "a.new"}),
        ):
            assert refused.refusal == (403, "PERMISSION_DENIED")
        api.key = "dh.writer"
        assert (await api.post("/v1/enqueue", {"topic": "a.jobs"})).status == 200
        batch = {"messages": [{"topic": "a.jobs"}, {"topic": "b.jobs"}]}
        assert (await api.post("/v1/enqueue:batch", batch)).refusal == (403, "PERMISSION_DENIED")
        for path in ("/v1/pop", "/v1/ack"):
            told = await api.post(path, {"topic": "b.jobs", "lease_token": "x"})
            assert told.refusal == (403, "PERMISSION_DENIED")
        assert (await api.delete("/v1/heaps/a.jobs?force=true")).refusal == (403, "PERMISSION_DENIED")


async def messages(api: Api) -> list[int]:
    """How many there are in each partition."""
    parts = (await api.get("/v1/stats?topic=jobs")).body["topic_stats"]["jobs"]["partition_stats"]
    return [parts[number]["messages"] for number in sorted(parts)]


@on_loop
async def test_one_partition_may_be_purged_and_one_that_is_not_there_is_refused_first(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await make(api, partitions=2)
        for number in range(8):
            await api.post("/v1/enqueue", {"topic": "jobs", "partition_key": str(number)})
        counts = await messages(api)
        assert min(counts) > 0
        nowhere = await api.post("/v1/heaps/jobs/purge?force=true", {"partition_id": 2})
        assert nowhere.refusal == (400, "INVALID_ARGUMENT") and "confirmation_token" not in nowhere.error["detail"]
        purged = await confirmed(api, "POST", "/v1/heaps/jobs/purge", {"partition_id": 1})
        assert (purged.status, purged.body["purged"]) == (200, counts[1])
        assert await messages(api) == [counts[0], 0]
        assert audited(tmp_path)[-1]["detail"] == {"partition": 1}


@on_loop
async def test_what_was_destroyed_is_noted_as_done(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await make(api)
        await confirmed(api, "POST", "/v1/heaps/jobs/purge")
    assert [line["outcome"] for line in audited(tmp_path, "begun", "done")] == ["begun", "done"]
