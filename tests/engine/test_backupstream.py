"""Backups of an engine on its loop, under load and given up at any moment. On the real disk, as threads matter here."""

from __future__ import annotations

import asyncio
import errno
import secrets
import threading
from pathlib import Path

import pytest

from tests.engine.rig import Rig, fill, records, with_limits, with_wal
from tests.engine.test_backup import opened as begun
from tests.engine.test_host import append, data, opened, run
from topics.clock import SystemClock
from topics.core.commands import Append, Configure, Delete, Publish, Stage
from topics.core.match import parse_match
from topics.engine.backup import Backup
from topics.engine.backupstream import BackupStream
from topics.engine.host import Host
from topics.engine.unpacking import restore_archive
from topics.errors import BackupInterrupted, InvalidRequest, LogStopped, ShuttingDown, Throttled
from topics.storage import snapshot
from topics.storage.fs import RealFs
from topics.testing import FaultFs

BUSY = with_wal(with_limits(checkpoint_ms=20, dirty_bytes_max=64 << 10), shards=2, file_bytes=64 << 10)
"""Checkpoints all the time."""


async def taken(host: Host, gzip_level: int = 0) -> bytes:
    async with BackupStream(host, gzip_level) as stream:
        return b"".join([piece async for piece in stream])


def restore(archive: bytes, at: Path) -> Path:
    at.mkdir(parents=True, exist_ok=True)
    (at / "a.tar").write_bytes(archive)
    restore_archive(RealFs(), f"{at}/a.tar", f"{at}/data", SystemClock(), lambda: secrets.randbits(64), BUSY)
    return at / "data"


def is_let_go(host: Host) -> bool:
    store = host.engine.store
    return store.pins is None and not store.snapshots.held


class Load:
    """Writers that note what was answered; each topic's records count up."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.answered: dict[str, int] = {}
        self.published = 0
        self._over = False

    async def run(self) -> None:
        work = [self._chain("cause", "effect"), self._publish(), self._expire(), self._delete()]
        async with asyncio.TaskGroup() as group:
            for each in work:
                group.create_task(each)

    def stop(self) -> None:
        self._over = True

    async def _write(self, topic: str, number: int) -> None:
        pad = {"data": {"n": number, "pad": "x" * 500}, "tag": f"t{number}"}
        await self.host.submit_patiently(Append(topic, records(pad)))
        self.answered[topic] = number

    async def _chain(self, first: str, second: str) -> None:
        """Nothing is in the second topic that was not answered in the first before."""
        number = 0
        while not self._over:
            number += 1
            await self._write(first, number)
            await self._write(second, number)

    async def _publish(self) -> None:
        number = 0
        while not self._over:
            number += 1
            for topic in ("left", "right"):
                await self.host.submit_patiently(Stage(f"{topic}{number}", topic, records(number)))
            await self.host.submit_patiently(Publish((f"left{number}", f"right{number}"), "load", number))
            self.published = number

    async def _expire(self) -> None:
        await self.host.submit(Configure("short", {"ttl_ms": 50}))
        number = 0
        while not self._over:
            number += 1
            await self._write("short", number)

    async def _delete(self) -> None:
        """A record is deleted once the next one is there: one or two are left at any moment."""
        number = 0
        while not self._over:
            number += 1
            await self._write("sparse", number)
            match = parse_match(f"t{number - 1}")
            await self.host.submit_patiently(Delete("sparse", match=match))


async def all_of(host: Host, topic: str) -> list[int]:
    found: list[int] = []
    cursor = 0
    while True:
        page = host.engine.read(topic, cursor, limit=1000)
        found += [record.data["n"] if isinstance(record.data, dict) else record.data for record in page.records]
        cursor = page.next_from_seq
        if page.caught_up:
            return found


def test_under_load_it_is_of_one_moment(tmp_path: Path) -> None:
    async def test() -> None:
        archives: list[tuple[bytes, dict[str, int], int]] = []
        async with opened(tmp_path / "data", BUSY) as host:
            for topic in ("left", "right"):
                await host.submit(Configure(topic, {}))
            load = Load(host)
            running = asyncio.create_task(load.run())
            while len(archives) < 5:
                answered, published = dict(load.answered), load.published
                archives.append((await taken(host, len(archives)), answered, published))
                while load.answered.get("effect", 0) < 40 * len(archives):
                    await asyncio.sleep(0)
            load.stop()
            await running
            assert is_let_go(host) and host.engine.checkpoint_error is None
            assert await all_of(host, "cause") == list(range(1, load.answered["cause"] + 1))
        for number, (archive, answered, published) in enumerate(archives):
            async with opened(restore(archive, tmp_path / str(number)), BUSY) as copy:
                assert copy.engine.report.last_stop == "clean"
                await check(copy, answered, published)

    run(test)


async def check(copy: Host, answered: dict[str, int], published: int) -> None:
    for topic in ("cause", "effect"):
        if topic in answered:
            found = await all_of(copy, topic)
            assert found == list(range(1, len(found) + 1)), "a prefix of what was written"
            assert len(found) >= answered[topic], "all that was answered before the call"
    if "effect" in answered:
        causes, effects = await all_of(copy, "cause"), await all_of(copy, "effect")
        assert len(causes) - 1 <= len(effects) <= len(causes), "no effect without its cause"
    left, right = await all_of(copy, "left"), await all_of(copy, "right")
    assert left == right == list(range(1, len(left) + 1)), "batches are whole"
    assert len(left) >= published
    if "sparse" in answered:
        assert len(await all_of(copy, "sparse")) in (1, 2), "deletes are of the same moment as writes"


def test_a_checkpoint_comes_first_when_there_is_something_to_store(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened(tmp_path / "data") as host:
            await host.submit(append("a", 1))
            before = host.engine.store.snapshots.number
            await taken(host)
            assert host.engine.store.snapshots.number == before + 1
            await taken(host)
            assert host.engine.store.snapshots.number == before + 1, "nothing was written since"

    run(test)


def test_two_at_once(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened(tmp_path / "data") as host:
            await host.submit(append("a", 1))
            async with BackupStream(host) as stream:
                assert stream.total_bytes > 0
                with pytest.raises(Throttled):
                    await taken(host)
                await anext(aiter(stream))
            assert is_let_go(host)
            await taken(host)

    run(test)


def test_given_up_in_the_middle_of_anything(tmp_path: Path) -> None:
    """Cancelled after any number of turns: while it waits, checkpoints, is cut, opened, read."""

    async def test() -> None:
        async with opened(tmp_path / "data", BUSY) as host:
            for turns in range(0, 60, 3):
                await host.submit(append("a", turns))
                task = asyncio.create_task(taken(host))
                for _ in range(turns):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                while host._tasks or not is_let_go(host):
                    await asyncio.sleep(0)
            await taken(host)
            await host.checkpoint()
            assert data(host, "a") == list(range(0, 60, 3))

    run(test)


def test_given_up_while_it_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes on to where it can be let go of."""
    entered, may_go_on = threading.Event(), threading.Event()
    pin = Backup.pin

    def held(backup: Backup) -> None:
        entered.set()
        may_go_on.wait()
        pin(backup)

    monkeypatch.setattr(Backup, "pin", held)

    async def test() -> None:
        async with opened(tmp_path / "data", BUSY) as host:
            await host.submit(append("a", 1))
            given_up = asyncio.create_task(taken(host))
            await asyncio.to_thread(entered.wait)
            given_up.cancel()
            await asyncio.gather(given_up, return_exceptions=True)
            assert given_up.cancelled() and not is_let_go(host)
            may_go_on.set()
            while host._tasks or not is_let_go(host):
                await asyncio.sleep(0)
            assert await taken(host)

    run(test)


