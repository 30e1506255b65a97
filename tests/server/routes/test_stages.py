from __future__ import annotations

from pathlib import Path

import pytest

from tests.client.rig import on_loop
from tests.server.api import Answer, Api, serving
from tests.server.lanerig import serving as lane
from topics.core.commands import Command
from topics.engine.ticket import Ticket
from topics.errors import Throttled


async def stage(api: Api, topic: str, name: str, *datas: object, **options: object) -> Answer:
    records = [{"data": data} for data in datas]
    return await api.post(f"/v0/topics/{topic}/stage", {"stage": name, "records": records, **options})


@on_loop
async def test_stages_appear_together_and_once(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        for name in ("a", "b"):
            await api.put(f"/v0/topics/{name}")
        staged = await stage(api, "a", "s1", 1, 2)
        assert staged.status == 200
        state = staged.without_performance()
        assert state == {
            "stage": "s1",
            "topic": "a",
            "type": "log",
            "partition": 0,
            "partitions": 1,
            "count": 2,
            "bytes": 2,
            "expires_ts": state["expires_ts"],
        }
        await stage(api, "b", "s2", 3)
        assert (await api.diff("a"))["records"] == []
        batch = {"stages": ["s2", "s1"], "producer_id": "p", "epoch": 1}
        published = await api.post("/v0/publish", batch)
        assert published.without_performance() == {
            "written": [
                {"topic": "b", "partition": 0, "first_seq": 1, "last_seq": 1, "head_seq": 1, "count": 1},
                {"topic": "a", "partition": 0, "first_seq": 1, "last_seq": 2, "head_seq": 2, "count": 2},
            ],
            "deduped": False,
        }
        assert len((await api.diff("a"))["records"]) == 2
        again = await api.post("/v0/publish", batch)
        assert (again.status, again.body["deduped"], again.body["written"]) == (200, True, published.body["written"])
        older = await api.post("/v0/publish", batch | {"epoch": 0})
        assert older.refusal == (409, "producer_fenced")


@on_loop
async def test_aborted_stages_are_gone(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.put("/v0/topics/a")
        await stage(api, "a", "s1", 1)
        assert (await api.post("/v0/abort", {"stages": ["s1", "s1", "s9"]})).body["stages"] == ["s1"]
        refused = await api.post("/v0/publish", {"stages": ["s1"], "producer_id": "p", "epoch": 1})
        assert refused.refusal == (404, "stage_not_found")


@on_loop
async def test_a_stage_goes_to_the_partition_of_its_key(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.put("/v0/topics/a", {"partitions": 4})
        assert (await stage(api, "a", "s1", 1, partition=3)).body["partition"] == 3
        assert (await stage(api, "a", "s1", 1, partition=2)).refusal == (409, "stage_conflict")


@on_loop
async def test_other_keys_cannot_reach_a_stage(tmp_path: Path) -> None:
    async with serving(tmp_path, api_keys="all,mine::a.,reader:read") as api:
        api.key = "all"
        await api.put("/v0/topics/b.1")
        await stage(api, "b.1", "s1", 1)
        batch = {"stages": ["s1"], "producer_id": "p", "epoch": 1}
        api.key = "mine"
        missing = await api.post("/v0/publish", batch)
        assert missing.refusal == (404, "stage_not_found") and "b.1" not in missing.error["message"]
        assert (await api.post("/v0/abort", {"stages": ["s1"]})).body["stages"] == []
        api.key = "reader"
        assert (await api.post("/v0/publish", batch)).refusal == (403, "forbidden")
        api.key = "all"
        assert (await api.post("/v0/publish", batch)).status == 200
        api.key = "mine"
        assert (await api.post("/v0/publish", batch)).refusal == (404, "stage_not_found")


KEYS = "all,one::t1.,other::t2.,renewed:rw:t1.,wider::t1.|shared."


@on_loop
async def test_tenants_share_neither_producers_nor_stages(tmp_path: Path) -> None:
    async with serving(tmp_path, api_keys=KEYS) as api:
        for key, topic in (("one", "t1.a"), ("other", "t2.a"), ("all", "b")):
            api.key = key
            assert (await api.put(f"/v0/topics/{topic}")).status == 201
            staged = await stage(api, topic, "s", topic)
            assert staged.body["stage"] == "s" and staged.body["count"] == 1
        for key, epoch in (("other", 2**63), ("one", 1), ("all", 0)):
            api.key = key
            batch = {"stages": ["s"], "producer_id": "p", "epoch": epoch}
            published = await api.post("/v0/publish", batch)
            assert (published.status, published.body["deduped"]) == (200, False), "nobody fences anybody else"
            assert (await api.post("/v0/publish", batch)).body["deduped"] is True
            if epoch:
                older = await api.post("/v0/publish", batch | {"epoch": epoch - 1})
                assert older.refusal == (409, "producer_fenced")
                assert '"p"' in older.error["message"] and "@" not in older.error["message"]
        api.key = "all"
        assert [(await api.diff(topic))["records"][0]["data"] for topic in ("t1.a", "t2.a", "b")] == [
            "t1.a",
            "t2.a",
            "b",
        ]


@on_loop
async def test_new_key_of_a_tenant_goes_on_with_its_producer(tmp_path: Path) -> None:
    batch = {"stages": ["s"], "producer_id": "p", "epoch": 5}
    async with serving(tmp_path, api_keys=KEYS) as api:
        api.key = "one"
        await api.put("/v0/topics/t1.a")
        await stage(api, "t1.a", "s", 1)
        await api.post("/v0/publish", batch)
    async with serving(tmp_path, api_keys=KEYS) as api:
        api.key = "renewed"
        assert (await api.post("/v0/publish", batch)).body["deduped"] is True
        assert (await api.post("/v0/publish", batch | {"epoch": 4})).refusal == (409, "producer_fenced")
        api.key = "wider"
        assert (await api.post("/v0/publish", batch)).refusal == (404, "stage_not_found"), "another set of prefixes"


@on_loop
async def test_plain_batches_of_before_count_as_the_tenants_own(tmp_path: Path) -> None:
    batch = {"stages": ["s"], "producer_id": "p", "epoch": 5}
    async with serving(tmp_path, api_keys=KEYS) as api:
        api.key = "all"
        await api.put("/v0/topics/t1.a")
        await stage(api, "t1.a", "s", 1)
        await api.post("/v0/publish", batch)
        api.key = "one"
        again = await api.post("/v0/publish", batch)
        assert (again.status, again.body["deduped"]) == (200, True), "no record comes twice"
        assert (await api.post("/v0/publish", batch | {"epoch": 4})).refusal == (409, "producer_fenced")
        api.key = "other"
        assert (await api.post("/v0/publish", batch)).refusal == (404, "stage_not_found"), "nothing is told of it"
        api.key = "one"
        await stage(api, "t1.a", "s2", 2)
        newer = {"stages": ["s2"], "producer_id": "p", "epoch": 6}
        assert (await api.post("/v0/publish", newer)).body["deduped"] is False
        api.key = "all"
        await stage(api, "t1.a", "s3", 3)
        own = await api.post("/v0/publish", {"stages": ["s3"], "producer_id": "p", "epoch": 6})
        assert own.body["deduped"] is False, "the tenant's newer epoch is not the operator's"


@on_loop
async def test_long_names_of_a_tenant_are_taken_and_shown_whole(tmp_path: Path) -> None:
    name = "n" * 128
    async with serving(tmp_path, api_keys=KEYS) as api:
        api.key = "one"
        await api.put("/v0/topics/t1.a")
        assert (await stage(api, "t1.a", name, 1)).body["stage"] == name
        assert (await stage(api, "t1.a", name + "n", 1)).refusal == (400, "invalid_request")
        batch = {"stages": [name], "producer_id": name, "epoch": 1}
        assert (await api.post("/v0/publish", batch)).status == 200
        assert (await api.post("/v0/publish", batch)).body["deduped"] is True


@on_loop
async def test_producer_of_the_server_is_refused(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        refused = await api.post("/v0/publish", {"stages": ["s"], "producer_id": "heap-batches", "epoch": 2**64 - 1})
        assert refused.refusal == (400, "invalid_request") and refused.error["detail"]["field"] == "producer_id"


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/v0/topics/a/stage", {"records": [{"data": 1}]}, "stage"),
        ("/v0/topics/a/stage", {"stage": 5, "records": [{"data": 1}]}, "stage"),
        ("/v0/topics/a/stage", {"stage": "", "records": [{"data": 1}]}, "stage"),
        ("/v0/topics/a/stage", {"stage": "s"}, "records"),
        ("/v0/topics/a/stage", {"stage": "s", "records": [{"data": 1}], "idempotency_key": "k"}, "producer_id"),
        ("/v0/topics/a/stage", b'{"stage":"s","stage":"t","records":[{"data":1}]}', "stage"),
        ("/v0/publish", {"stages": [], "producer_id": "p", "epoch": 1}, "stages"),
        ("/v0/publish", {"stages": ["s", "s"], "producer_id": "p", "epoch": 1}, "stages"),
        ("/v0/publish", {"stages": ["s"], "producer_id": "", "epoch": 1}, "producer_id"),
        ("/v0/publish", {"stages": ["s"], "producer_id": "p", "epoch": -1}, "epoch"),
        ("/v0/publish", {"stages": ["s"], "producer_id": "p"}, "epoch"),
        ("/v0/abort", {}, "stages"),
        ("/v0/abort", {"stages": [5]}, "stages[0]"),
    ],
)
@on_loop
async def test_what_is_no_batch(tmp_path: Path, path: str, body: object, field: str) -> None:
    async with serving(tmp_path) as api:
        await api.put("/v0/topics/a")
        refused = await api.post(path, body)
        assert refused.refusal == (400, "invalid_request")
        assert refused.error["detail"]["field"] == field


@on_loop
async def test_who_asks_for_no_refusal_waits_for_room(tmp_path: Path) -> None:
    async with lane(tmp_path) as rig:
        api = Api(rig.server.url)
        await api.put("/v0/topics/a", {})
        host = rig.context.host
        decide = host.decide

        def full(command: Command) -> Ticket:
            host.decide = decide
            raise Throttled("the queue before the disk is full", **detail)

        detail: dict[str, int] = {"retry_after_ms": 1}
        host.decide = full
        assert (await stage(api, "a", "s1", 1)).refusal == (429, "throttled")
        host.decide = full
        for _ in range(2):
            patient = await stage(api, "a", "s1", 1, 2, at=0, disable_backpressure=True)
            assert (patient.status, patient.body["count"]) == (200, 2), "what is there already is not staged again"
            host.decide = full
        detail = {"max": 5}
        host.decide = full
        for_good = await stage(api, "a", "s2", 1, disable_backpressure=True)
        assert for_good.refusal == (429, "throttled"), "what no waiting helps against is told"


@on_loop
async def test_a_write_that_waits_for_room_and_was_made_before_is_not_made_again(tmp_path: Path) -> None:
    async with lane(tmp_path) as rig:
        api = Api(rig.server.url)
        engine = rig.engine
        submit = engine.submit

        def full(command: Command) -> Ticket:
            engine.submit = submit  # type: ignore[method-assign]
            raise Throttled("the queue before the disk is full", retry_after_ms=1)

        for deduped in (False, True):
            engine.submit = full  # type: ignore[method-assign]
            written = await api.write("a", 1, disable_backpressure=True, idempotency_key="once")
            assert (written["seqs"], written["deduped"]) == ([1], deduped)
