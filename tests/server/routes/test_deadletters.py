from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.client.rig import on_loop
from tests.server.api import Api, serving
from tests.server.routes.test_heaps import audited, confirmed, make
from tests.server.routes.test_messages import pop, put


async def dead(api: Api, count: int) -> list[dict[str, Any]]:
    """The dead letters, as soon as there are so many."""
    while len(items := (await api.get("/v1/heaps/jobs/dlq")).body["items"]) < count:
        await asyncio.sleep(0)
    assert isinstance(items, list)
    return items


@on_loop
async def test_dead_letters_are_listed_looked_at_replayed_and_deleted(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await make(api, max_retries_default=0)
        ids = [(await put(api, payload_json=number, priority=number))["message_id"] for number in range(3)]
        for item in await pop(api, max=3, consumer="me"):
            lease = {"topic": "jobs", "lease_token": item["lease_token"], "reason": f"no {item['payload_json']}"}
            await api.post("/v1/nack", lease)
        letters = await dead(api, 3)
        assert [letter["message_id"] for letter in letters] == ids
        assert letters[0]["dlq_topic"] == "jobs.dlq" and letters[0]["payload_json"] == 0
        page = (await api.get("/v1/heaps/jobs/dlq?limit=2")).body
        rest = (await api.get(f"/v1/heaps/jobs/dlq?limit=2&page_token={page['next_page_token']}")).body
        assert [letter["message_id"] for letter in page["items"] + rest["items"]] == ids

        shown = (await api.get(f"/v1/heaps/jobs/dlq/{ids[1]}")).body["item"]
        assert (shown["priority"], shown["attempts"]) == (1, 1)
        assert [(failed["reason"], failed["consumer"]) for failed in shown["history"]] == [("no 1", "me")]
        assert (await api.get("/v1/heaps/jobs/dlq/01M7GACJNJ0000000000000099")).refusal == (404, "NOT_FOUND")

        replayed = await api.post("/v1/heaps/jobs/dlq/replay", {"message_ids": [ids[2]]})
        assert (replayed.body["count"], replayed.body["skipped"]) == (1, 0)
        assert [(item["payload_json"], item["attempts"]) for item in await pop(api)] == [(2, 0)]

        only = {"priority_max": 0}
        gone = await confirmed(api, "POST", "/v1/heaps/jobs/dlq/delete", only)
        assert gone.body["count"] == 1
        assert [letter["payload_json"] for letter in await dead(api, 1)] == [1]
        assert (await confirmed(api, "DELETE", f"/v1/heaps/jobs/dlq/{ids[1]}")).body["count"] == 1
        assert (await api.delete(f"/v1/heaps/jobs/dlq/{ids[1]}?force=true")).refusal == (404, "NOT_FOUND")
        assert [line["action"] for line in audited(tmp_path)] == ["delete_dead_letters"] * 2


@on_loop
async def test_letters_are_chosen_and_counted_before_anything_happens(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await make(api, max_retries_default=0)
        for number in range(4):
            await put(api, payload_json=number, priority=number)
        for item in await pop(api, max=4):
            await api.post("/v1/nack", {"topic": "jobs", "lease_token": item["lease_token"]})
        letters = await dead(api, 4)
        path = "/v1/heaps/jobs/dlq"
        chosen = (await api.get(f"{path}?priority_min=1&priority_max=2")).body["items"]
        assert [letter["priority"] for letter in chosen] == [1, 2]
        at = letters[0]["dead_time"]
        assert (await api.get(f"{path}?died_before={at}")).body["items"] == []
        assert len((await api.get(f"{path}?died_from={at}")).body["items"]) == 4
        for wrong in ("priority_min=x", "priority_min=", "died_from=", "died_before=soon"):
            assert (await api.get(f"{path}?{wrong}")).refusal == (400, "INVALID_ARGUMENT"), wrong
        for verb in ("replay", "delete"):
            for asked, count in (({"priority_min": 1}, 3), ({}, 4), ({"limit": 2}, 2)):
                counted = await api.post(f"{path}/{verb}", {"dry_run": True, **asked})
                assert (counted.status, counted.body["count"]) == (200, count)
        wrong_flag = await api.post(f"{path}/delete?force=maybe", {"dry_run": True})
        assert wrong_flag.refusal == (400, "INVALID_ARGUMENT")
        assert len(await dead(api, 4)) == 4 and audited(tmp_path) == []


@on_loop
async def test_single_messages_are_changed_taken_back_and_given_up(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await make(api)
        ids = [(await put(api, payload_json=number, priority=number))["message_id"] for number in range(4)]
        path = "/v1/heaps/jobs"
        moved = await api.post(f"{path}/reprioritize", {"message_id": ids[3], "priority": -1})
        assert moved.body["old_priority"] == 3
        assert (await api.post(f"{path}/cancel", {"message_id": ids[0]})).body["cancelled"] is True
        assert (await api.post(f"{path}/cancel", {"message_id": ids[0]})).refusal == (404, "NOT_FOUND")
        given_up = await api.post(f"{path}/move_to_dlq", {"message_id": ids[1], "reason": "by hand"})
        assert given_up.body["dlq_topic"] == "jobs.dlq"
        assert [letter["reason"] for letter in await dead(api, 1)] == ["by hand"]
        assert [item["payload_json"] for item in await pop(api, max=4)] == [3, 2]
        for verb, more in (("cancel", {}), ("reprioritize", {"priority": 1})):
            told = await api.post(f"{path}/{verb}", {"message_id": ids[2], **more})
            assert told.refusal == (412, "FAILED_PRECONDITION") and told.error["reason"] == "message_leased"


@on_loop
async def test_a_snapshot_on_demand(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await make(api)
        await put(api)
        before = list((tmp_path / "data" / "snapshots").iterdir())
        taken = await api.post("/v1/snapshot")
        assert taken.status == 200 and taken.body["taken_at"].endswith("Z")
        assert list((tmp_path / "data" / "snapshots").iterdir()) != before
