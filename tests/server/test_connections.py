from __future__ import annotations

import asyncio
import resource
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.server.httprig import Rig, echo, get, post, run, serving
from topics.limits import KIB
from topics.server.connections import NEVER_NS, SECOND_NS, Connections
from topics.server.heading import Heading
from topics.server.openfiles import raise_file_limit
from topics.testing.clock import SimClock


class Held:
    """A connection that writes down what it is told."""

    def __init__(self, deadline_ns: int = NEVER_NS) -> None:
        self.deadline_ns = deadline_ns
        self.told: list[str] = []

    def expire(self) -> None:
        self.told.append("expire")

    def drain(self) -> None:
        self.told.append("drain")

    def abort(self) -> None:
        self.told.append("abort")


def test_a_look_finds_those_whose_deadline_has_passed() -> None:
    clock = SimClock()
    connections = Connections(clock, Heading(clock.now_ms()), 10)
    early, late, never = Held(SECOND_NS), Held(3 * SECOND_NS), Held()
    names = [connections.add(each) for each in (early, late, never)]
    assert len(set(names)) == 3
    clock.advance(999)
    connections.tick()
    assert early.told == []
    clock.advance(1)
    connections.tick()
    assert (early.told, late.told, never.told) == (["expire"], [], [])
    assert connections.idle_deadline_ns == 11 * SECOND_NS


def test_a_look_sets_the_date_of_answers() -> None:
    clock = SimClock(1_000)
    heading = Heading(0)
    connections = Connections(clock, heading, 10)
    assert heading.date_line == b"Date: Thu, 01 Jan 1970 00:00:01 GMT\r\n"
    clock.advance(2_000)
    connections.tick()
    assert heading.date_line == b"Date: Thu, 01 Jan 1970 00:00:03 GMT\r\n"


def test_the_timer_looks_by_itself_until_it_is_stopped() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        connections = Connections(SimClock(), Heading(0), 10)
        held = Held(0)
        connections.add(held)
        expired = loop.create_future()
        held.expire = lambda: expired.done() or expired.set_result(None)  # type: ignore[method-assign, assignment]
        connections.start()
        await expired
        connections.stop()
        connections.stop()

    run(scenario)


def test_draining_waits_for_the_last_and_cuts_off_who_is_late() -> None:
    async def scenario() -> None:
        connections = Connections(SimClock(), Heading(0), 10)
        assert await connections.drain(10) == 0
        quick, slow = Held(), Held()
        for each in (quick, slow):
            connections.add(each)
        slow.abort = lambda: connections.remove(slow)  # type: ignore[method-assign]
        draining = asyncio.create_task(connections.drain(0.01))
        while not slow.told:
            await asyncio.sleep(0)
        assert quick.told == slow.told == ["drain"]
        connections.remove(quick)
        assert not draining.done()
        assert await draining == 1

    run(scenario)


def test_who_comes_when_all_places_are_taken_is_dropped_and_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    connections = Connections(SimClock(), Heading(0), 10, 2)
    first, second, third = Held(), Held(), Held()
    for each in (first, second, third):
        connections.add(each)
    assert (first.told, second.told, third.told) == ([], [], ["abort"])
    connections.remove(third)
    connections.tick()
    connections.tick()
    (record,) = caplog.records
    assert record.__dict__["fields"] == {"dropped": 1, "connections_max": 2}
    connections.remove(first)
    connections.add(fourth := Held())
    assert fourth.told == []


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_caller_too_many_is_dropped_and_the_others_are_served(loop: str) -> None:
    async def scenario() -> None:
        async with serving() as rig:
            rig.connections._connections_max = 1
            kept = await rig.call()
            kept.send(get())
            assert (await kept.answer()).status == 200
            dropped = await rig.call()
            assert await dropped.ended()
            kept.send(get())
            assert (await kept.answer()).status == 200

    run(scenario, loop)


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_drain_over_sockets(loop: str) -> None:
    async def scenario() -> None:
        async with serving() as rig:
            idle, busy, coming = await rig.call(), await rig.call(), await rig.call()
            idle.send(get())
            await idle.answer()
            rig.answers = None
            busy.send(get("/1") + get("/2"))
            await rig.until_requests(3)
            message = post(b"hello", path="/3")
            coming.send(message[:-1])
            while not any(protocol.receiving for protocol in rig.protocols):
                await asyncio.sleep(0)

            draining = asyncio.create_task(rig.connections.drain(30))
            assert await idle.ended()
            # A request that comes on an open connection is still dispatched, and the last answer says close.
            coming.send(message[-1:])
            await rig.until_requests(4)
            for request, reply in zip(rig.requests[1:], rig.replies, strict=True):
                reply(echo(request))
            assert "connection" not in (await busy.answer()).headers
            assert (await busy.answer()).headers["connection"] == "close"
            assert (await coming.answer()).headers["connection"] == "close"
            assert await busy.ended() and await coming.ended()
            assert await draining == 0

    run(scenario, loop)


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_who_comes_while_it_drains_is_sent_away(loop: str) -> None:
    async def scenario() -> None:
        async with serving() as rig:
            rig.answers = None
            busy = await rig.call()
            busy.send(get())
            await rig.until_requests(1)
            draining = asyncio.create_task(rig.connections.drain(30))
            await asyncio.sleep(0)
            late = await rig.call()
            late.send(get("/late"))
            assert await late.ended()
            rig.replies[0](echo(rig.requests[0]))
            assert (await busy.answer()).headers["connection"] == "close"
            assert await draining == 0
            assert [request.path for request in rig.requests] == ["/"]

    run(scenario, loop)


