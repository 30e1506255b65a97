from __future__ import annotations

import asyncio
import errno
import threading
from functools import partial
from pathlib import Path

from tests.server.httprig import Caller, both_loops, run
from tests.server.lanerig import LaneRig, answers, body_of, fails_to_close, plain, reached, serving, write
from tests.server.test_joblane import ack, claim, make, seqs_of, workers
from topics.testing import Call


async def lose(rig: LaneRig, caller: Caller) -> None:
    """A client vanishes, and the server has seen it."""
    count = len(rig.server._connections)
    caller.reset()
    while len(rig.server._connections) == count:
        await asyncio.sleep(0)


def test_what_comes_behind_a_write_is_answered_behind_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            await rig.ask("PUT", "/v0/topics/orders", {"durability": "fsync"})
            caller = await rig.call()
            entered, leave = rig.hold_syncs()
            caller.send(plain(b"1"))
            await reached(entered)
            caller.send(b"GET /v0/health HTTP/1.1\r\nHost: localhost\r\n\r\n" + plain(b"2"))
            connection = rig.connection_of(caller)
            while not connection._waiting:
                await asyncio.sleep(0)
            assert rig.context.traffic.of("GET", "/v0/health").requests == 0
            leave.set()
            given = [await caller.answer() for _ in range(3)]
            assert body_of(given[0])["first_seq"] == 2
            assert body_of(given[1])["status"] == "ok"
            assert body_of(given[2])["first_seq"] == 3
            numbers = [int(answer.headers["x-request-id"].rsplit("-", 1)[1]) for answer in given]
            assert numbers == [numbers[0], numbers[0] + 1, numbers[0] + 2]

    run(scenario)


def test_half_a_request_behind_a_write_waits_for_its_other_half(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            await rig.ask("PUT", "/v0/topics/orders", {"durability": "fsync"})
            caller = await rig.call()
            entered, leave = rig.hold_syncs()
            caller.send(plain(b"1"))
            await reached(entered)
            behind = plain(b"2")
            caller.send(behind[:30])
            (connection,) = [
                each for each in rig.server._connections._open if each.receiving is False and each._pending
            ]  # type: ignore[attr-defined]
            while not connection.receiving:
                await asyncio.sleep(0)
            leave.set()
            assert body_of(await caller.answer())["first_seq"] == 2
            # It has the time that a head has, not that of an idle connection.
            assert connection.deadline_ns < rig.server._connections.idle_deadline_ns
            caller.send(behind[30:])
            assert body_of(await caller.answer())["first_seq"] == 3

    run(scenario)


def test_what_only_looks_like_a_write_in_the_middle_of_another_request_is_none(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            caller = await rig.call()
            inside = plain(b"1")
            sent = write(b'{"from_seq": 0}' + b" " * len(inside), topic="orders/diff")
            # The client's bytes end where the disguised write begins, so that it comes alone.
            caller.send(sent[: -len(inside)])
            while not any(each.receiving for each in rig.server._connections._open):  # type: ignore[attr-defined]
                await asyncio.sleep(0)
            caller.send(inside)
            assert (await caller.answer()).status == 400
            assert await rig.stored() == [0]

    run(scenario)


@both_loops
def test_a_connection_that_is_lost_takes_nobody_with_it(loop: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            await rig.ask("PUT", "/v0/topics/orders", {"durability": "fsync"})
            callers = await rig.calls(3)
            entered, leave = rig.hold_syncs()
            for caller in callers:
                caller.send(plain(b"1"))
            await reached(entered)
            await lose(rig, callers[1])
            leave.set()
            assert [answer.status for answer in await answers([callers[0], callers[2]])] == [200, 200]
            assert await rig.stored() == [0, 0, 0, 1, 1, 1]

    run(scenario, loop)


def test_a_worker_that_is_lost_while_its_ack_is_stored_takes_nobody_with_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            await make(rig, 2, durability="fsync")
            callers = await workers(rig, 2)
            for number, caller in enumerate(callers):
                caller.send(claim(f"w{number}"))
            held = [seqs_of(answer) for answer in await answers(callers)]
            entered, leave = rig.hold_syncs()
            for number, caller in enumerate(callers):
                caller.send(ack(f"w{number}", held[number]))
            await reached(entered)
            await lose(rig, callers[0])
            leave.set()
            assert body_of(await callers[1].answer())["acked"] == 1
            assert body_of(await rig.ask("GET", "/v0/topics/jobs"))["count"] == 0

    run(scenario)


def test_a_disk_that_fails_is_told_to_those_who_are_still_there(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            await rig.ask("PUT", "/v0/topics/orders", {"durability": "fsync"})
            callers = await rig.calls(2)
            entered, leave = threading.Event(), threading.Event()

            def hold(_call: Call) -> None:
                entered.set()
                assert leave.wait(30)

            rig.fs.fail("sync", errno.EIO, path="*.wal", always=True, on_fire=hold)
            for caller in callers:
                caller.send(plain(b"1"))
            await reached(entered)
            await lose(rig, callers[0])
            leave.set()
            answer = await callers[1].answer()
            assert (answer.status, answer.error) == (503, "log_stopped")
            rig.fs.clear()

    run(partial(fails_to_close, scenario))


def test_a_client_that_sends_no_more_still_gets_its_answer(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            await rig.ask("PUT", "/v0/topics/orders", {"durability": "fsync"})
            caller = await rig.call()
            entered, leave = rig.hold_syncs()
            caller.send(plain(b"1"))
            await reached(entered)
            caller.end_sending()
            (connection,) = [each for each in rig.server._connections._open if each._pending]  # type: ignore[attr-defined]
            while not connection._client_ended:
                await asyncio.sleep(0)
            leave.set()
            answer = await caller.answer()
            assert (answer.status, answer.headers["connection"]) == (200, "close")
            assert await caller.ended()

    run(scenario)


def test_a_server_that_drains_answers_what_it_took(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            await rig.ask("PUT", "/v0/topics/orders", {"durability": "fsync"})
            callers = await rig.calls(2)
            entered, leave = rig.hold_syncs()
            callers[0].send(plain(b"1"))
            await reached(entered)
            closing = asyncio.create_task(rig.server.close())
            while not rig.server._connections.draining:
                await asyncio.sleep(0)
            leave.set()
            answer = await callers[0].answer()
            assert (answer.status, answer.headers["connection"]) == (200, "close")
            assert await callers[1].ended()
            await closing

    run(scenario)
