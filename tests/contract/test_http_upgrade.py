"""Connections that leave HTTP, on a real socket: both ways are the outlet's, and no byte is lost on the way."""

from __future__ import annotations

import asyncio

import pytest

from tests.server.httprig import Caller, asked, both_loops, get, post, run, serving
from tests.server.outlets import Tape, upgraded

UPGRADE = get("/ws", "Connection: Upgrade", "Upgrade: websocket")


async def head(caller: Caller) -> tuple[int, dict[str, str]]:
    lines = (await caller.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    pairs = (line.split(": ", 1) for line in lines[1:] if line)
    return int(lines[0].split()[1]), {name.lower(): value for name, value in pairs}


@both_loops
def test_an_upgraded_connection_is_the_outlets_both_ways(loop: str) -> None:
    async def scenario() -> None:
        async with serving() as rig:
            tape = Tape()
            rig.answers = lambda request: upgraded(tape)
            caller = await rig.call()
            caller.send(UPGRADE)
            status, headers = await head(caller)
            assert (status, headers["upgrade"], headers["connection"]) == (101, "websocket", "Upgrade")
            assert not {"content-type", "content-length", "transfer-encoding"} & set(headers)
            assert rig.requests[0].headers["upgrade"] == "websocket"
            caller.send(b"GET / HTTP/1.1\r\n\r\n\xff\x00")
            await tape.until_data(20)
            tape.open.write(b"bare")
            assert await caller.reader.readexactly(4) == b"bare"
            tape.open.end(close=True)
            assert await caller.ended()

    run(scenario, loop)


@both_loops
def test_what_came_in_one_packet_with_the_upgrade_is_not_lost(loop: str) -> None:
    async def scenario() -> None:
        async with serving() as rig:
            for at in range(len(UPGRADE), len(UPGRADE) + 6):
                tape = Tape()
                rig.answers = lambda request, tape=tape: upgraded(tape)  # type: ignore[misc]
                caller = await rig.call()
                sent = UPGRADE + b"\x81\x85hello"
                caller.send(sent[:at])
                caller.send(sent[at:])
                await tape.until_data(7)
                assert tape.data == b"\x81\x85hello"

    run(scenario, loop)


@pytest.mark.parametrize("offer", ["h2c", "websocket"])
def test_an_offer_that_nobody_takes_is_a_plain_request(offer: str) -> None:
    async def scenario() -> None:
        async with serving() as rig:
            caller = await rig.call()
            message = post(b"hello", "Connection: Upgrade", f"Upgrade: {offer}")
            for _ in range(3):
                caller.send(message + get("/next"))
                assert asked(await caller.answer())["body"] == "hello"
                assert asked(await caller.answer())["path"] == "/next"

    run(scenario)


def test_a_client_may_be_kept_waiting() -> None:
    async def scenario() -> None:
        async with serving() as rig:
            tape = Tape({"opened": lambda stream: stream.pause_reading()})
            rig.answers = lambda request: upgraded(tape)
            caller = await rig.call()
            caller.send(UPGRADE)
            await head(caller)
            caller.send(b"x" * 5_000_000)
            for _ in range(100):
                await asyncio.sleep(0)
            assert len(tape.data) < 500_000
            tape.open.resume_reading()
            await tape.until_data(5_000_000)

    run(scenario)
