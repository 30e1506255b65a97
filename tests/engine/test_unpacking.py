"""A restore gives the whole directory or nothing, on any disk and from any bytes."""

from __future__ import annotations

import errno
import tarfile
from io import BytesIO

import msgspec
import pytest

from tests.engine.archives import ARCHIVE, put, restored, unpack
from tests.engine.rig import Rig, fill, tagged
from topics.engine.unpacking import archive_bytes, verify_archive
from topics.errors import Conflict, Damaged, DirectoryLocked, InvalidRequest
from topics.storage.archive import MANIFEST_NAME, SUMS_NAME, ArchiveWriter
from topics.testing import CrashMode, FakeDisk, FaultFs, SimulatedCrash
from topics.testing.monitorfs import MonitorFs


def source() -> Rig:
    rig = Rig()
    rig.configure("a", durability="fsync")
    fill(rig, "a")
    rig.delete("a", match="tag:1")
    rig.checkpoint()
    rig.write("a", *tagged(7))
    return rig


def archive_of(rig: Rig) -> bytes:
    backup = rig.driver.backup()
    try:
        return b"".join(backup.chunks())
    finally:
        backup.release()


def repacked(archive: bytes, change: dict[str, bytes | None]) -> bytes:
    """An archive with right checksums over other contents; None leaves a file out."""
    writer = ArchiveWriter(0)
    pieces: list[bytes] = []
    with tarfile.open(fileobj=BytesIO(archive)) as tar:
        for info in tar:
            file = tar.extractfile(info)
            assert file is not None
            content = change.get(info.name, file.read())
            if content is not None and info.name != SUMS_NAME:
                pieces += writer.member(info.name, len(content), [content])
    return b"".join([*pieces, *writer.end()])


def files_below(disk: FakeDisk, directory: str) -> dict[str, bytes]:
    return {path: content for path, content in disk.contents().items() if path.startswith(directory)}


def test_it_says_what_it_restored() -> None:
    rig = source()
    disk = put(archive_of(rig))
    done = unpack(disk, rig.clock)
    assert (done.directory, done.topics, done.records) == ("/data", 1, len(rig.data("a")))
    assert done.created_ms == rig.clock.now_ms() and done.bytes == sum(
        len(content) for path, content in files_below(disk, "/data/").items() if not path.endswith("/lock")
    )
    assert disk.list("/") == ["backups", "data"]
    contents = verify_archive(disk, ARCHIVE)
    assert (contents.files, contents.bytes) == (done.files, done.bytes)
    assert archive_bytes(disk, ARCHIVE) == len(disk.contents()[ARCHIVE])


def test_everything_is_durable_before_it_gets_its_name() -> None:
    rig = source()
    disk = put(archive_of(rig))
    monitor = MonitorFs(disk)
    monitor.allow_unlink(lambda path: False)
    unpack(monitor, rig.clock)
    monitor.assert_clean()
    assert Rig(rig.options, disk.crash("lost"), rig.clock).text("a") == rig.text("a")


def test_an_empty_directory_may_be_there_a_full_one_may_not() -> None:
    rig = source()
    disk = put(archive_of(rig))
    disk.make_dir("/data/inner")
    before = disk.contents()
    with pytest.raises(Conflict, match="not empty"):
        unpack(disk, rig.clock)
    assert disk.contents() == before and not disk.exists("/data.restoring")
    disk.remove_dir("/data/inner")
    unpack(disk, rig.clock)
    assert Rig(rig.options, disk, rig.clock).text("a") == rig.text("a")


def test_a_live_directory_is_never_touched() -> None:
    rig = source()
    archive = archive_of(rig)
    put(archive, rig.disk)
    before = rig.text("a")
    with pytest.raises(Conflict):
        unpack(rig.disk, rig.clock)
    assert rig.text("a") == before


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_a_truncated_archive_leaves_nothing(share: float) -> None:
    rig = source()
    archive = archive_of(rig)
    disk = put(archive[: int(len(archive) * share)])
    before = disk.contents()
    with pytest.raises(Damaged, match=ARCHIVE):
        unpack(disk, rig.clock)
    assert disk.contents() == before and disk.list("/") == ["backups"]


def test_a_flipped_byte_leaves_nothing() -> None:
    rig = source()
    archive = archive_of(rig)
    for at in range(0, len(archive), 97):
        disk = put(archive[:at] + bytes([archive[at] ^ 4]) + archive[at + 1 :])
        with pytest.raises(Damaged):
            unpack(disk, rig.clock)
        assert disk.list("/") == ["backups"]


