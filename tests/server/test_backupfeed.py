"""A download that stops, breaks off or is not read lets everything go. On a real socket."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import topics
from tests.client.rig import on_loop, soon
from tests.server.api import Api, serving
from tests.server.lanerig import serving as lane
from tests.server.routes.test_backup import metric, released
from topics.errors import TopicsError
from topics.server import backupfeed
from topics.storage.archive import CHUNK_BYTES

SOCKETS_BYTES = 30_000_000
"""More than sockets hold."""


async def fill(api: Api) -> None:
    for _ in range(SOCKETS_BYTES // 3_000_000):
        await api.write("orders", *["x" * 100_000] * 30)


async def begun(api: Api) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A download of which nothing but the first line has been read."""
    reader, writer = await asyncio.open_connection(api.address.hostname, api.address.port, limit=1024)
    writer.write(b"GET /v0/backup HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert b"200" in await soon(reader.readline())
    assert await metric(api, "topics_backup_running") == 1
    return reader, writer


async def rest_of(reader: asyncio.StreamReader) -> bytes:
    received = bytearray()
    with suppress(ConnectionError):
        while part := await soon(reader.read(1 << 20)):
            received += part
            # The end may come in pieces, like everything else.
            if received.endswith(b"\r\n0\r\n\r\n"):
                break
    return bytes(received)


@on_loop
async def test_a_client_that_goes_away(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await fill(api)
        _, writer = await begun(api)
        writer.transport.abort()
        await soon(released(api))
        assert await metric(api, "topics_backup_last_ms") == 0


@on_loop
async def test_nothing_is_read_ahead_of_the_client(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await fill(api)
        reader, writer = await begun(api)
        for _ in range(SOCKETS_BYTES // CHUNK_BYTES * 4):
            assert await metric(api, "topics_backup_running") == 1, "it was read to its end, into memory"
        assert (await rest_of(reader)).endswith(b"0\r\n\r\n")
        writer.close()
        await writer.wait_closed()


@on_loop
async def test_a_client_that_does_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backupfeed, "STALLED_S", 0)
    async with serving(tmp_path) as api:
        await fill(api)
        _, writer = await begun(api)
        await soon(released(api))
        writer.transport.abort()


@on_loop
async def test_a_server_that_stops_does_not_wait_for_it(tmp_path: Path) -> None:
    async with serving(tmp_path, drain_ms=60_000) as api:
        await fill(api)
        reader, writer = await begun(api)
    assert not (await rest_of(reader)).endswith(b"0\r\n\r\n"), "it cannot be taken for a whole one"
    writer.transport.abort()


@on_loop
async def test_an_erasure_breaks_it_off(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await fill(api)
        reader, writer = await begun(api)
        answer = await api.post("/v0/topics/orders/delete", {"before_seq": 2, "erase": True})
        assert answer.body["erased"], "it does not wait for the client"
        assert not (await rest_of(reader)).endswith(b"0\r\n\r\n")
        writer.transport.abort()
        await soon(released(api))


@on_loop
async def test_a_download_that_breaks_off_leaves_no_file(tmp_path: Path) -> None:
    async with serving(tmp_path, drain_ms=60_000) as api:
        await fill(api)
        client = topics.connect(api.address.geturl())
        await client.__aenter__()
        begun_at = asyncio.Event()
        task = asyncio.create_task(client.backup(tmp_path / "a.tar", on_progress=lambda done, total: begun_at.set()))
        await soon(begun_at.wait())
        assert (tmp_path / "a.tar.tmp").exists()
        await client.close()
        with pytest.raises(TopicsError):
            await soon(task)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


@on_loop
async def test_a_backup_behind_answers_that_nobody_reads_is_not_read_into_memory(tmp_path: Path) -> None:
    async with lane(tmp_path, drain_ms=0) as rig:
        api = Api(rig.server.url)
        await fill(api)
        head = (await api.get("/v0/topics/orders")).body["head_seq"]
        _, writer = await asyncio.open_connection(api.address.hostname, api.address.port, limit=1024)
        body = json.dumps({"limit": 1000, "wait_ms": 30_000, "from_seq": head}).encode()
        ask = b"POST /v0/topics/orders/diff HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        ask += b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
        writer.write(ask * 14 + b"GET /v0/backup HTTP/1.1\r\nHost: localhost\r\n\r\n")
        while not await metric(api, "topics_backup_running"):
            await asyncio.sleep(0)
        await api.write("orders", *["x" * 100_000] * 30)
        streams: list[Any] = []
        while not streams:
            await asyncio.sleep(0)
            streams = [each._attached.stream for each in rig.server._connections._open if each._attached]
        (stream,) = streams
        assert stream.full
        waiting_bytes = stream.unsent_bytes
        for _ in range(200):
            await metric(api, "topics_backup_running")
            assert stream.unsent_bytes < waiting_bytes + 4 * CHUNK_BYTES, "it is read into memory"
        writer.transport.abort()
