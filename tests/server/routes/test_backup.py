from __future__ import annotations

import asyncio
import errno
import gzip
import secrets
from collections.abc import Callable
from pathlib import Path

import pytest

import topics
from tests.client.rig import on_loop, soon
from tests.engine.archives import ARCHIVE, put
from tests.server.api import Api, serving
from topics.clock import SystemClock
from topics.engine.engine import Engine
from topics.engine.opening import options
from topics.engine.recovery import Progress, recover
from topics.engine.unpacking import verify_archive
from topics.errors import Conflict, Forbidden, InvalidRequest, Unauthorized
from topics.server.app import Server
from topics.settings import Settings
from topics.storage.committer import Post
from topics.storage.fs import RealFs
from topics.testing import FaultFs

KEYS = "everything,reader:read+write+delete,narrow:admin+read:orders-"


async def download(api: Api, query: str = "", method: str = "GET") -> tuple[str, bytes]:
    """Head and body, as HTTP/1.0 has them: bare bytes to the end of the connection."""
    reader, writer = await asyncio.open_connection(api.address.hostname, api.address.port)
    try:
        writer.write(f"{method} /v0/backup{query} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
        head, _, body = (await soon(reader.read())).partition(b"\r\n\r\n")
        return head.decode().lower(), body
    finally:
        writer.close()
        await writer.wait_closed()


async def metric(api: Api, name: str) -> float:
    found = (await api.get("/v0/metrics", accept="application/json")).body[name]
    assert isinstance(found, int | float)
    return found


async def released(api: Api) -> None:
    """The end of a download is seen by the server a moment after the client."""
    while await metric(api, "topics_backup_running"):
        await asyncio.sleep(0)


@on_loop
async def test_an_archive_comes(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.write("orders", *range(1000))
        assert await metric(api, "topics_backup_last_ms") == 0
        head, archive = await download(api)
        assert head.startswith(("http/1.1 200", "http/1.0 200"))
        assert "content-type: application/x-tar" in head and "cache-control: no-store" in head
        assert 'filename="topics-' in head and '.tar"' in head
        contents = verify_archive(put(archive), ARCHIVE)
        assert f"x-backup-bytes: {contents.bytes}" in head
        await released(api)
        assert await metric(api, "topics_backup_last_ms") == contents.created_ms
        assert await metric(api, "topics_backup_held_bytes") == 0


@on_loop
async def test_a_compressed_one_comes(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.write("orders", *range(1000))
        head, archive = await download(api, "?gzip=9")
        assert "content-type: application/gzip" in head and '.tar.gz"' in head
        assert gzip.decompress(archive)[:11] == b"backup.json"


@on_loop
async def test_a_level_that_is_none_is_refused(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        for level in ("10", "-1", "x"):
            assert (await api.get(f"/v0/backup?gzip={level}")).refusal == (400, "invalid_request")


@on_loop
async def test_the_head_alone_holds_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.write("orders", 1)
        head, body = await download(api, method="HEAD")
        assert " 200 " in head and body == b""
        await released(api)
        assert verify_archive(put((await download(api))[1]), ARCHIVE)


@on_loop
async def test_it_takes_an_admin_who_may_see_everything(tmp_path: Path) -> None:
    async with serving(tmp_path, api_keys=KEYS) as api:
        url = api.address.geturl()
        refusals = {None: Unauthorized, "reader": Forbidden, "narrow": Forbidden}
        for key, refusal in refusals.items():
            async with topics.connect(url, key=key) as client:
                with pytest.raises(refusal):
                    await client.backup(tmp_path / "a.tar")
        async with topics.connect(url, key="everything") as client:
            await client.backup(tmp_path / "a.tar")


@on_loop
async def test_one_at_a_time(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        for _ in range(10):
            await api.write("orders", *["x" * 100_000] * 30)  # More than sockets hold.
        reader, writer = await asyncio.open_connection(api.address.hostname, api.address.port)
        writer.write(b"GET /v0/backup HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await soon(reader.readline())
        answer = await api.get("/v0/backup")
        assert answer.refusal == (429, "throttled") and answer.error["detail"]["limit"] == "backups"
        assert answer.headers["retry-after"] == "1"
        writer.close()
        await writer.wait_closed()
        await released(api)
        async with topics.connect(api.address.geturl()) as client:
            await client.backup(tmp_path / "a.tar")


@on_loop
async def test_the_client_asks_for_the_same(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    async with serving(tmp_path) as api:
        await api.write("orders", *range(1000))
        async with topics.connect(api.address.geturl()) as client:
            size = await client.backup(tmp_path / "a.tar", on_progress=lambda done, total: told.append((done, total)))
            assert size == (tmp_path / "a.tar").stat().st_size == told[-1][0]
            assert 0 < told[-1][1] <= size
            with pytest.raises(InvalidRequest):
                await client.backup(tmp_path / "b.tar", gzip=11)
            with pytest.raises(Conflict):
                await client.backup(tmp_path / "a.tar")
    assert not (tmp_path / "b.tar").exists()


@on_loop
async def test_a_disk_without_room_for_the_checkpoint_is_told(tmp_path: Path) -> None:
    faults = FaultFs(RealFs())
    clock = SystemClock()

    def make_opener(chosen: Settings, progress: Progress) -> Callable[[Post], Engine]:
        return lambda post: recover(
            faults, chosen.data_dir, clock, lambda: secrets.randbits(64), options(chosen), post, progress
        )

    chosen = Settings(data_dir=str(tmp_path / "data"), port=0, no_grpc=True, throttle_lag_ms=0)
    async with Server(chosen, clock, make_opener) as server:
        await soon(server.ready())
        api = Api(server.url)
        await api.write("orders", 1)
        faults.fail("write_at", errno.ENOSPC, path="*.data.tmp")
        answer = await api.get("/v0/backup")
        assert answer.refusal == (503, "unavailable") and "No space left" in answer.error["message"]
        faults.fail("write_at", errno.ENOSPC, path="*.data.tmp")
        answer = await api.post("/v1/snapshot")
        assert answer.refusal == (503, "UNAVAILABLE") and "No space left" in answer.error["message"]
        faults.fail("write_at", errno.ENOSPC, path="*.data.tmp")
        answer = await api.post("/v0/topics/orders/delete", {"before_seq": 1, "erase": True})
        assert answer.refusal == (503, "unavailable") and "could not be erased" in answer.error["message"]
        assert await metric(api, "topics_backup_running") == 0
        assert verify_archive(put((await download(api))[1]), ARCHIVE)
