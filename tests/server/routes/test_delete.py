from __future__ import annotations

from pathlib import Path

import pytest

from tests.client.rig import on_loop
from tests.server.api import Api, serving


async def fill(api: Api) -> None:
    records = [{"data": tag, "tag": tag} for tag in ("a.1", "a.2", "b", "a.1")] + [{"data": "untagged"}]
    await api.post("/v0/topics/t", {"records": records})


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ({"before_seq": 3}, [3, 4, 5]),
        ({"before_seq": 99}, []),
        ({"match": "a.1"}, [2, 3, 5]),
        ({"match": ["tag", "Eq", "a.1"]}, [2, 3, 5]),
        ({"match": ["tag", "Glob", "a.*"]}, [3, 5]),
        ({"match": ["tag", "Glob", "*"]}, [5]),
        ({"match": "a.1", "before_seq": 4}, [2, 3, 4, 5]),
        ({"match": "nobody"}, [1, 2, 3, 4, 5]),
    ],
)
@on_loop
async def test_what_goes(tmp_path: Path, body: dict[str, object], left: list[int]) -> None:
    async with serving(tmp_path) as api:
        await fill(api)
        answer = await api.post("/v0/topics/t/delete", body)
        assert answer.status == 200
        state = (await api.get("/v0/topics/t")).body
        assert answer.without_performance() == {
            "topic": "t",
            "deleted": 5 - len(left),
            "earliest_seq": left[0] if left else 6,
            "head_seq": 5,
            "count": len(left),
            "bytes": state["bytes"],
        }
        page = await api.diff("t")
        assert [record["$seq"] for record in page["records"]] == left
        assert page["tombstone"] is None


@on_loop
async def test_erased_bytes_are_gone_when_the_answer_comes(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.post("/v0/topics/t", {"records": [{"data": "a-secret", "tag": "x"}, {"data": "kept"}]})
        answer = await api.post("/v0/topics/t/delete", {"match": "x", "erase": True})
        assert (answer.status, answer.body["deleted"], answer.body["erased"]) == (200, 1, True)
        stored = b"".join(path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file())
        assert b"a-secret" not in stored
        assert b"kept" in stored


@on_loop
async def test_a_partition(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.put("/v0/topics/t", {"partitions": 2})
        await api.write("t", 1, partition=1)
        assert (await api.post("/v0/topics/t/delete", {"before_seq": 9})).body["deleted"] == 0
        answer = await api.post("/v0/topics/t/delete", {"before_seq": 9, "partition": 1})
        assert (answer.body["deleted"], answer.body["partition"]) == (1, 1)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (None, "before_seq"),
        ({}, "before_seq"),
        ({"before_seq": None}, "before_seq"),
        ({"before_seq": -1}, "before_seq"),
        ({"before_seq": "1"}, "before_seq"),
        ({"match": 5}, "match"),
        ({"match": ["tag", "Like", "x"]}, "match[1]"),
        ({"match": ["tag", "Glob", "x"]}, "match[2]"),
        ({"match": ["node", "Eq", "x"]}, "match[0]"),
        ({"before_seq": 1, "erase": 1}, "erase"),
        (b'{"before_seq":1,"before_seq":2}', "before_seq"),
    ],
)
@on_loop
async def test_a_delete_that_is_none(tmp_path: Path, body: object, field: str) -> None:
    async with serving(tmp_path) as api:
        await fill(api)
        refused = await api.post("/v0/topics/t/delete", body)
        assert refused.refusal == (400, "invalid_request")
        assert refused.error["detail"]["field"] == field
        assert (await api.get("/v0/topics/t")).body["count"] == 5


@on_loop
async def test_a_topic_that_is_not_there(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        for body in ({"before_seq": 1}, {"before_seq": 1, "erase": True}):
            assert (await api.post("/v0/topics/t/delete", body)).refusal == (404, "topic_not_found")


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ({"before_seq": 3}, 2),
        ({"before_seq": 99}, 5),
        ({"before_seq": 0}, 0),
        ({"match": "a.1"}, 2),
        ({"match": ["tag", "Glob", "a.*"], "before_seq": 4}, 2),
        ({"match": "nobody", "erase": True}, 0),
    ],
)
@on_loop
async def test_a_dry_run_counts_what_would_go_and_nothing_goes(
    tmp_path: Path, body: dict[str, object], count: int
) -> None:
    async with serving(tmp_path) as api:
        await fill(api)
        before = (await api.get("/v0/topics/t?touch=false")).without_performance()
        answer = (await api.post("/v0/topics/t/delete", body | {"dry_run": True})).without_performance()
        assert (answer["deleted"], answer["count"], answer["dry_run"], "erased" in answer) == (count, 5, True, False)
        assert (await api.get("/v0/topics/t?touch=false")).without_performance() == before
        assert (await api.post("/v0/topics/t/delete", body)).body["deleted"] == count


@on_loop
async def test_deleting_records_is_data_work_that_no_audit_line_holds_up(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await fill(api)
        for body in (
            {"before_seq": 2},
            {"match": "a"},
            {"before_seq": 3, "erase": True},
            {"match": "b", "dry_run": True},
        ):
            assert (await api.post("/v0/topics/t/delete", body)).status == 200
        await api.post("/v0/topics/t/dead_letters/delete", {"dry_run": True})
        assert (await api.get("/v1/audit")).body["entries"] == []
        assert not (tmp_path / "data" / "audit" / "audit.jsonl").exists()
