from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.client.rig import on_loop
from tests.server.api import serving
from topics.core.partition import partition_of


@on_loop
async def test_a_write_creates_and_appends(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        made = await api.post("/v0/topics/jobs", {"records": [{"data": 1}, {"data": 2}, {"data": None}]})
        assert made.status == 201
        assert made.without_performance() == {
            "topic": "jobs",
            "first_seq": 1,
            "last_seq": 3,
            "seqs": [1, 2, 3],
            "head_seq": 3,
            "count": 3,
            "created": True,
            "deduped": False,
        }
        more = await api.post("/v0/topics/jobs", {"records": [{"data": "x"}]})
        assert more.status == 200
        assert (more.body["seqs"], more.body["created"], more.body["count"]) == ([4], False, 1)


@on_loop
async def test_what_was_measured(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        fast = (await api.write("fast", 1))["performance"]
        assert fast["fsync_ms"] == 0.0
        assert 0 < fast["wal_append_ms"] < fast["server_total_ms"]
        assert fast["throttle_wait_ms"] == 0.0
        await api.put("/v0/topics/safe", {"durable": True})
        safe = (await api.write("safe", 1))["performance"]
        assert safe["fsync_ms"] > 0
        assert safe["wal_append_ms"] + safe["fsync_ms"] <= safe["server_total_ms"] + 0.002
        await api.put("/v0/topics/lost", {"durability": "ephemeral"})
        lost = (await api.write("lost", 1))["performance"]
        assert (lost["wal_append_ms"], lost["fsync_ms"]) == (0.0, 0.0)


@on_loop
async def test_seqs_can_be_left_out(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        answer = await api.post("/v0/topics/jobs?return_seqs=false", {"records": [{"data": 1}] * 3})
        assert "seqs" not in answer.body
        assert (answer.body["first_seq"], answer.body["last_seq"], answer.body["count"]) == (1, 3, 3)
        refused = await api.post("/v0/topics/jobs?return_seqs=no", {"records": [{"data": 1}]})
        assert refused.refusal == (400, "invalid_request")
        assert (await api.get("/v0/topics/jobs")).body["head_seq"] == 3


@on_loop
async def test_an_idempotency_key_in_body_or_header(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        once = {"records": [{"data": 1}, {"data": 2}], "idempotency_key": "k"}
        assert (await api.post("/v0/topics/jobs", once)).body["deduped"] is False
        again = await api.post("/v0/topics/jobs", once)
        assert (again.status, again.body["deduped"], again.body["seqs"]) == (200, True, [1, 2])
        header = {"Idempotency-Key": "k"}
        assert (await api.post("/v0/topics/jobs", {"records": [{"data": 3}]}, header)).body["deduped"] is True
        other = {"records": [{"data": 3}], "idempotency_key": "other"}
        assert (await api.post("/v0/topics/jobs", other, header)).body["deduped"] is False
        too_long = await api.post("/v0/topics/jobs", {"records": [{"data": 3}]}, {"Idempotency-Key": "k" * 257})
        assert too_long.refusal == (400, "invalid_request")


@on_loop
async def test_create_and_inline_config(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        one = [{"data": 1}]
        assert (await api.post("/v0/topics/t", {"records": one, "create": False})).refusal == (404, "topic_not_found")
        closed = {"records": one, "config": {"auto_create": False}}
        assert (await api.post("/v0/topics/t", closed)).refusal == (404, "topic_not_found")
        made = await api.post("/v0/topics/t", {"records": one, "config": {"cap_records": 5}, "create": True})
        assert made.status == 201
        await api.post("/v0/topics/t", {"records": one, "config": {"cap_records": 9}})
        assert (await api.get("/v0/topics/t")).body["config"]["cap_records"] == 5


@on_loop
async def test_a_full_topic_refuses(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.put("/v0/topics/t", {"cap_records": 2, "discard": "reject"})
        await api.write("t", 1, 2)
        refused = await api.post("/v0/topics/t", {"records": [{"data": 3}]})
        assert refused.refusal == (422, "topic_full")
        assert (await api.get("/v0/topics/t")).body["head_seq"] == 2


@on_loop
async def test_caps_of_the_instance_are_429(tmp_path: Path) -> None:
    async with serving(tmp_path, max_topics=1, max_total_bytes=4) as api:
        await api.write("a", 12)
        refused = await api.post("/v0/topics/b", {"records": [{"data": 1}]})
        assert refused.refusal == (429, "throttled")
        assert refused.error["detail"] == {"limit": "max_topics", "max": 1}
        assert refused.headers["retry-after"] == "1"
        assert (await api.put("/v0/topics/b")).refusal == (429, "throttled")
        assert (await api.put("/v0/topics/a")).status == 200
        refused = await api.post("/v0/topics/a", {"records": [{"data": 123}], "disable_backpressure": True})
        assert refused.error["detail"] == {"limit": "max_total_bytes", "max": 4}


@on_loop
async def test_partition_and_key(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.put("/v0/topics/t", {"partitions": 4})
        assert (await api.write("t", 1, partition=3))["partition"] == 3
        assert (await api.write("t", 1, key="user-1"))["partition"] == partition_of("user-1", 4)
        made = await api.write("new", 1, key="user-1", config={"partitions": 4})
        assert made["partition"] == partition_of("user-1", 4)
        refused = await api.post("/v0/topics/t", {"records": [{"data": 1}], "partition": 4})
        assert refused.refusal == (400, "invalid_request")
        assert "partition" not in await api.write("single", 1)


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        (None, "invalid_request", None),
        (b"{}", "invalid_request", "records"),
        (b'{"records":[]}', "invalid_request", None),
        (b'{"records":[{}]}', "invalid_request", "records[0].data"),
        (b'{"records":[{"data":1,"tag":5}]}', "invalid_request", "records[0].tag"),
        (b'{"records":[{"data":1},{"data":1,"meta":[]}]}', "invalid_request", "records[1].meta"),
        (b'{"records":[{"data":NaN}]}', "invalid_request", ""),
        (b'{"records":[{"data":"\xff"}]}', "invalid_request", ""),
        (b'{"records":[{"data":1,"data":2}]}', "invalid_request", "records[0].data"),
        (b'{"records":[{"data":1}],"node":"a","node":"b"}', "invalid_request", "node"),
        (b'{"records":[{"data":' + b"[" * 600 + b"]" * 600 + b"}]}", "invalid_request", None),
        (b'{"records":[{"data":' + b"[" * 100_000, "invalid_request", ""),
        (b'{"records":[{"data":1}],"partition":-1}', "invalid_request", "partition"),
        (b'{"records":[{"data":1}],"create":"no"}', "invalid_request", "create"),
        (b'{"records":[{"data":1}],"config":{"ttl_ms":-1}}', "invalid_request", "ttl_ms"),
        (b'{"records":[{"data":1},{"data":1},{"data":1}]}', "batch_too_large", None),
        (b'{"records":[{"data":"' + b"x" * 2001 + b'"}]}', "record_too_large", None),
    ],
)
@on_loop
async def test_a_write_that_is_none(tmp_path: Path, body: bytes | None, code: str, field: str | None) -> None:
    async with serving(tmp_path, max_batch_records=2, max_record_bytes=2000) as api:
        refused = await api.post("/v0/topics/t", body)
        assert refused.refusal == (400, code)
        if field is not None:
            assert refused.error["detail"]["field"] == field
        assert (await api.get("/v0/topics/t")).status == 404


@on_loop
async def test_data_comes_back_as_it_went_in(tmp_path: Path) -> None:
    datas = [
        b'{ "b":1 ,"a" : [ 1.0, 1e400, -0 ],"\\u00e9":"\\/" }',
        b'"\xc3\xa9\\ud83d\\ude00"',
        b"123456789012345678901234567890.10",
        b'{"data":1,"data":2,"$seq":9,"records":[]}',
        b"null",
    ]
    async with serving(tmp_path) as api:
        body = b'{"records":[' + b",".join(b'{"data":' + data + b"}" for data in datas) + b"]}"
        assert (await api.post("/v0/topics/t", body)).status == 201
        answer = await api.post("/v0/topics/t/diff")
        for data in datas:
            assert b'"data":' + data + b"}" in answer.raw
        assert len(answer.body["records"]) == len(datas)


@on_loop
async def test_many_writers_get_seqs_of_their_own(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        answers = await asyncio.gather(*(api.write("t", number, number) for number in range(40)))
        seqs = sorted(seq for answer in answers for seq in answer["seqs"])
        assert seqs == list(range(1, 81))
        assert sum(answer["created"] for answer in answers) == 1


@on_loop
async def test_a_write_that_must_not_fail_waits_for_the_disk(tmp_path: Path) -> None:
    """More than the queue before the disk takes at once: some of these would be refused."""
    large = "x" * 1_000_000
    body = json.dumps({"records": [{"data": large}] * 30, "disable_backpressure": True}).encode()
    async with serving(tmp_path) as api:
        await api.put("/v0/topics/t")
        answers = await asyncio.gather(*(api.post("/v0/topics/t?return_seqs=false", body) for _ in range(8)))
        assert [answer.status for answer in answers] == [200] * 8
        assert (await api.get("/v0/topics/t")).body["count"] == 240
        assert any(answer.body["performance"]["throttle_wait_ms"] > 0 for answer in answers)
