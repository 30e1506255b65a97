"""Answers of unknown length on a real socket: framing, order, back-pressure, and each way in which one can end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.server.httprig import Caller, Rig, asked, both_loops, echo, get, post, run, serving
from tests.server.outlets import Tape, streamed
from topics.server.message import Request, Response
from topics.server.streaming import Stream, chunk


async def head(caller: Caller) -> tuple[int, dict[str, str]]:
    lines = (await caller.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    pairs = (line.split(": ", 1) for line in lines[1:] if line)
    return int(lines[0].split()[1]), {name.lower(): value for name, value in pairs}


async def piece(caller: Caller) -> bytes:
    size = int(await caller.reader.readuntil(b"\r\n"), 16)
    found = await caller.reader.readexactly(size)
    assert await caller.reader.readexactly(2) == b"\r\n"
    return found


def ends(stream: Stream) -> None:
    stream.end()


def feed(rig: Rig, *tapes: Tape) -> None:
    """Streams for `/stream`, one tape after the other, and the echo for all else."""
    left = list(tapes)

    def answer(request: Request) -> Response:
        return streamed(left.pop(0)) if request.path == "/stream" else echo(request)

    rig.answers = answer


# ---- framing


@both_loops
def test_a_stream_is_a_head_and_then_what_comes(loop: str) -> None:
    async def scenario() -> None:
        async with serving() as rig:
            tape = Tape()
            feed(rig, tape)
            caller = await rig.call()
            caller.send(get("/stream", "X-Request-Id: mine"))
            status, headers = await head(caller)
            assert status == 200
            assert headers == {
                "date": "Tue, 14 Nov 2023 22:13:20 GMT",
                "content-type": "text/event-stream",
                "x-request-id": "mine",
                "connection": "keep-alive",
                "transfer-encoding": "chunked",
            }
            await tape.until("opened")
            for number in range(3):
                tape.open.send(b"event %d" % number)
                assert await piece(caller) == b"event %d" % number
            shared = chunk(b"shared")
            tape.open.write(shared)
            tape.open.write(shared)
            assert [await piece(caller), await piece(caller)] == [b"shared", b"shared"]
            tape.open.end()
            assert tape.heard == ["opened", "closed"], "closed is told before `end` returns"
            assert await piece(caller) == b""
            caller.send(get("/next"))
            assert asked(await caller.answer())["path"] == "/next"

    run(scenario, loop)


@both_loops
def test_http_1_0_gets_the_bare_bytes_and_the_end_of_the_connection(loop: str) -> None:
    async def scenario() -> None:
        async with serving() as rig:
            tape = Tape()
            feed(rig, tape)
            caller = await rig.call()
            caller.send(b"GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            _, headers = await head(caller)
            assert headers["connection"] == "close" and "transfer-encoding" not in headers
            await tape.until("opened")
            assert not tape.open.chunked
            tape.open.send(b"bare")
            tape.open.end()
            assert await caller.reader.read() == b"bare"

    run(scenario, loop)


def test_head_gets_the_head_and_opens_nothing() -> None:
    async def scenario() -> None:
        async with serving() as rig:
            tape = Tape()
            feed(rig, tape)
            caller = await rig.call()
            caller.send(get("/stream").replace(b"GET", b"HEAD") + get("/next"))
            assert (await head(caller))[0] == 200
            assert asked(await caller.answer())["path"] == "/next"
            assert tape.heard == ["closed"]

    run(scenario)


def test_a_client_that_wanted_the_connection_closed_gets_that_behind_the_stream() -> None:
    async def scenario() -> None:
        async with serving() as rig:
            tape = Tape({"opened": ends})
            feed(rig, tape)
            caller = await rig.call()
            caller.send(get("/stream", "Connection: close"))
            assert (await head(caller))[1]["connection"] == "close"
            assert await caller.reader.read() == b"0\r\n\r\n"

    run(scenario)


# ---- order


@both_loops
def test_a_stream_waits_for_the_answers_before_it_and_those_behind_wait_for_it(loop: str) -> None:
    async def scenario() -> None:
        async with serving() as rig:
            rig.answers = None
            caller = await rig.call()
            caller.send(get("/1") + get("/2"))
            await rig.until_requests(2)
            tape = Tape()
            rig.replies[1](streamed(tape))
            assert tape.heard == []
            rig.replies[0](echo(rig.requests[0]))
            assert tape.heard == ["opened"]
            tape.open.send(b"one")
            feed(rig)
            caller.send(get("/3") + post(b"4", path="/4"))
            assert asked(await caller.answer())["path"] == "/1"
            await head(caller)
            assert await piece(caller) == b"one"
            while rig.protocols[0].received_bytes < len(get("/1") * 3 + post(b"4", path="/4")):
                await asyncio.sleep(0)
            assert len(rig.requests) == 2, "what comes behind a stream is not begun"
            tape.open.end()
            assert await piece(caller) == b""
            assert [asked(await caller.answer())["path"] for _ in range(2)] == ["/3", "/4"]

    run(scenario, loop)


def test_streams_may_follow_each_other_in_one_packet() -> None:
    async def scenario() -> None:
        async with serving() as rig:
            tapes = [Tape({"opened": ends}) for _ in range(20)]
            feed(rig, *tapes)
            caller = await rig.call()
            caller.send(b"".join(get("/stream") + get(f"/{number}") for number in range(20)))
            for number in range(20):
                await head(caller)
                assert await piece(caller) == b""
                assert asked(await caller.answer())["path"] == f"/{number}"
            assert {tuple(tape.heard) for tape in tapes} == {("opened", "closed")}

    run(scenario)


def test_a_request_that_was_begun_before_the_stream_was_known_is_answered_behind_it() -> None:
    async def scenario() -> None:
        async with serving() as rig:
            rig.answers = None
            caller = await rig.call()
            caller.send(get("/1") + get("/2"))
            await rig.until_requests(2)
            rig.replies[1](echo(rig.requests[1]))
            tape = Tape()
            rig.replies[0](streamed(tape))
            tape.open.end()
            await head(caller)
            assert await piece(caller) == b""
            assert asked(await caller.answer())["path"] == "/2"

    run(scenario)


@both_loops
def test_what_is_sent_behind_a_stream_is_held_back_up_to_a_bound(loop: str) -> None:
    async def scenario() -> None:
        async with serving() as rig:
            tape = Tape()
            feed(rig, tape)
            caller = await rig.call()
            body = b"x" * 20_000_000
            caller.send(get("/stream") + post(body, path="/big"))
            await tape.until("opened")
            for _ in range(200):
                await asyncio.sleep(0)
            assert rig.protocols[0].received_bytes < 2_000_000
            tape.open.end()
            await head(caller)
            assert await piece(caller) == b""
            assert len(asked(await caller.answer())["body"]) == len(body)

    run(scenario, loop)


# ---- back-pressure


@both_loops
def test_a_client_that_does_not_read_fills_its_stream_and_drains_it(loop: str) -> None:
    async def scenario() -> None:
        async with serving() as rig:
            tape = Tape()
            feed(rig, tape)
            caller = await rig.call()
            caller.send(get("/stream"))
            await tape.until("opened")
            stream = tape.open
            caller.writer.transport.pause_reading()  # type: ignore[attr-defined]
            sent = 0
            while not stream.full:
                stream.send(b"%07d" % sent * 600)
                sent += 1
                await asyncio.sleep(0)
            assert tape.heard == ["opened", "filled"] and stream.unsent_bytes > 1000
            # Reading nothing for long is the outlet's business, not the connection's.
            rig.pass_time(10 * rig.options.write_timeout_s)
            assert not stream.ended
            caller.writer.transport.resume_reading()  # type: ignore[attr-defined]
            await head(caller)
            for number in range(sent):
                assert await piece(caller) == b"%07d" % number * 600
            await tape.until("drained")
            assert not stream.full
            stream.end()
            assert await piece(caller) == b""

    run(scenario, loop)


@both_loops
@pytest.mark.parametrize("close", [True, False])
def test_a_stream_that_ends_full_gives_the_client_its_time_and_no_more(loop: str, close: bool) -> None:
    async def scenario() -> None:
        async with serving() as rig:
            tape = Tape()
            feed(rig, tape)
            caller = await rig.call()
            caller.send(get("/stream"))
            await tape.until("opened")
            caller.writer.transport.pause_reading()  # type: ignore[attr-defined]
            tape.open.send(b"x" * 20_000_000)
            tape.open.end(close)
            assert tape.heard == ["opened", "filled", "closed"]
            timeout_s = rig.options.linger_timeout_s if close else rig.options.write_timeout_s
            rig.pass_time(timeout_s - 1)
            assert len(rig.connections) == 1
            for _ in range(3):
                # As long again for what it read from the kernel's buffers.
                rig.pass_time(timeout_s + 1)
            await rig.until_connections(0)

    run(scenario, loop)


# ---- time


def test_no_deadline_holds_for_a_stream_but_its_own() -> None:
    async def scenario() -> None:
        async with serving() as rig:
            tape = Tape({"opened": lambda stream: stream.wake_at(2**62)})
            feed(rig, tape)
            caller = await rig.call()
            # Half a request behind it is no reason for a timeout either. So long a head is parsed with what follows.
            caller.send(get("/stream", "X: " + "x" * 3000) + get("/next")[:20])
            await tape.until("opened")
            await asyncio.sleep(0)
            assert rig.protocols[0].deadline_ns == 2**62
            rig.pass_time(10_000)
            assert tape.heard == ["opened"]
            tape.open.wake_at(rig.clock.ticks_ns() + 5_000_000_000)
            rig.pass_time(4)
            assert tape.heard == ["opened"]
            rig.pass_time(2)
            rig.pass_time(100)
            assert tape.heard == ["opened", "expired"]
            tape.open.end()
            caller.send(get("/next")[20:])
            await head(caller)
            assert await piece(caller) == b""
            assert asked(await caller.answer())["path"] == "/next"

    run(scenario)


# ---- the end

End = Callable[[Rig, Caller, Tape], Awaitable[None]]


async def closes(rig: Rig, caller: Caller, tape: Tape) -> None:
    await caller.close()


async def resets(rig: Rig, caller: Caller, tape: Tape) -> None:
    caller.reset()


async def half_closes(rig: Rig, caller: Caller, tape: Tape) -> None:
    caller.end_sending()
    await tape.until("closed")
    # What was sent until then arrives, and then the connection ends.
    assert (await caller.reader.read()).endswith(chunk(b"hello"))


async def server_ends(rig: Rig, caller: Caller, tape: Tape) -> None:
    tape.open.end(close=True)
    assert (await caller.reader.read()).endswith(b"0\r\n\r\n")


async def server_aborts(rig: Rig, caller: Caller, tape: Tape) -> None:
    tape.open.abort()


async def drains(rig: Rig, caller: Caller, tape: Tape) -> None:
    tape.when["stopping"] = lambda stream: (stream.send(b"bye"), stream.end())[0]
    assert await rig.connections.drain(10) == 0
    assert (await caller.reader.read()).endswith(chunk(b"bye") + b"0\r\n\r\n")


async def drains_in_vain(rig: Rig, caller: Caller, tape: Tape) -> None:
    assert await rig.connections.drain(0) == 1
    assert "stopping" in tape.heard


WAYS: dict[str, End] = {
    "the client closes": closes,
    "the client resets": resets,
    "the client ends its side": half_closes,
    "the server ends it": server_ends,
    "the server aborts": server_aborts,
    "the server drains": drains,
    "the drain is out of time": drains_in_vain,
}


@both_loops
@pytest.mark.parametrize("way", WAYS)
def test_a_stream_is_closed_exactly_once_whichever_way_it_ends(loop: str, way: str) -> None:
    async def scenario() -> None:
        async with serving() as rig:
            tape = Tape()
            feed(rig, tape)
            caller = await rig.call()
            caller.send(get("/stream"))
            await tape.until("opened")
            tape.open.send(b"hello")
            await WAYS[way](rig, caller, tape)
            await tape.until("closed")
            await caller.close()
            await rig.until_connections(0)
            assert tape.heard[0] == "opened" and tape.heard[-1] == "closed"
            assert tape.heard.count("closed") == 1

    run(scenario, loop)


@pytest.mark.parametrize("way", ["the client closes", "the client resets", "the drain is out of time"])
def test_a_full_stream_is_closed_as_well(way: str) -> None:
    async def scenario() -> None:
        async with serving() as rig:
            tape = Tape()
            feed(rig, tape)
            caller = await rig.call()
            caller.send(get("/stream"))
            await tape.until("opened")
            caller.writer.transport.pause_reading()  # type: ignore[attr-defined]
            tape.open.send(b"x" * 20_000_000)
            await tape.until("filled")
            await WAYS[way](rig, caller, tape)
            await tape.until("closed")
            assert tape.heard.count("closed") == 1

    run(scenario)


def test_a_stream_that_opens_while_the_server_drains_is_told_at_once() -> None:
    async def scenario() -> None:
        async with serving() as rig:
            rig.answers = None
            caller = await rig.call()
            caller.send(get("/1") + get("/2"))
            await rig.until_requests(2)
            tape = Tape({"stopping": lambda stream: stream.end()})
            rig.replies[1](streamed(tape))
            draining = asyncio.create_task(rig.connections.drain(30))
            while not rig.connections.draining:
                await asyncio.sleep(0)
            rig.replies[0](echo(rig.requests[0]))
            assert tape.heard == ["opened", "stopping", "closed"]
            await caller.close()
            assert await draining == 0

    run(scenario)


def test_a_stream_that_comes_too_late_is_closed_without_having_been_open() -> None:
    async def scenario() -> None:
        async with serving() as rig:
            rig.answers = None
            caller = await rig.call()
            caller.send(get("/1") + get("/2"))
            await rig.until_requests(2)
            waiting, late = Tape(), Tape()
            rig.replies[1](streamed(waiting))
            caller.reset()
            await waiting.until("closed")
            rig.replies[0](streamed(late))
            assert (waiting.heard, late.heard) == (["closed"], ["closed"])

    run(scenario)


def test_a_client_that_ended_its_side_before_gets_an_empty_stream() -> None:
    async def scenario() -> None:
        async with serving() as rig:
            rig.answers = None
            caller = await rig.call()
            caller.send(get("/1"))
            caller.end_sending()
            await rig.until_requests(1)
            while not rig.protocols[0]._client_ended:
                await asyncio.sleep(0)
            tape = Tape()
            rig.replies[0](streamed(tape))
            assert tape.heard == ["opened", "closed"]
            assert (await caller.reader.read()).endswith(b"\r\n\r\n0\r\n\r\n")

    run(scenario)
