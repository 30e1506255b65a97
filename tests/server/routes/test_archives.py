from __future__ import annotations

from pathlib import Path

import pytest

from tests.client.rig import on_loop
from tests.server.api import serving


@on_loop
async def test_an_archive_comes_on_and_retention_behind_it(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.put("/v0/topics/t", {"cap_records": 2, "protect_unarchived": True})
        await api.post("/v0/topics/t", {"records": [{"data": n} for n in range(5)]})
        state = (await api.get("/v0/topics/t")).body
        assert state["count"] == 5
        assert state["holding"] == {"needed_from": 1, "max_bytes": 2**30, "overrun_count": 0}
        report = {"upto_seq": 4, "location": "/lake/t", "epoch": state["epoch"]}
        answer = await api.put("/v0/topics/t/archives/lake", report)
        progress = {"archive": "lake", "upto_seq": 4, "behind": 1, "location": "/lake/t"}
        stamp = {"reported_ts": answer.body["reported_ts"]}
        assert answer.without_performance() == {"topic": "t"} | progress | stamp
        listed = await api.get("/v0/topics/t/archives")
        assert listed.without_performance() == {"topic": "t", "archives": [progress | stamp]}
        state = (await api.get("/v0/topics/t")).body
        assert (state["count"], state["earliest_seq"], state["archives"]) == (2, 4, [progress | stamp])
        assert state["holding"]["needed_from"] == 5
        text = (await api.call("GET", "/v0/metrics")).raw.decode()
        assert 'topics_topic_archive_behind{topic="t",archive="lake"} 1' in text
        dropped = await api.call("DELETE", "/v0/topics/t/archives/lake")
        assert dropped.without_performance() == {"topic": "t", "archive": "lake", "dropped": True}
        assert (await api.get("/v0/topics/t/archives")).body["archives"] == []


@on_loop
async def test_partitions(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.put("/v0/topics/t", {"partitions": 2})
        await api.write("t", 1, partition=1)
        answer = await api.put("/v0/topics/t/archives/lake", {"upto_seq": 1, "partition": 1})
        assert (answer.body["partition"], answer.body["upto_seq"]) == (1, 1)
        assert [each["partition"] for each in (await api.get("/v0/topics/t/archives")).body["archives"]] == [1]


@pytest.mark.parametrize(
    ("path", "body", "refusal"),
    [
        ("/v0/topics/t/archives/lake", {}, (400, "invalid_request")),
        ("/v0/topics/t/archives/lake", {"upto_seq": 2}, (400, "invalid_request")),
        ("/v0/topics/t/archives/a%20b", {"upto_seq": 1}, (400, "invalid_request")),
        ("/v0/topics/t/archives/lake", {"upto_seq": 1, "epoch": 99}, (409, "topic_recreated")),
        ("/v0/topics/nobody/archives/lake", {"upto_seq": 0}, (404, "topic_not_found")),
    ],
)
@on_loop
async def test_what_is_refused(tmp_path: Path, path: str, body: object, refusal: tuple[int, str]) -> None:
    async with serving(tmp_path) as api:
        await api.write("t", 1)
        assert (await api.put(path, body)).refusal == refusal
        assert (await api.get("/v0/topics/t/archives")).body["archives"] == []
