from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.server.httprig import both_loops, get, run
from tests.server.lanerig import answers, body_of, plain, reached, serving, write
from topics.server.httpoptions import HttpOptions
from topics.server.message import Reply, Request
from topics.server.principal import EVERYBODY
from topics.server.requesthead import RequestHead
from topics.server.track import (
    PLAIN_BYTES_MAX,
    PLAIN_BYTES_MIN,
    PLAIN_END,
    PLAIN_START,
    STARTS_MAX,
    Track,
    around_length,
    no_track,
)

HEAD = b"POST /v0/topics/a HTTP/1.1\r\nHost: here\r\nContent-Length: %d\r\nX-Y: z\r\n\r\n"


class Nobody:
    def answer_plain(self, template: bytes, seq: bytes) -> bool:
        raise AssertionError

    def leave_track(self, head: RequestHead, body: bytes, received_ns: int) -> tuple[Request, Reply]:
        raise AssertionError


def request_head() -> RequestHead:
    return RequestHead("POST", b"/v0/topics/a", "1.1", {"host": "here", "content-length": "9"}, True, HttpOptions())


def track(due: list[Track] | None = None) -> Track:
    parts = around_length(HEAD % 9)
    assert parts is not None
    return Track(parts, request_head(), "a", EVERYBODY, [].append if due is None else due.append)


def request(body_bytes: int) -> bytes:
    return HEAD % body_bytes + PLAIN_START + b"1" * (body_bytes - PLAIN_BYTES_MIN + 1) + PLAIN_END


def test_a_plain_write_of_any_length_begins_as_its_length_says() -> None:
    starts = track().starts
    for body_bytes in range(PLAIN_BYTES_MIN, PLAIN_BYTES_MAX + 1):
        sent = request(body_bytes)
        assert sent.startswith(starts[len(sent)])
        assert len(starts[len(sent)]) == len(HEAD % body_bytes) + len(PLAIN_START)
    assert len(starts) <= STARTS_MAX


def test_a_length_that_is_not_the_requests_does_not_fit() -> None:
    starts = track().starts
    for body_bytes in range(PLAIN_BYTES_MIN, PLAIN_BYTES_MAX + 1):
        for sent in (request(body_bytes) + b" ", request(body_bytes)[:-1]):
            assert not sent.startswith(starts[len(sent)])


@pytest.mark.parametrize("size", [0, 1, 50, len(HEAD % 9), 10**9, len(request(PLAIN_BYTES_MAX)) + 1])
def test_nothing_begins_like_a_length_that_no_plain_write_has(size: int) -> None:
    assert track().starts[size] == b"\r"


def test_what_was_taken_leaves_once_and_in_order() -> None:
    due: list[Track] = []
    lane = track(due)
    ann, bob = Nobody(), Nobody()
    lane.take(ann, HEAD % 27 + PLAIN_START + b'"ab"' + PLAIN_END)
    lane.take(bob, HEAD % 24 + PLAIN_START + b"1" + PLAIN_END)
    assert due == [lane]
    assert lane.leave() == ([ann, bob], [b'"ab"', b"1"])
    assert lane.leave() == ([], [])
    lane.take(bob, HEAD % 24 + PLAIN_START + b"1" + PLAIN_END)
    assert due == [lane, lane]


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"CONTENT-LENGTH: 9\r\n",
        b"Content-Length:9\r\n",
        b"Content-Length: 09\r\n",
        b"Content-Length: 0\r\n",
        b"Content-Length: 9 \r\n",
        b"Content-Length: 9\r\nX: y\r\nContent-Length: 9\r\n",
    ],
)
def test_only_a_length_that_is_there_once_and_as_most_write_it_is_found(line: bytes) -> None:
    assert around_length(b"POST / HTTP/1.1\r\n" + line + b"\r\n") is None


@pytest.mark.parametrize("name", [b"Content-Length", b"content-length"])
def test_the_bytes_around_the_length_are_all_but_its_digits(name: bytes) -> None:
    before, after = b"POST / HTTP/1.1\r\n" + name + b": ", b"\r\nHost: x\r\n\r\n"
    assert around_length(before + b"1234" + after) == (before, after)


def test_without_a_lane_there_is_no_track() -> None:
    assert no_track(HEAD % 9, request_head()) is None  # type: ignore[func-returns-value]


# ---- connections that are writers on a track


def test_what_comes_behind_a_write_is_answered_behind_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            await rig.ask("PUT", "/v0/topics/orders", {"durability": "fsync"})
            caller = await rig.call()
            entered, leave = rig.hold_syncs()
            caller.send(plain(b"1"))
            await reached(entered)
            caller.send(get("/v0/health") + plain(b"2"))
            while rig.context.traffic.of("GET", "/v0/health").requests == 0:
                await asyncio.sleep(0)
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
            count = len(rig.server._connections)
            callers[1].reset()
            while len(rig.server._connections) == count:
                await asyncio.sleep(0)
            leave.set()
            assert [answer.status for answer in await answers([callers[0], callers[2]])] == [200, 200]
            assert await rig.stored() == [0, 0, 0, 1, 1, 1]

    run(scenario, loop)


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
