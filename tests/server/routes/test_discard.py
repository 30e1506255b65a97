"""Dead letters of queues over a real socket: where they are, and deleting them."""

from __future__ import annotations

from pathlib import Path

from tests.client.rig import on_loop
from tests.server.api import serving
from tests.server.routes.test_heaps import make
from tests.server.routes.test_redrive import DEAD, KEYS, bury, data

PATH = f"/v0/topics/{DEAD}/dead_letters/delete"


@on_loop
async def test_they_are_counted_and_deleted(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await bury(api, 3)
        await bury(api, 2, "more")
        await api.write(DEAD, "no dead letter")
        dry = (await api.post(PATH, {"dry_run": True})).without_performance()
        assert dry == {
            "topic": DEAD,
            "deleted": 5,
            "skipped": 0,
            "scanned": 6,
            "next_from_seq": 6,
            "head_seq": 6,
            "done": True,
            "dry_run": True,
        }
        assert len(await data(api, DEAD)) == 6
        assert (await api.post(PATH, {"source": "more", "limit": 1})).body["deleted"] == 1
        assert (await api.post(PATH, {"match": "t2"})).body["deleted"] == 1
        assert (await api.post(PATH, {"from_seq": 1, "before_seq": 3})).body["deleted"] == 1
        assert (await api.post(PATH)).body["deleted"] == 2
        assert await data(api, DEAD) == ["no dead letter"]


@on_loop
async def test_more_than_a_step_is_deleted_in_one_request(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await bury(api, 600)
        answer = (await api.post(PATH)).body
        assert (answer["deleted"], answer["done"], await data(api, DEAD)) == (600, True, [])


@on_loop
async def test_where_dead_letters_are(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await bury(api, 3)
        await bury(api, 2, "more")
        await make(api, "heap")
        await api.delete("/v0/topics/heap.dlq")
        first, second = (await api.get("/v0/dead_letters")).body["topics"]
        assert (first["topic"], first["count"], first["exists"], first["partitions"]) == (DEAD, 5, True, 1)
        assert first["sources"] == [{"topic": "jobs", "type": "queue"}, {"topic": "more", "type": "queue"}]
        assert first["bytes"] > 0 and first["last_write_ts"] > 0
        assert second == {
            "topic": "heap.dlq",
            "exists": False,
            "count": 0,
            "bytes": 0,
            "partitions": 0,
            "last_write_ts": None,
            "sources": [{"topic": "heap", "type": "heap"}],
        }


@on_loop
async def test_keys_and_bad_requests(tmp_path: Path) -> None:
    async with serving(tmp_path, api_keys=KEYS) as api:
        api.key = "all-secret"
        await bury(api, 1)
        await bury(api, 1, "tenant42:jobs", "tenant42:dead")
        await bury(api, 1, "others", "tenant42:strange")
        for bad in ({"limit": 0}, {"from_seq": -1}, {"partition": 1}, {"match": 5}, {"source": "no spaces"}):
            assert (await api.post(PATH, bad)).status == 400, bad
        assert (await api.post("/v0/topics/none/dead_letters/delete")).refusal == (404, "topic_not_found")
        api.key = "writer-secret"
        assert (await api.post(PATH)).refusal == (403, "forbidden")
        api.key = "tenant-secret"
        assert [each["topic"] for each in (await api.get("/v0/dead_letters")).body["topics"]] == ["tenant42:dead"]
