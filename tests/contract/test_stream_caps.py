"""A stream's slot comes back whichever way its connection ends: event streams, WebSockets, streams of jobs alike."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable
from pathlib import Path
from socket import SO_LINGER, SOL_SOCKET

import pytest

from tests.client.rig import soon
from tests.server.wsrig import HANDSHAKE, Rig, run

KEY = "Authorization: Bearer all\r\n"


async def event_stream(rig: Rig) -> bytes:
    rig.api.key = "all"
    await rig.api.write("jobs", 1)
    wid = (await rig.api.post("/v0/watch", {"topics": {"jobs": {}}})).body["wid"]
    return f"GET /v0/watch/{wid} HTTP/1.1\r\nHost: localhost\r\n{KEY}\r\n".encode()


async def web_socket(rig: Rig) -> bytes:
    return HANDSHAKE.replace(b"Host", KEY.encode() + b"Host")


async def job_stream(rig: Rig) -> bytes:
    rig.api.key = "all"
    await rig.api.put("/v0/topics/jobs", {"type": "queue"})
    return f"GET /v0/topics/jobs/work?node=w&max=1000 HTTP/1.1\r\nHost: localhost\r\n{KEY}\r\n".encode()


KINDS: dict[str, Callable[[Rig], Awaitable[bytes]]] = {
    "SSE": event_stream,
    "WebSocket": web_socket,
    "jobs": job_stream,
}


class Open:
    def __init__(self, rig: Rig, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.rig = rig
        self.reader = reader
        self.writer = writer


async def open_stream(rig: Rig, request: bytes) -> tuple[int, Open]:
    reader, writer = await asyncio.open_connection(rig.api.address.hostname, rig.api.address.port)
    writer.write(request)
    head = await soon(reader.readuntil(b"\r\n\r\n"))
    return int(head.split()[1]), Open(rig, reader, writer)


async def closes(stream: Open) -> None:
    stream.writer.close()


async def resets(stream: Open) -> None:
    stream.writer.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
    stream.writer.transport.abort()


async def half_closes(stream: Open) -> None:
    stream.writer.write_eof()


async def is_aborted(stream: Open) -> None:
    for connection in list(stream.rig.server._connections._open):
        connection.abort()


async def is_drained(stream: Open) -> None:
    for connection in list(stream.rig.server._connections._open):
        connection.drain()


async def is_slow(stream: Open) -> None:
    """Reads nothing until the server has had enough of it."""
    stream.writer.transport.pause_reading()  # type: ignore[attr-defined]
    attached = [each._attached for each in stream.rig.server._connections._open]  # type: ignore[attr-defined]
    if attached[0].duplex is not None:
        body = b'{"op":"subscribe","topic":"*"}'
        stream.writer.write(bytes([0x81, 0x80 | len(body)]) + b"\0\0\0\0" + body)
    while not attached[0].stream.full:
        await stream.rig.api.write("jobs", "x" * 500_000)
    for _ in range(3):
        stream.rig.pass_time(35)


async def fails(stream: Open) -> None:
    """A bug on our side."""

    def broken() -> None:
        raise RuntimeError("a bug")

    (attached,) = [each._attached for each in stream.rig.server._connections._open]  # type: ignore[attr-defined]
    attached._guard(broken)


WAYS = [closes, resets, half_closes, is_aborted, is_drained, is_slow, fails]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_slot_comes_back(tmp_path: Path, kind: str, way: Callable[[Open], Awaitable[None]]) -> None:
    async def scenario(rig: Rig) -> None:
        request = await KINDS[kind](rig)
        rig.api.key = "all"
        status, stream = await open_stream(rig, request)
        assert status in (200, 101) and rig.stream_count == 1
        refused, other = await open_stream(rig, await web_socket(rig))
        assert refused == 429 and rig.stream_count == 1
        other.writer.close()
        await rig.until(lambda: len(rig.server._connections) == 1)
        await way(stream)
        await rig.until(lambda: rig.stream_count == 0)
        status, again = await open_stream(rig, await web_socket(rig))
        assert status == 101
        for each in (stream, again):
            each.writer.transport.abort()

    run(tmp_path, scenario, api_keys="all", max_sse_connections_per_key=1, watch_buffer_bytes=50_000)


@pytest.mark.parametrize("kind", KINDS)
def test_a_refused_or_asked_about_stream_takes_no_slot(tmp_path: Path, kind: str) -> None:
    async def scenario(rig: Rig) -> None:
        request = await KINDS[kind](rig)
        for change in ((b"GET", b"HEAD"), (b"/v0/", b"/v0/x"), (b"Bearer all", b"Bearer none"), (b"GET", b"PUT")):
            _, stream = await open_stream(rig, request.replace(*change))
            assert rig.stream_count == 0, change
            stream.writer.transport.abort()

    run(tmp_path, scenario, api_keys="all")


@pytest.mark.parametrize("cap", ["max_sse_connections", "max_sse_connections_per_key"])
def test_at_the_cap_a_session_is_taken_over_from_its_own_half_open_stream(tmp_path: Path, cap: str) -> None:
    async def scenario(rig: Rig) -> None:
        request = await event_stream(rig)
        status, half_open = await open_stream(rig, request)
        assert status == 200
        refused, stranger = await open_stream(rig, await event_stream(rig))
        assert refused == 429
        # Neither who asks about it nor who may not read it takes anything from the one who does.
        for change in ((b"GET", b"HEAD"), (b"Host: localhost", b"Host: localhost\r\nAccept: text/html")):
            refused, other = await open_stream(rig, request.replace(*change))
            assert refused in (200, 406)
            other.writer.close()
        assert rig.stream_count == 1
        await rig.api.write("jobs", "still there")
        await soon(half_open.reader.readuntil(b"still there"))
        status, again = await open_stream(rig, request)
        assert status == 200 and rig.stream_count == 1
        await soon(half_open.reader.readuntil(b"another stream has been opened"))
        await rig.api.write("jobs", "go on")
        await soon(again.reader.readuntil(b"go on"))
        again.writer.close()
        await rig.until(lambda: rig.stream_count == 0)
        for each in (half_open, stranger):
            each.writer.transport.abort()

    run(tmp_path, scenario, api_keys="all", **{cap: 1})