def test_what_comes_behind_the_answer_that_says_close_is_not_begun() -> None:
    async def scenario() -> None:
        async with serving() as rig:
            caller = await rig.call()
            caller.send(get("/1")[:-1])
            while not any(protocol.receiving for protocol in rig.protocols):
                await asyncio.sleep(0)
            draining = asyncio.create_task(rig.connections.drain(30))
            await asyncio.sleep(0)
            caller.send(get("/1")[-1:] + get("/2"))
            assert (await caller.answer()).headers["connection"] == "close"
            assert await caller.ended()
            assert await draining == 0
            assert [request.path for request in rig.requests] == ["/1"]

    run(scenario)


def test_a_drain_ends_a_connection_whose_last_answer_was_ready_before() -> None:
    async def scenario() -> None:
        async with serving() as rig:
            rig.answers = None
            caller = await rig.call()
            caller.send(get("/1") + get("/2"))
            await rig.until_requests(2)
            rig.replies[1](echo(rig.requests[1]))
            draining = asyncio.create_task(rig.connections.drain(30))
            await asyncio.sleep(0)
            rig.replies[0](echo(rig.requests[0]))
            assert (await caller.answer()).status == (await caller.answer()).status == 200
            assert await draining == 0

    run(scenario)


def test_a_drain_cuts_off_what_is_not_answered_in_time() -> None:
    async def scenario() -> None:
        async with serving() as rig:
            rig.answers = None
            caller = await rig.call()
            caller.send(get())
            await rig.until_requests(1)
            assert await rig.connections.drain(0.01) == 1
            assert await caller.ended()
            rig.replies[0](echo(rig.requests[0]))

    run(scenario)


IDLE_BYTES_MAX = 16 * KIB
"""What an idle connection may cost the process; the kernel's share is not in it."""


class Crowd:
    """Clients in a process of their own, kept in step by lines."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def said(self) -> str:
        assert self._process.stdout is not None
        return (await self._process.stdout.readline()).decode().strip()

    def go_on(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")


@asynccontextmanager
async def crowd(port: int, idle_count: int, active_count: int) -> AsyncIterator[Crowd]:
    command = (sys.executable, str(Path(__file__).with_name("crowd.py")), *map(str, (port, idle_count, active_count)))
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
    try:
        yield Crowd(process)
        assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


async def _hold(rig: Rig, idle_count: int, active_count: int) -> None:
    before_bytes = resident_bytes()
    async with crowd(rig.port, idle_count, active_count) as clients:
        assert await clients.said() == "idle"
        await rig.until_connections(idle_count)
        idle_bytes = (resident_bytes() - before_bytes) / idle_count
        assert idle_bytes < IDLE_BYTES_MAX
        rig.answers = None
        clients.go_on()
        assert await clients.said() == "active"
        await rig.until_requests(active_count)
        assert len(rig.connections) == idle_count + active_count
        for request, reply in zip(rig.requests, rig.replies, strict=True):
            reply(echo(request))
        assert await clients.said() == "answered"
        rig.pass_time(rig.options.idle_timeout_s + 1)
        await rig.until_connections(0)
        assert await clients.said() == f"gone {idle_count + active_count}"


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs a system that tells its memory in /proc")
@pytest.mark.parametrize(
    ("idle_count", "active_count"), [(2000, 1000), pytest.param(10_000, 1000, marks=pytest.mark.soak)]
)
def test_many_connections_are_held(idle_count: int, active_count: int) -> None:
    needed = idle_count + active_count + 100
    if raise_file_limit() < needed:
        pytest.skip(f"needs {needed} open files")

    async def scenario() -> None:
        async with serving() as rig:
            await _hold(rig, idle_count, active_count)

    run(scenario)
