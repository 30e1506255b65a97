from __future__ import annotations

import asyncio
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import pytest

from tests.client.rig import on_loop, soon
from tests.server.api import Api, serving
from tests.server.lanerig import serving as lane
from tests.server.routes.test_heaps import make


async def put(api: Api, topic: str = "jobs", **fields: Any) -> dict[str, Any]:
    answer = await api.post("/v1/enqueue", {"topic": topic, **fields})
    assert answer.status == 200, answer.body
    return answer.without_performance()


async def pop(api: Api, topic: str = "jobs", **fields: Any) -> list[dict[str, Any]]:
    answer = await api.post("/v1/pop", {"topic": topic, **fields})
    assert answer.status == 200, answer.body
    items = answer.body["items"]
    assert isinstance(items, list)
    return items


@on_loop
async def test_payloads_are_bytes_or_json(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await make(api)
        await put(api, payload=b64encode(b"\x00\xff").decode(), priority=1)
        await put(api, payload_json={"a": [1, None]}, priority=2, meta={"who": "me"})
        await put(api, payload_json=None, priority=3)
        await put(api, priority=4)
        bytes_, json_, null, empty = await pop(api, max=4)
        assert b64decode(bytes_["payload"]) == b"\x00\xff" and "payload_json" not in bytes_
        assert json_["payload_json"] == {"a": [1, None]} and json_["meta"] == {"who": "me"}
        assert null["payload_json"] is None and empty["payload"] == ""
        for bad in (
            {"payload": "no base64!"},
            {"payload": "", "payload_json": 1},
            {"priority": 2**63},
            {"priority": "x"},
            {"not_before": "soon"},
            {"not_before": True},
        ):
            assert (await api.post("/v1/enqueue", {"topic": "jobs", **bad})).refusal == (400, "INVALID_ARGUMENT"), bad
        assert (await api.post("/v1/enqueue", {"topic": "nowhere"})).refusal == (404, "NOT_FOUND")


@on_loop
async def test_numbers_of_64_bits_may_be_text(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await make(api)
        first = await put(
            api, priority="-9223372036854775808", producer_id="p", epoch="3", sequence="18446744073709551615"
        )
        again = await put(api, priority=0, producer_id="p", epoch=3, sequence=18446744073709551615)
        assert (first["duplicate"], again["duplicate"]) == (False, True)
        assert again["message_id"] == first["message_id"]
        (item,) = await pop(api)
        assert (item["priority"], item["epoch"], item["sequence"]) == (-(2**63), 3, 2**64 - 1)


@pytest.mark.parametrize("path", ["/v1/enqueue:batch", "/v1/enqueue/batch"])
@on_loop
async def test_a_batch_in_both_spellings(tmp_path: Path, path: str) -> None:
    async with serving(tmp_path) as api:
        await make(api, partitions=3)
        await make(api, "more")
        messages = [{"topic": "jobs", "priority": 9 - n, "partition_key": str(n), "payload_json": n} for n in range(9)]
        bad = await api.post(path, {"messages": [*messages, {"topic": "nowhere"}]})
        assert bad.refusal == (404, "NOT_FOUND")
        assert await pop(api, max=9) == []
        good = {"messages": [*messages, {"topic": "more"}], "transaction_id": "t1"}
        done = (await api.post(path, good)).without_performance()
        again = (await api.post(path, good)).without_performance()
        assert done["transaction_id"] == "t1" and len(done["responses"]) == 10
        assert [each["message_id"] for each in again["responses"]] == [each["message_id"] for each in done["responses"]]
        assert [item["payload_json"] for item in await pop(api, max=100)] == list(range(8, -1, -1))
        wrong = await api.post(path, {"messages": [{"topic": "jobs"}, {"topic": "jobs", "priority": "high"}]})
        assert wrong.refusal == (400, "INVALID_ARGUMENT") and wrong.error["detail"]["field"] == "messages[1].priority"
        assert (await api.post(path, {})).refusal == (400, "INVALID_ARGUMENT")


@on_loop
async def test_a_message_is_popped_acked_given_back_and_kept(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await make(api)
        put_one = await put(api, payload_json="one", max_retries=5)
        (item,) = await pop(api, visibility_timeout="20s", consumer="me")
        assert (item["message_id"], item["attempts"], item["max_retries"]) == (put_one["message_id"], 0, 5)
        lease = {"topic": "jobs", "message_id": item["message_id"], "lease_token": item["lease_token"]}
        kept = await api.post("/v1/extend", lease | {"extension": 60})
        assert kept.status == 200 and kept.body["lease_deadline"] > item["lease_deadline"]
        assert (await api.post("/v1/extend", lease)).refusal == (400, "INVALID_ARGUMENT")
        back = await api.post("/v1/nack", lease | {"backoff_override": 0, "reason": "not now"})
        assert (back.body["nacked"], back.body["dead_lettered"]) == (1, 0)
        (again,) = await pop(api)
        assert again["attempts"] == 1
        for path in ("/v1/ack", "/v1/nack", "/v1/extend"):
            told = await api.post(path, lease | {"extension": 1})
            assert told.refusal == (412, "FAILED_PRECONDITION") and told.error["reason"] == "lease_lost"
        many = {
            "topic": "jobs",
            "leases": [{"lease_token": again["lease_token"]}, {"lease_token": item["lease_token"]}],
        }
        released = await api.post("/v1/nack", many | {"undelivered": True})
        assert released.body["nacked"] == 1
        assert [(lost["place"], lost["code"]) for lost in released.body["refused"]] == [(1, "FAILED_PRECONDITION")]
        (last,) = await pop(api)
        assert last["attempts"] == 1, "nobody had looked at it"
        assert (await api.post("/v1/ack", {"topic": "jobs", "lease_token": last["lease_token"]})).body["acked"] == 1
        assert await pop(api) == []
        for bad in ({"topic": "jobs"}, {"topic": "jobs", "lease_token": "x", "leases": []}):
            assert (await api.post("/v1/ack", bad)).refusal == (400, "INVALID_ARGUMENT")


@on_loop
async def test_a_pop_waits_and_who_goes_away_is_leased_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await make(api)
        waiting = asyncio.create_task(pop(api, wait_time=20))
        while not await waits(api):
            await asyncio.sleep(0)
        await put(api, payload_json="late")
        assert [item["payload_json"] for item in await waiting] == ["late"]

        gone = asyncio.create_task(pop(api, wait_time=20))
        while not await waits(api):
            await asyncio.sleep(0)
        gone.cancel()
        await asyncio.wait({gone})
        while await waits(api):
            await asyncio.sleep(0)
        await put(api, payload_json="for others")
        assert [item["payload_json"] for item in await pop(api)] == ["for others"]


async def waits(api: Api) -> bool:
    told = await api.get("/v0/metrics", Accept="application/json")
    return bool(told.body["topics_heap_pops_waiting"])


@on_loop
async def test_looking_takes_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await make(api)
        for number in (3, 1, 2):
            await put(api, payload_json=number, priority=number)
        await put(api, priority=0, not_before=60)
        await pop(api)
        shown = (await api.get("/v1/peek?topic=jobs&limit=2")).body
        assert [item["priority"] for item in shown["items"]] == [2, 3] and shown["has_more"]
        everything = (await api.get("/v1/peek?topic=jobs")).body["items"]
        assert [item["state"] for item in everything] == ["ready", "ready", "leased", "delayed"]
        assert "lease_deadline" in everything[2] and "not_before" in everything[3]
        assert (await api.get("/v1/peek?topic=nowhere")).refusal == (404, "NOT_FOUND")
        assert (await api.get("/v1/peek")).refusal == (400, "INVALID_ARGUMENT")


@on_loop
async def test_a_stop_answers_a_pop_that_waits(tmp_path: Path) -> None:
    async with lane(tmp_path, drain_ms=60_000) as rig:
        api = Api(rig.server.url)
        await make(api)
        waiting = asyncio.create_task(api.post("/v1/pop", {"topic": "jobs", "wait_time": 20}))
        while not rig.engine.heaps.waiting_count():
            await asyncio.sleep(0)
        await soon(rig.server.close())
        assert (await waiting).body["items"] == []


@on_loop
async def test_a_pop_whose_client_is_gone_holds_nothing(tmp_path: Path) -> None:
    async with lane(tmp_path) as rig:
        api = Api(rig.server.url)
        await make(api)
        waiting = asyncio.create_task(api.post("/v1/pop", {"topic": "jobs", "wait_time": 20}))
        while not rig.engine.heaps.waiting_count():
            await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        while len(rig.server._connections):
            await asyncio.sleep(0)
        assert not rig.engine.heaps.waiting_count()


@on_loop
async def test_more_leases_than_one_call_may_name_are_refused_as_such(tmp_path: Path) -> None:
    async with serving(tmp_path, max_claim=1) as api:
        await make(api)
        for path in ("/v1/ack", "/v1/nack", "/v1/extend"):
            many = {"topic": "jobs", "leases": [{"lease_token": "a"}, {"lease_token": "b"}], "extension": 1}
            told = await api.post(path, many)
            assert told.refusal == (400, "INVALID_ARGUMENT")
            assert (told.error["reason"], told.error["detail"]["field"]) == ("batch_too_large", "leases")
            none = await api.post(path, many | {"leases": []})
            assert (none.status, none.error["reason"]) == (400, "invalid_request")


@on_loop
async def test_a_key_given_twice_is_refused_and_nothing_is_enqueued(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await make(api)
        told = await api.post("/v1/enqueue", b'{"topic": "jobs", "priority": 1, "priority": 2}')
        assert told.refusal == (400, "INVALID_ARGUMENT")
        assert (told.error["reason"], told.error["detail"]["field"]) == ("invalid_request", "priority")
        assert await pop(api) == []
