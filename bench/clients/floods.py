"""Floods: one connection that sends much at once, and a quiet client beside it whose answers are timed.

The quiet client asks every few milliseconds. It counts from when it should have asked: a server that answers nothing
for a second has kept a hundred requests waiting, not one.
"""

from __future__ import annotations

import asyncio
import base64
import sys
from asyncio.subprocess import PIPE
from collections.abc import Awaitable, Callable
from contextlib import suppress
from time import monotonic

import msgspec

from bench.peers.process import HOST, client_core, pinned

KEY = "bench"
READER = "bench-reader"
KEYS = f"{KEY},{READER}:read"
QUIET_S = 0.01
LEAD_S = 0.3
"""How long the quiet client asks before the flood begins."""
FLOOD_S_MAX = 60.0
MASK = b"\0\0\0\0"
CHUNK = b"1\r\nx\r\n"

Flood = Callable[[int], Awaitable[None]]


class Beside(msgspec.Struct, frozen=True):
    """What the quiet client saw, and how long the flood took."""

    p50_ms: float
    p99_ms: float
    max_ms: float
    flood_s: float


async def beside(port: int, name: str) -> Beside:
    """The quiet client's answers while a flood lasts. The flood is another process, and costs this one nothing."""
    over = asyncio.Event()
    command = [sys.executable, "-m", "bench.clients.floods", str(port), name]
    flood = await asyncio.create_subprocess_exec(*command, preexec_fn=pinned(client_core()), stdin=PIPE, stdout=PIPE)
    assert flood.stdin is not None and flood.stdout is not None
    await flood.stdout.readline()
    asking = asyncio.create_task(_ask(port, over))
    await asyncio.sleep(LEAD_S)
    began = monotonic()
    flood.stdin.write(b"\n")
    await flood.wait()
    flood_s = monotonic() - began
    over.set()
    took = sorted(await asking)
    return Beside(
        p50_ms=1000 * took[len(took) // 2],
        p99_ms=1000 * took[int(len(took) * 0.99)],
        max_ms=1000 * took[-1],
        flood_s=flood_s,
    )


async def _ask(port: int, over: asyncio.Event) -> list[float]:
    """How long each answer took, in seconds."""
    reader, writer = await asyncio.open_connection(HOST, port)
    request = _head("GET", "/v0/health", KEY)
    took: list[float] = []
    planned = monotonic()
    while not over.is_set() or planned < monotonic():
        if (early_s := planned - monotonic()) > 0:
            await asyncio.sleep(early_s)
        writer.write(request)
        await _answer(reader)
        took.append(monotonic() - planned)
        planned += QUIET_S
    writer.close()
    return took


async def pipelined(port: int) -> None:
    """7 MB of requests without a key, sent without waiting for an answer."""
    await _pipeline(port, _head("GET", "/v0/topics", ""), 7_000_000)


async def pipelined_known(port: int) -> None:
    """The same with a good key and one thing to read."""
    await _pipeline(port, _head("GET", "/v0/health", KEY), 7_000_000)


async def tiny_frames(port: int) -> None:
    """3 MB of WebSocket messages of one byte, with a key that may read."""
    reader, writer = await _socket(port)
    frame = b"\x81\x81" + MASK + b"1"
    writer.write(frame * (3_000_000 // len(frame)))
    await _drain_socket(reader, writer)


async def fragments(port: int) -> None:
    """One WebSocket message in two million fragments, with a key that may read."""
    reader, writer = await _socket(port)
    writer.write(b"\x01\x81" + MASK + b" " + (b"\x00\x81" + MASK + b" ") * 2_000_000 + b"\x80\x81" + MASK + b" ")
    await _drain_socket(reader, writer)


async def tiny_chunks(port: int) -> None:
    """One body in a million chunks of one byte."""
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(_head("POST", "/v0/topics/orders/diff", KEY, "Transfer-Encoding: chunked"))
    writer.write(CHUNK * 1_000_000 + b"0\r\n\r\n")
    await _answer(reader)
    writer.close()


FLOODS: dict[str, Flood] = {
    "7 MB of pipelined requests without a key": pipelined,
    "7 MB of pipelined requests with a key": pipelined_known,
    "3 MB of one-byte WebSocket messages": tiny_frames,
    "2,000,000 fragments of one WebSocket message": fragments,
    "1,000,000 one-byte chunks of one body": tiny_chunks,
}


async def bodies(port: int, count: int, body_bytes: int, key: str = "") -> dict[int, int]:
    """So many connections that each send a body, all at a time; how many were answered with which status."""
    statuses: dict[int, int] = {}

    async def send() -> None:
        reader, writer = await asyncio.open_connection(HOST, port)
        with suppress(ConnectionError):
            writer.write(_head("POST", "/v0/topics/orders", key, f"Content-Length: {body_bytes}"))
            piece = b"x" * 65536
            for _ in range(body_bytes // len(piece) - 1):
                writer.write(piece)
                await writer.drain()
        status = 0
        with suppress(ConnectionError, asyncio.IncompleteReadError, TimeoutError):
            # All of the body but its end is sent: what the server holds stays until the client goes.
            async with asyncio.timeout(5.0):
                status = int((await reader.readuntil(b"\r\n"))[9:12])
        statuses[status] = statuses.get(status, 0) + 1
        await asyncio.sleep(1.0)
        writer.close()

    await asyncio.gather(*[send() for _ in range(count)])
    return statuses


def _head(method: str, path: str, key: str, *headers: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", f"Host: {HOST}", *headers]
    if key:
        lines.append(f"Authorization: Bearer {key}")
    if method == "POST":
        lines.append("Content-Type: application/json")
    return "\r\n".join([*lines, "", ""]).encode()


async def _answer(reader: asyncio.StreamReader) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
    await reader.readexactly(int(length or 0))


async def _pipeline(port: int, request: bytes, total_bytes: int) -> None:
    reader, writer = await asyncio.open_connection(HOST, port)
    count = total_bytes // len(request)
    writer.write(request * count)
    for _ in range(count):
        await _answer(reader)
    writer.close()


async def _socket(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection(HOST, port)
    key = base64.b64encode(b"0123456789abcdef").decode()
    lines = ("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {key}")
    writer.write(_head("GET", "/v0/ws", READER, *lines))
    await reader.readuntil(b"\r\n\r\n")
    return reader, writer


async def _drain_socket(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """End the conversation, and read all that the server says before it has seen that."""
    writer.write(b"\x88\x80" + MASK)
    while await reader.read(1 << 20):
        pass
    writer.close()


async def _flood(port: int, name: str) -> None:
    with suppress(TimeoutError, ConnectionError, asyncio.IncompleteReadError):
        async with asyncio.timeout(FLOOD_S_MAX):
            await FLOODS[name](port)


if __name__ == "__main__":
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    asyncio.run(_flood(int(sys.argv[1]), sys.argv[2]))