class TestAnArchiveThatIsWholeAndWrong:
    """Checksums say that bytes are what was written; this is about what was written."""

    def test_a_segment_is_missing(self) -> None:
        rig = source()
        archive = archive_of(rig)
        disk = put(repacked(archive, {"segments/000000000001.data": None}))
        with pytest.raises(Damaged, match="holds a damaged directory"):
            unpack(disk, rig.clock)
        assert disk.list("/") == ["backups"]

    def test_a_log_ends_elsewhere(self) -> None:
        rig = source()
        archive = archive_of(rig)
        with tarfile.open(fileobj=BytesIO(archive)) as tar:
            file = tar.extractfile(MANIFEST_NAME)
            assert file is not None
            manifest = msgspec.json.decode(file.read())
        manifest["positions"]["1"] += 1
        disk = put(repacked(archive, {MANIFEST_NAME: msgspec.json.encode(manifest)}))
        with pytest.raises(Damaged, match="log 1 ends at position"):
            unpack(disk, rig.clock)

    def test_the_wal_does_not_end_cleanly(self) -> None:
        rig = source()
        backup = rig.driver.backup()
        archive = b"".join(backup.chunks())
        (name,) = [part.name for part in backup._cut.files if part.name.startswith("1-")]
        wal = rig.files("/wal/")[f"/data/wal/{name}"]
        disk = put(repacked(archive, {f"wal/{name}": wal}))
        with pytest.raises(Damaged, match="does not end as a backup does"):
            unpack(disk, rig.clock)


class TestFaults:
    def test_a_full_disk_leaves_nothing(self) -> None:
        rig = source()
        disk = put(archive_of(rig))
        used = sum(map(len, disk.contents().values()))
        for room in range(0, 12_000, 700):
            disk.set_capacity(used + room)
            try:
                unpack(disk, rig.clock)
            except OSError as error:
                assert error.errno == errno.ENOSPC
                assert disk.list("/") == ["backups"], "nothing is left behind"
            else:
                break
        disk.set_capacity(None)
        assert Rig(rig.options, disk, rig.clock).text("a") == rig.text("a")

    def test_room_is_looked_for_first(self) -> None:
        rig = source()
        disk = put(archive_of(rig))
        disk.set_capacity(sum(map(len, disk.contents().values())) + 100)
        fs = FaultFs(disk)
        with pytest.raises(OSError, match="are free"):
            unpack(fs, rig.clock)
        assert not any(call.name == "write_at" for call in fs.calls)

    @pytest.mark.parametrize("call", ["write_at", "sync", "sync_dir", "rename_dir"])
    def test_a_disk_that_fails_leaves_nothing(self, call: str) -> None:
        rig = source()
        disk = put(archive_of(rig))
        fs = FaultFs(disk)
        rule = fs.fail(call, errno.EIO, path="*.restoring*")
        with pytest.raises(OSError):
            unpack(fs, rig.clock)
        assert rule.fired and disk.list("/") == ["backups"]

    @pytest.mark.parametrize("mode", ["kept", "lost", "reordered"])
    def test_a_crash_leaves_a_whole_directory_or_none(self, mode: CrashMode) -> None:
        """At every call; the next attempt cleans up and succeeds."""
        rig = source()
        archive = archive_of(rig)
        trial = FaultFs(put(archive))
        unpack(trial, rig.clock)
        for call in [call for call in trial.calls if call.changes]:
            disk = put(archive)
            fs = FaultFs(disk)
            fs.crash_at(call.index)
            with pytest.raises(SimulatedCrash):
                unpack(fs, rig.clock)
            left = disk.crash(mode)
            if not left.exists("/data"):
                unpack(left, rig.clock)
            assert Rig(rig.options, left, rig.clock).text("a") == rig.text("a"), f"died at {call}"

    def test_two_at_once_do_not_get_in_each_others_way(self) -> None:
        rig = source()
        disk = put(archive_of(rig))
        disk.make_dir("/data.restoring/wal")
        other = disk.lock("/data.restoring/lock")
        with pytest.raises(DirectoryLocked):
            unpack(disk, rig.clock)
        assert disk.exists("/data.restoring/wal"), "it is the other one's"
        other.release()
        unpack(disk, rig.clock)


def test_a_directory_is_no_archive() -> None:
    disk = FakeDisk()
    disk.make_dir(ARCHIVE)
    with pytest.raises(InvalidRequest, match="is a directory"):
        unpack(disk)
    with pytest.raises(FileNotFoundError):
        verify_archive(disk, "/nowhere")


def test_a_copy_can_be_backed_up_again() -> None:
    rig = source()
    copy = restored(rig, archive_of(rig))
    copy.write("a", "second life")
    assert restored(copy, archive_of(copy)).text("a") == copy.text("a")
