"""Bringing dead letters back over a real socket."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.client.rig import on_loop, soon
from tests.server.api import Answer, Api, serving
from tests.server.lanerig import serving as lane
from tests.server.queues import Jobs, bury
from topics.server.routes import redrive as redriving

DEAD = "dead"
KEYS = "all-secret,writer-secret:write,tenant-secret:rw:tenant42:"


async def redrive(api: Api, **body: Any) -> Answer:
    return await api.post(f"/v0/topics/{DEAD}/redrive", body)


async def data(api: Api, topic: str) -> list[Any]:
    return [record["data"] for record in (await api.diff(topic, limit=10_000))["records"]]


@on_loop
async def test_all_of_them_go_back_to_where_they_came_from(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        jobs = await bury(api, 3)
        more = await bury(api, 2, "more")
        await api.write(DEAD, "no dead letter")
        answer = await api.post(f"/v0/topics/{DEAD}/redrive")
        assert answer.status == 200
        assert answer.without_performance() == {
            "topic": DEAD,
            "moved": 5,
            "skipped": 0,
            "scanned": 6,
            "next_from_seq": 6,
            "head_seq": 6,
            "done": True,
            "dry_run": False,
        }
        assert await data(api, DEAD) == ["no dead letter"]
        assert (await jobs.counts(), await more.counts()) == ((3, 0, 0, 3), (2, 0, 0, 2))
        first, *_ = await jobs.claim(max=3)
        assert (first["data"], first["$tag"], first["meta"], first["deliveries"]) == (0, "t0", {"m": "1"}, 1)


@pytest.mark.parametrize(
    ("body", "moved"),
    [
        ({"match": "t1"}, [1]),
        ({"match": ["tag", "Glob", "t*"]}, [0, 1, 2, 3]),
        ({"source": "jobs"}, [0, 1, 2, 3]),
        ({"source": "other"}, []),
        ({"reason": "max_deliveries"}, [0, 1, 2, 3]),
        ({"reason": "another"}, []),
        ({"from_seq": 2}, [2, 3]),
        ({"before_seq": 3}, [0, 1]),
        ({"limit": 3}, [0, 1, 2]),
        ({"from_seq": 1, "before_seq": 4, "limit": 1}, [1]),
    ],
)
@on_loop
async def test_some_of_them(tmp_path: Path, body: dict[str, Any], moved: list[int]) -> None:
    async with serving(tmp_path) as api:
        await bury(api, 4)
        dry = await redrive(api, **body, dry_run=True)
        assert (dry.status, dry.body["moved"], dry.body["dry_run"]) == (200, len(moved), True)
        assert await data(api, DEAD) == [0, 1, 2, 3], "a dry run moves nothing"
        assert (await redrive(api, **body)).body["moved"] == len(moved)
        assert await data(api, "jobs") == moved
        assert await data(api, DEAD) == [n for n in range(4) if n not in moved]


@on_loop
async def test_to_another_topic(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await bury(api, 2)
        missing = await redrive(api, destination="elsewhere")
        assert missing.refusal == (404, "topic_not_found")
        await Jobs(api, "elsewhere").create()
        assert (await redrive(api, destination="elsewhere")).body["moved"] == 2
        assert await Jobs(api, "elsewhere").counts() == (2, 0, 0, 0)


@on_loop
async def test_what_cannot_go_stays_and_is_counted(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await bury(api, 2)
        await api.delete("/v0/topics/jobs")
        answer = await redrive(api)
        assert (answer.body["moved"], answer.body["skipped"], answer.body["done"]) == (0, 2, True)
        assert await data(api, DEAD) == [0, 1]


@on_loop
async def test_many_go_in_one_request_and_a_limit_goes_on(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        jobs = await bury(api, 700)
        first = (await redrive(api, limit=300)).body
        assert (first["moved"], first["done"], first["head_seq"]) == (300, False, 700)
        rest = (await redrive(api, from_seq=first["next_from_seq"], before_seq=first["head_seq"] + 1)).body
        assert (rest["moved"], rest["done"], rest["next_from_seq"]) == (400, True, 700)
        assert await data(api, "jobs") == list(range(700))
        assert await jobs.counts() == (700, 0, 0, 700)


@on_loop
async def test_no_faster_than_asked_for(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await bury(api, 30)
        await api.write("clock", 0)
        began = (await api.diff("clock"))["records"][0]["$ts"]
        answer = await soon(redrive(api, rate_per_second=50))
        assert (answer.body["moved"], answer.body["done"]) == (30, True)
        last = (await api.diff("jobs", limit=100))["records"][-1]["$ts"]
        # Steps of 5: before the last of them 25 had gone, which takes half a second at this rate.
        assert last >= began + 499


@on_loop
async def test_what_fails_again_meanwhile_waits_for_another_time(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await bury(api, 10)
        under_way = asyncio.ensure_future(redrive(api, rate_per_second=20))
        while not await data(api, "jobs"):
            pass
        await api.post(f"/v0/topics/{DEAD}", {"records": [{"data": "new", "meta": {"$dead_letter_from": "jobs"}}]})
        answer = (await soon(under_way)).body
        assert (answer["moved"], answer["done"], answer["head_seq"]) == (10, True, 10)
        assert await data(api, DEAD) == ["new"]
        assert (await redrive(api, from_seq=answer["next_from_seq"])).body["moved"] == 1


@on_loop
async def test_what_is_wrong(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await bury(api, 1)
        for body, field in [
            ({"limit": 0}, "limit"),
            ({"from_seq": -1}, "from_seq"),
            ({"destination": "no no"}, "destination"),
            ({"destination": DEAD}, "destination"),
            ({"source": 5}, "source"),
            ({"rate_per_second": 0}, "rate_per_second"),
            ({"match": ["tag", "Near", "x"]}, "match[1]"),
        ]:
            refused = await redrive(api, **body)
            assert (refused.refusal, refused.error["detail"]["field"]) == ((400, "invalid_request"), field), body
        assert (await api.post("/v0/topics/nowhere/redrive")).refusal == (404, "topic_not_found")
        assert await data(api, DEAD) == [0]


@on_loop
async def test_what_a_key_may_do(tmp_path: Path) -> None:
    async with serving(tmp_path, api_keys=KEYS) as api:
        api.key = "all-secret"
        await bury(api, 1, "tenant42:jobs", "tenant42:dead")
        await bury(api, 1)
        api.key = "writer-secret"
        assert (await redrive(api)).refusal == (403, "forbidden")
        api.key = "tenant-secret"
        assert (await redrive(api)).refusal == (403, "forbidden"), "another's dead letters"
        path = "/v0/topics/tenant42:dead/redrive"
        for body in ({}, {"source": "jobs"}, {"destination": "jobs"}):
            assert (await api.post(path, body)).refusal == (403, "forbidden"), body
        assert (await api.post(path, {"source": "tenant42:jobs"})).body["moved"] == 1


@on_loop
async def test_from_a_topic_of_several_partitions_each_is_told(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.put(f"/v0/topics/{DEAD}", {"partitions": 2})
        await bury(api, 3)
        counts = {}
        for partition in (0, 1):
            dry = (await redrive(api, partition=partition, dry_run=True)).body
            assert dry["partition"] == partition
            counts[partition] = dry["moved"]
        assert sum(counts.values()) == 3
        delete = f"/v0/topics/{DEAD}/dead_letters/delete"
        for partition, count in counts.items():
            told = (await api.post(delete, {"partition": partition, "dry_run": True})).body
            assert (told["partition"], told["deleted"]) == (partition, count)
            assert (await redrive(api, partition=partition)).body["moved"] == count
        assert len(await data(api, "jobs")) == 3


@on_loop
async def test_a_server_that_stops_ends_it_between_two_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with lane(tmp_path) as rig:
        api = Api(rig.server.url)
        await bury(api, 8)

        async def stop_meanwhile(seconds: float) -> None:
            assert seconds > 0
            rig.context.draining = True

        patient = SimpleNamespace(sleep=stop_meanwhile, get_running_loop=asyncio.get_running_loop)
        monkeypatch.setattr(redriving, "asyncio", patient)
        answer = (await soon(redrive(api, rate_per_second=1))).body
        rig.context.draining = False
        assert (answer["moved"], answer["done"], answer["next_from_seq"]) == (1, False, 1)
        assert await data(api, "jobs") == [0]
        assert (await redrive(api, from_seq=answer["next_from_seq"])).body["moved"] == 7