def test_closing_does_not_wait_for_a_reader(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened(tmp_path / "data") as host:
            await host.submit(append("a", *range(1000)))
            stream = await BackupStream(host).__aenter__()
            await host.close()
            with pytest.raises(BackupInterrupted):
                await anext(stream)
            await stream.__aexit__(None, None, None)
            with pytest.raises(ShuttingDown):
                await taken(host)

    run(test)


def test_an_erasure_is_not_held_up(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened(tmp_path / "data") as host:
            await host.submit(Append("a", records({"data": "secret", "tag": "x"}, {"data": 2})))
            await host.checkpoint()
            async with BackupStream(host) as stream:
                await host.erase(Delete("a", match=parse_match("x")))
                with pytest.raises(BackupInterrupted):
                    await anext(stream)
            assert is_let_go(host)

    run(test)


def test_a_checkpoint_that_fails_is_told(tmp_path: Path) -> None:
    async def test() -> None:
        fs = FaultFs(RealFs())
        async with opened(tmp_path / "data", fs=fs) as host:
            await host.submit(append("a", 1))
            fs.fail("write_at", errno.ENOSPC, path="*.data.tmp")
            with pytest.raises(OSError):
                await taken(host)
            assert is_let_go(host)
            await taken(host)

    run(test)


def test_a_stopped_log_is_told(tmp_path: Path) -> None:
    async def test() -> None:
        fs = FaultFs(RealFs())
        try:
            async with opened(tmp_path / "data", fs=fs) as host:
                await host.submit(append("a", 1))
                fs.fail("write_at", errno.EIO, path="*/wal/1-*")
                with pytest.raises(LogStopped):
                    await host.submit(append("a", 2))
                with pytest.raises(LogStopped):
                    await taken(host)
                assert is_let_go(host)
        except LogStopped:
            pass

    run(test)


def test_a_level_that_is_none_is_refused_before_anything_happens(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened(tmp_path / "data") as host:
            with pytest.raises(InvalidRequest):
                BackupStream(host, 10)
            assert is_let_go(host)

    run(test)


def test_one_that_never_began_is_ended_without_harm(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened(tmp_path / "data") as host:
            await BackupStream(host).__aexit__(None, None, None)
            assert is_let_go(host)
            await taken(host)

    run(test)


# ---- a disk that does not let go


def test_snapshots_that_cannot_be_removed_are_told_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "BASE_BYTES_MIN", 1)
    rig = Rig()
    fill(rig, "a")
    rig.checkpoint()
    backup = begun(rig)
    held = set(rig.files("/snapshots/"))
    for number in range(5):
        rig.write(f"t{number}", number)
        rig.checkpoint()
    assert held < set(rig.files("/snapshots/")), "newer ones have taken their place"
    rig.fs.fail("unlink", errno.EIO, path="*/snapshots/*")
    assert backup.release() == set()
    (problem,) = backup.problems
    assert problem.startswith("snapshots that a backup held could not be removed: ")
    assert rig.engine.store.pins is None and held & set(rig.files("/snapshots/"))
    for number in range(30):
        rig.write(f"u{number}", number)
        rig.checkpoint()
    assert not held & set(rig.files("/snapshots/")), "they went with the next whole snapshot"
