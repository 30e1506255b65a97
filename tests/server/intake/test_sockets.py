"""WebSockets that send much at once: in how many turns it is read, and what is held of it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from tests.server.httprig import Caller, both_loops, run
from tests.server.lanerig import LaneRig, serving
from topics.limits import KIB, MIB, WS_FRAGMENTS_MAX
from topics.server.intake.turns import REQUEST_BYTES, TURN_BYTES
from topics.server.ws import FRAME_BYTES

MESSAGES_PER_TURN = TURN_BYTES // REQUEST_BYTES
FRAMES_PER_TURN = TURN_BYTES // FRAME_BYTES
TEXT, CONT, FINAL = 1, 0, 0x80
MASK = b"\0\0\0\0"
PING = b'{"op":"ping","request_id":1}'


def frame(opcode: int, data: bytes, final: bool = True) -> bytes:
    first = bytes([opcode | (FINAL if final else 0)])
    if len(data) < 126:
        return first + bytes([FINAL | len(data)]) + MASK + data
    if len(data) < 1 << 16:
        return first + bytes([FINAL | 126]) + len(data).to_bytes(2, "big") + MASK + data
    return first + bytes([FINAL | 127]) + len(data).to_bytes(8, "big") + MASK + data


async def connect(rig: LaneRig) -> Caller:
    caller = await rig.call(known=False)
    lines = ["GET /v0/ws HTTP/1.1", "Host: localhost", "Upgrade: websocket", "Connection: Upgrade"]
    lines += ["Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==", "", ""]
    caller.send("\r\n".join(lines).encode())
    assert b" 101 " in await caller.reader.readuntil(b"\r\n\r\n")
    return caller


async def message(caller: Caller) -> tuple[int, Any]:
    """A frame of the server: its opcode, and what it says."""
    opcode, size = await caller.reader.readexactly(2)
    if size == 126:
        size = int.from_bytes(await caller.reader.readexactly(2), "big")
    data = await caller.reader.readexactly(size)
    return opcode & 0xF, json.loads(data) if opcode & 0xF == TEXT else data


@both_loops
def test_messages_take_so_many_of_a_turn(loop: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            caller = await connect(rig)
            count = 10 * MESSAGES_PER_TURN
            pings = rig.context.traffic.of("WS", "/v0/ws ping")
            rig.connection_of(caller).data_received(frame(TEXT, PING) * count)
            seen = [pings.requests]
            while pings.requests < count:
                await asyncio.sleep(0)
                seen.append(pings.requests)
            steps = [after - before for before, after in zip([0, *seen], seen, strict=False)]
            assert max(steps) <= MESSAGES_PER_TURN
            for _ in range(count):
                assert await message(caller) == (TEXT, {"op": "pong", "request_id": 1})

    run(scenario, loop)


def test_tiny_fragments_take_so_many_of_a_turn(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            caller = await connect(rig)
            connection = rig.connection_of(caller)
            connection.data_received(frame(TEXT, b" ", False) + frame(CONT, b" ", False) * 4 * FRAMES_PER_TURN)
            socket = connection._attached.duplex
            # One slice more may be read than the budget has room for.
            assert FRAMES_PER_TURN <= socket._fragments <= FRAMES_PER_TURN + KIB // len(frame(CONT, b" "))
            assert socket._holding
            caller.send(frame(CONT, PING))
            assert await message(caller) == (TEXT, {"op": "pong", "request_id": 1})
            assert not socket._holding

    run(scenario)


def test_message_of_too_many_fragments_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            caller = await connect(rig)
            caller.send(frame(TEXT, PING, False) + frame(CONT, b"", False) * (WS_FRAGMENTS_MAX - 2) + frame(CONT, b""))
            assert (await message(caller))[1]["op"] == "pong"
            caller.send(frame(TEXT, PING, False) + frame(CONT, b"", False) * (WS_FRAGMENTS_MAX - 1) + frame(CONT, b""))
            opcode, told = await message(caller)
            assert (opcode, told["op"], told["code"]) == (TEXT, "error", "payload_too_large")
            opcode, reason = await message(caller)
            assert (opcode, int.from_bytes(reason[:2], "big")) == (8, 1009)

    run(scenario)


def test_unfinished_messages_of_all_connections_are_bounded_together(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, max_body_bytes=2 * MIB, max_incoming_bytes=2 * MIB) as rig:
            held = rig.context.held
            first, second = await connect(rig), await connect(rig)
            begun = frame(TEXT, b" " * 1500 * KIB, False)
            first.send(begun[: 1400 * KIB])
            while held.known.bytes < 1400 * KIB - 64:
                await asyncio.sleep(0)
            second.send(begun)
            opcode, told = await message(second)
            assert (opcode, told["op"], told["code"]) == (TEXT, "error", "throttled")
            opcode, reason = await message(second)
            assert (opcode, int.from_bytes(reason[:2], "big")) == (8, 1013)
            assert held.known.bytes <= 2 * MIB
            first.send(begun[1400 * KIB :] + frame(CONT, PING))
            assert await message(first) == (TEXT, {"op": "pong", "request_id": 1})
            assert held.known.bytes == 0

    run(scenario)


def test_socket_that_is_lost_frees_what_it_held(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            held = rig.context.held
            caller = await connect(rig)
            caller.send(frame(TEXT, b" " * MIB, False))
            while held.known.bytes < MIB:
                await asyncio.sleep(0)
            caller.reset()
            while held.known.bytes:
                await asyncio.sleep(0)

    run(scenario)
