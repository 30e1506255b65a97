"""Pipelined requests: what one connection sends in one go is carried out in the order it was sent."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.server.httprig import Caller, both_loops, run
from tests.server.lanerig import LaneRig, answers, body_of, plain, reached, serving


def request(method: str, path: str, body: object = None) -> bytes:
    content = b"" if body is None else json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json"]
    return "\r\n".join([*lines, f"Content-Length: {len(content)}", "", ""]).encode() + content


def write(data: object, topic: str = "orders") -> bytes:
    return request("POST", f"/v0/topics/{topic}", {"records": [{"data": data}]})


def diff(topic: str = "orders", **fields: Any) -> bytes:
    return request("POST", f"/v0/topics/{topic}/diff", {"from_seq": 0, **fields})


async def pipelined(rig: LaneRig, *requests: bytes) -> list[tuple[int, dict[str, Any]]]:
    """The answers to requests that were sent in one piece on a new connection."""
    caller = await rig.call(known=False)
    caller.send(b"".join(requests))
    return [(answer.status, body_of(answer)) for answer in await answers([caller] * len(requests))]


@both_loops
def test_queue_that_was_just_created_takes_the_write_behind_it(loop: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            for name in ("q1", "q2", "q3"):
                given = await pipelined(
                    rig,
                    request("PUT", f"/v0/topics/{name}", {"type": "queue"}),
                    write({"n": 1}, name),
                    request("POST", f"/v0/topics/{name}/claim", {"node": "w", "max": 1}),
                )
                assert [status for status, _ in given] == [201, 200, 200]
                assert [job["$seq"] for job in given[2][1]["claimed"]] == [1]

    run(scenario, loop)


@pytest.mark.parametrize("durability", ["disk", "fsync", "memory"])
def test_diff_behind_a_write_sees_its_record(durability: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            await rig.ask("PUT", "/v0/topics/orders", {"durability": durability})
            for number in range(10):
                given = await pipelined(rig, write(number), diff())
                assert [record["data"] for record in given[1][1]["records"]] == list(range(number + 1))

    run(scenario)


def test_diff_behind_a_plain_write_of_a_known_head_sees_its_record(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            caller = await rig.call()
            for number in range(1, 10):
                # The write comes alone, so that it goes on its track, and the diff comes right behind it.
                caller.send(plain(b"%d" % number))
                await asyncio.sleep(0)
                caller.send(diff())
                _, page = await answers([caller, caller])
                assert [record["data"] for record in body_of(page)["records"]] == list(range(number + 1))

    run(scenario)


def test_diff_behind_the_delete_of_its_topic_does_not_find_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            for _ in range(5):
                given = await pipelined(
                    rig, write(1), request("DELETE", "/v0/topics/orders"), diff(), request("GET", "/v0/topics/orders")
                )
                assert [status for status, _ in given] == [201, 200, 404, 404]

    run(scenario)


def test_claim_behind_a_write_to_a_queue_gets_the_job(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            await rig.ask("PUT", "/v0/topics/orders", {"type": "queue", "durability": "fsync"})
            claim = request("POST", "/v0/topics/orders/claim", {"node": "w", "max": 5})
            given = await pipelined(rig, write(1), claim, write(2), claim)
            assert [[job["$seq"] for job in body["claimed"]] for _, body in given[1::2]] == [[1], [2]]

    run(scenario)


def test_writes_of_one_connection_are_stored_in_order_without_waiting_for_each_other(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            await rig.ask("PUT", "/v0/topics/orders", {"durability": "fsync"})
            caller = await rig.call(known=False)
            entered, leave = rig.hold_syncs()
            caller.send(b"".join(write(number) for number in range(20)))
            await reached(entered)
            machine = rig.engine.machine
            # None of them is answered, and all of them are in the log.
            while machine.log(machine.topic("orders")).head_seq < 20:
                await asyncio.sleep(0)
            leave.set()
            assert [body_of(await caller.answer())["first_seq"] for _ in range(20)] == list(range(1, 21))
            assert await rig.stored() == list(range(20))

    run(scenario)


def test_write_behind_a_plain_write_of_the_same_turn_is_stored_behind_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            caller = await rig.call()
            connection = rig.connection_of(caller)
            # Two reads of one turn: the first goes on its track, and its turn is not over when the second comes.
            connection.data_received(plain(b"1"))
            connection.data_received(plain(b"2") + plain(b"3"))
            given = [body_of(await caller.answer()) for _ in range(3)]
            assert [each["first_seq"] for each in given] == [2, 3, 4]
            assert await rig.stored() == [0, 1, 2, 3]

    run(scenario)


def test_write_behind_one_that_waits_for_its_key_is_stored_behind_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, api_keys="boss", auth=True) as rig:
            boss = "Authorization: Bearer boss"
            made = await rig.ask("POST", "/v1/keys", {"name": "n", "scopes": ["write", "read"]}, boss)
            managed = f"Authorization: Bearer {body_of(made)['key']}"
            caller = await rig.call(known=False)
            # The secret of the first has to be compared on a thread; the second brings a key that is known already.
            caller.send(plain(b"1", managed) + plain(b"2", boss))
            given = [body_of(each) for each in await answers([caller, caller])]
            assert [each["first_seq"] for each in given] == [1, 2]

    run(scenario)


def test_safe_requests_of_one_connection_run_beside_each_other(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            await rig.ask("PUT", "/v0/topics/orders", {})
            caller = await rig.call(known=False)
            caller.send(diff(wait_ms=30_000) + request("GET", "/v0/health") + request("GET", "/v0/topics/orders"))
            while rig.context.traffic.of("GET", "/v0/topics/{topic}").requests == 0:
                await asyncio.sleep(0)
            assert rig.context.traffic.of("GET", "/v0/health").requests == 1
            await (await rig.call(known=False)).close()
            await rig.ask("POST", "/v0/topics/orders", {"records": [{"data": 7}]})
            page, health, _ = await answers([caller] * 3)
            assert [record["data"] for record in body_of(page)["records"]] == [7]
            assert body_of(health)["status"] == "ok"

    run(scenario)


def test_request_behind_an_unanswered_one_is_dropped_with_its_connection(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            await rig.ask("PUT", "/v0/topics/orders", {"durability": "fsync"})
            caller = await rig.call(known=False)
            entered, leave = rig.hold_syncs()
            caller.send(write(1) + request("DELETE", "/v0/topics/orders"))
            await reached(entered)
            await _lose(rig, caller)
            leave.set()
            page = body_of(await rig.ask("POST", "/v0/topics/orders/diff", {"from_seq": 0, "wait_ms": 30_000}))
            assert [record["data"] for record in page["records"]] == [1]
            assert rig.context.traffic.of("DELETE", "/v0/topics/{topic}").requests == 0

    run(scenario)


async def _lose(rig: LaneRig, caller: Caller) -> None:
    count = len(rig.server._connections)
    caller.reset()
    while len(rig.server._connections) == count:
        await asyncio.sleep(0)


def test_connection_reads_on_when_what_its_request_waited_for_is_answered(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            await rig.ask("PUT", "/v0/topics/orders", {"durability": "fsync"})
            caller = await rig.call(known=False)
            entered, leave = rig.hold_syncs()
            caller.send(write(1) + diff())
            await reached(entered)
            caller.send(write(2) + diff())
            threading.Timer(0, leave.set).start()
            given = [body_of(each) for each in await answers([caller] * 4)]
            assert [len(page["records"]) for page in given[1::2]] == [1, 2]

    run(scenario)


def test_requests_before_the_end_of_sending_are_all_answered(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            await rig.ask("PUT", "/v0/topics/orders", {"durability": "fsync"})
            caller = await rig.call(known=False)
            entered, leave = rig.hold_syncs()
            caller.send(write(1) + diff())
            await reached(entered)
            connection = rig.connection_of(caller)
            caller.send(write(2) + diff())
            caller.end_sending()
            while not connection._client_ends:
                await asyncio.sleep(0)
            leave.set()
            given = [body_of(each) for each in await answers([caller] * 4)]
            assert [len(page["records"]) for page in given[1::2]] == [1, 2]
            assert await caller.ended()

    run(scenario)
