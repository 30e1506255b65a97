from __future__ import annotations

from pathlib import Path

from tests.client.rig import on_loop
from tests.server.api import serving
from tests.server.routes.test_heaps import make
from tests.server.routes.test_messages import put


@on_loop
async def test_the_spread_of_priorities_of_a_heap_and_of_a_partition(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await make(api, partitions=2)
        for number in range(8):
            await put(api, payload_json=number, priority=number * 10, partition_id=number % 2)
        told = (await api.get("/v1/heaps/jobs/priorities?buckets=2")).without_performance()
        heads = told.pop("partitions")
        assert told == {
            "topic": "jobs",
            "mode": "MIN",
            "ready_messages": 8,
            "exact": True,
            "buckets": [
                {"priority_min": 0, "priority_max": 35, "count": 4},
                {"priority_min": 36, "priority_max": 70, "count": 4},
            ],
        }
        assert [(head["partition_id"], head["ready"], head["best_priority"]) for head in heads] == [
            (0, 4, 0),
            (1, 4, 10),
        ]
        assert all(head["oldest_time"].endswith("Z") and head["dead_lettered"] == 0 for head in heads)
        one = (await api.get("/v1/heaps/jobs/priorities?partition_id=1")).body
        assert one["ready_messages"] == 4 and [head["partition_id"] for head in one["partitions"]] == [1]


@on_loop
async def test_what_is_refused(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await make(api)
        for query in ("buckets=0", "buckets=257", "buckets=x", "partition_id=1"):
            assert (await api.get(f"/v1/heaps/jobs/priorities?{query}")).refusal == (400, "INVALID_ARGUMENT"), query
        assert (await api.get("/v1/heaps/none/priorities")).refusal == (404, "NOT_FOUND")
        await api.write("plain", 1)
        assert (await api.get("/v1/heaps/plain/priorities")).status == 412
        assert (await api.get("/v1/heaps/jobs/priorities")).body["buckets"] == []
