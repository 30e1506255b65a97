from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.client.rig import on_loop
from tests.server.api import Api, serving
from tests.server.routes.test_heaps import make
from tests.server.routes.test_messages import pop, put
from topics.server import heaplatency, heapmetrics

SPECIFIED = {
    *("enqueue_latency_ms", "pop_latency_ms", "inflight", "backlog", "retries_total", "dlq_total"),
    *("lease_timeouts_total", "snapshot_bytes", "wal_bytes_written_total"),
}
"""The names of the heaps' specification that there are on one machine."""


async def scraped(api: Api) -> dict[str, Any]:
    return (await api.get("/v0/metrics", Accept="application/json")).body


@on_loop
async def test_a_heap_is_told_under_our_names_and_under_those_of_its_specification(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await make(api, partitions=2)
        for number in range(4):
            await put(api, partition_key=str(number), not_before=60 if number == 3 else 0)
        (item,) = await pop(api)
        await api.post("/v1/ack", {"topic": "jobs", "lease_token": item["lease_token"]})
        await pop(api)
        text = (await api.get("/v0/metrics")).raw.decode()
        told = {line.split(" ")[0]: float(line.rpartition(" ")[2]) for line in text.splitlines() if line[0] != "#"}
        labels = '{topic="jobs"}'
        for name, value in (
            ("topics_heap_ready", 1),
            ("topics_heap_in_flight", 1),
            ("topics_heap_delayed", 1),
            ("topics_heap_dead_letters", 0),
            ("topics_heap_enqueues_total", 4),
            ("topics_heap_pops_total", 2),
            ("topics_heap_acks_total", 1),
            ("inflight", 1),
            ("retries_total", 0),
        ):
            assert told[name + labels] == value, name
        parts = [told[f'backlog{{topic="jobs",partition="{number}"}}'] for number in (0, 1)]
        assert sum(parts) == 3
        assert told['enqueue_latency_ms_count{topic="jobs"}'] >= 1
        assert told["wal_bytes_written_total"] == told["topics_wal_bytes_written_total"] > 0
        families = {line.split(" ")[2] for line in text.splitlines() if line.startswith("# TYPE")}
        assert families >= SPECIFIED


@on_loop
async def test_a_key_sees_its_own_heaps_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heaplatency, "SAMPLE", 2)
    async with serving(tmp_path, api_keys="boss,mine:read:a.") as api:
        api.key = "boss"
        for topic in ("a.jobs", "b.jobs"):
            await make(api, topic)
            for _ in range(3):
                await put(api, topic)
            for _ in range(2):
                assert await pop(api, topic)
        everything = (await api.get("/v0/metrics")).raw.decode()
        assert 'pop_latency_ms_count{topic="b.jobs"}' in everything
        api.key = "mine"
        text = (await api.get("/v0/metrics")).raw.decode()
        assert 'topics_heap_ready{topic="a.jobs"} 1' in text and "b.jobs" not in text
        assert 'pop_latency_ms_count{topic="a.jobs"}' in text


@on_loop
async def test_of_too_many_partitions_some_are_shown_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heapmetrics, "PARTITIONS_SHOWN_MAX", 3)
    async with serving(tmp_path) as api:
        for topic in ("a", "b"):
            await make(api, topic, partitions=2)
        text = (await api.get("/v0/metrics")).raw.decode()
        assert 'topics_heap_ready{topic="a"} 0' in text and 'topics_heap_ready{topic="b"}' not in text
        assert "topics_heap_metrics_truncated 1" in text
        monkeypatch.setattr(heapmetrics, "PARTITIONS_SHOWN_MAX", 4)
        text = (await api.get("/v0/metrics")).raw.decode()
        assert 'topics_heap_ready{topic="b"} 0' in text and "topics_heap_metrics_truncated 0" in text


@on_loop
async def test_who_enqueues_and_pops_in_turn_is_timed_in_both(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await make(api)
        for _ in range(2 * heaplatency.SAMPLE):
            await put(api)
            assert await pop(api)
        text = (await api.get("/v0/metrics")).raw.decode()
        assert 'enqueue_latency_ms_count{topic="jobs"}' in text and 'pop_latency_ms_count{topic="jobs"}' in text
