from __future__ import annotations

from pathlib import Path

import pytest

from tests.client.rig import on_loop
from tests.server.api import Api, serving

COUNTED = ("live", "deleted", "evicted", "lost", "archived")


async def counts(api: Api, query: str = "") -> list[tuple[int, ...]]:
    answer = await api.get(f"/v0/topics/t/map{query}")
    assert answer.status == 200, answer.body
    return [(each["first_seq"], each["last_seq"], *(each[name] for name in COUNTED)) for each in answer.body["buckets"]]


@on_loop
async def test_the_map_is_the_same_in_memory_and_in_segments(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.put("/v0/topics/t", {"cap_records": 1250})
        for _ in range(3):
            records = [{"data": n, "tag": "tenth" if n % 10 == 0 else "other"} for n in range(500)]
            await api.post("/v0/topics/t", {"records": records})
        await api.put("/v0/topics/t/archives/lake", {"upto_seq": 400})
        await api.post("/v0/topics/t/delete", {"match": "tenth", "before_seq": 751})
        halves = await counts(api, "?buckets=2")
        assert halves == [(1, 750, 450, 50, 250, 0, 400), (751, 1500, 750, 0, 0, 0, 0)]
        fine = await counts(api)
        assert len(fine) == 256
        assert [sum(column) for column in zip(*(each[2:] for each in fine), strict=True)] == [1200, 50, 250, 0, 400]
    async with serving(tmp_path) as api:
        assert await counts(api, "?buckets=2") == halves
        assert await counts(api) == fine


@on_loop
async def test_a_partition_and_a_topic_without_a_record(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.put("/v0/topics/t", {"partitions": 2})
        await api.write("t", 1, 2, partition=1)
        assert await counts(api) == []
        assert await counts(api, "?partition=1") == [(1, 1, 1, 0, 0, 0, 0), (2, 2, 1, 0, 0, 0, 0)]
        answer = (await api.get("/v0/topics/t/map?partition=1")).body
        assert (answer["partition"], answer["head_seq"], answer["earliest_seq"], answer["evict_floor"]) == (1, 2, 1, 1)


@pytest.mark.parametrize("query", ["buckets=0", "buckets=513", "buckets=x", "partition=7"])
@on_loop
async def test_what_is_refused(tmp_path: Path, query: str) -> None:
    async with serving(tmp_path) as api:
        await api.write("t", 1)
        assert (await api.get(f"/v0/topics/t/map?{query}")).refusal == (400, "invalid_request")
        assert (await api.get("/v0/topics/nothing/map")).refusal == (404, "topic_not_found")
