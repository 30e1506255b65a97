from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from topics.errors import Conflict
from topics.savefile import save
from topics.storage.fs import RealFs
from topics.testing import FakeDisk, FaultFs, MonitorFs


async def pieces(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


def test_what_comes_is_saved(tmp_path: Path) -> None:
    told: list[int] = []
    assert asyncio.run(save(f"{tmp_path}/a", pieces(b"one", b"two"), told.append)) == 6
    assert (tmp_path / "a").read_bytes() == b"onetwo" and told == [3, 3]
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_it_is_durable_with_its_name() -> None:
    monitor = MonitorFs(FakeDisk())
    monitor.make_dir("/d")
    asyncio.run(save("/d/a", pieces(b"bytes"), fs=monitor))
    monitor.assert_synced("/d/a", 5)


def test_a_name_in_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    asyncio.run(save("a", pieces(b"x")))
    assert (tmp_path / "a").read_bytes() == b"x"


def test_what_is_there_is_never_written_over(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"mine")
    with pytest.raises(Conflict):
        asyncio.run(save(f"{tmp_path}/a", pieces(b"x")))
    assert (tmp_path / "a").read_bytes() == b"mine"


@pytest.mark.parametrize("call", ["write_at", "sync", "rename"])
def test_a_disk_that_fails_leaves_nothing(call: str, tmp_path: Path) -> None:
    fs = FaultFs(RealFs())
    fs.fail(call, errno.ENOSPC)
    with pytest.raises(OSError):
        asyncio.run(save(f"{tmp_path}/a", pieces(b"x" * (2 << 20)), fs=fs))
    assert list(tmp_path.iterdir()) == []


def test_a_source_that_fails_leaves_nothing(tmp_path: Path) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"some"
        raise ConnectionError

    with pytest.raises(ConnectionError):
        asyncio.run(save(f"{tmp_path}/a", broken()))
    assert list(tmp_path.iterdir()) == []


def test_giving_up_leaves_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        reached = asyncio.Event()

        async def endless() -> AsyncIterator[bytes]:
            yield b"some"
            reached.set()
            await asyncio.Event().wait()

        task = asyncio.create_task(save(f"{tmp_path}/a", endless()))
        await reached.wait()
        assert [path.name for path in tmp_path.iterdir()] == ["a.tmp"]
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(main())
    assert list(tmp_path.iterdir()) == []
