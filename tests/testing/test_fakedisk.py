from __future__ import annotations

import errno
import random
from pathlib import Path

import pytest

from topics.storage.fs import File, FileSystem, RealFs
from topics.testing import CRASH_MODES, CrashMode, FakeDisk


def disk_with(content: bytes, seed: int = 0) -> tuple[FakeDisk, File]:
    """A disk with the durable file /d/a, and a handle to it."""
    disk = FakeDisk(seed)
    disk.make_dir("/d")
    file = disk.open("/d/a", "create")
    file.write_at(0, [content])
    file.sync()
    disk.sync_dir("/d")
    return disk, file


class TestDurability:
    @pytest.mark.parametrize("mode", CRASH_MODES)
    def test_synced_bytes_under_a_synced_name_survive_everything(self, mode: CrashMode) -> None:
        disk, file = disk_with(b"safe")
        file.write_at(4, [b"unsafe"])
        disk.open("/d/b", "create")
        after = disk.crash(mode)
        assert after.contents()["/d/a"].startswith(b"safe")

    def test_sync_of_a_file_does_not_keep_its_name(self) -> None:
        disk, _ = disk_with(b"safe")
        file = disk.open("/d/b", "create")
        file.write_at(0, [b"x"])
        file.sync()
        assert disk.crash("lost").contents() == {"/d/a": b"safe"}

    def test_sync_dir_does_not_keep_the_bytes(self) -> None:
        disk, file = disk_with(b"safe")
        file.write_at(0, [b"more bytes"])
        disk.sync_dir("/d")
        assert disk.crash("lost").contents() == {"/d/a": b"safe"}

    def test_sync_dir_keeps_names_of_its_directory_only(self) -> None:
        disk, _ = disk_with(b"safe")
        disk.make_dir("/e")
        disk.open("/d/b", "create")
        disk.open("/e/b", "create")
        disk.sync_dir("/e")
        assert set(disk.crash("lost").contents()) == {"/d/a", "/e/b"}

    def test_directories_are_durable_when_made(self) -> None:
        disk = FakeDisk()
        disk.make_dir("/x/y")
        assert disk.crash("lost").list("/x") == ["y"]

    def test_an_unlink_and_a_rename_are_undone_unless_synced(self) -> None:
        disk, _ = disk_with(b"safe")
        disk.rename("/d/a", "/d/b")
        assert disk.crash("lost").contents() == {"/d/a": b"safe"}
        disk, _ = disk_with(b"safe")
        disk.unlink("/d/a")
        disk.sync_dir("/d")
        assert disk.crash("lost").contents() == {}

    def test_bytes_forgotten_by_a_failed_sync_stay_visible_and_never_become_durable(self) -> None:
        disk, file = disk_with(b"safe")
        file.write_at(4, [b"gone"])
        disk.forget_pending("/d/a")
        file.write_at(8, [b"late"])
        file.sync()
        assert file.read_at(0, 100) == b"safegonelate"
        assert disk.crash("lost").contents() == {"/d/a": b"safe\0\0\0\0late"}


class TestDeath:
    @pytest.mark.parametrize("mode", CRASH_MODES)
    def test_a_crash_turns_everything_off_and_frees_the_lock(self, mode: CrashMode) -> None:
        disk, file = disk_with(b"safe")
        mapping = disk.map("/d/a")
        lock = disk.lock("/d/lock")
        after = disk.crash(mode)
        for use in (lambda: file.read_at(0, 1), file.sync, lambda: disk.list("/d"), disk.boot_id):
            with pytest.raises(OSError, match="this disk is off after crash") as refusal:
                use()
            assert refusal.value.errno == errno.EIO
        with pytest.raises(ValueError):
            bytes(mapping.view)
        assert after.boot_id() == "fake-boot-1"
        taken = after.lock("/d/lock")
        lock.release()
        taken.release()

    def test_a_kill_keeps_what_was_written_but_does_not_make_it_durable(self) -> None:
        disk, file = disk_with(b"safe")
        file.write_at(4, [b"more"])
        disk.open("/d/b", "create")
        boot_id = disk.boot_id()
        disk.lock("/d/lock")
        after = disk.kill()
        with pytest.raises(OSError, match="off after kill"):
            file.sync()
        assert after.boot_id() == boot_id
        assert after.contents()["/d/a"] == b"safemore"
        assert after.list("/d") == ["a", "b", "lock"]
        after.lock("/d/lock").release()
        assert after.crash("lost").contents() == {"/d/a": b"safe"}

    def test_detached_disk_loses_like_a_crash_on_a_machine_that_kept_running(self) -> None:
        for mode in CRASH_MODES:
            disk, file = disk_with(b"safe", seed=3)
            file.write_at(4, [b"more"])
            crashed = disk.fork().crash(mode, random.Random(1))
            after = disk.detach(mode, random.Random(1))
            assert after.contents() == crashed.contents()
            assert (after.boot_id(), crashed.boot_id()) == ("fake-boot-0", "fake-boot-1")
            assert after.crash("lost").boot_id() == "fake-boot-1"
            with pytest.raises(OSError, match="off after crash"):
                file.sync()

    def test_memorized_numbers_survive_what_the_machine_survives(self) -> None:
        disk, _ = disk_with(b"safe")
        numbers = disk.memorize("/d", 2)
        assert numbers is not None
        numbers[1] = 5
        after = disk.kill()
        numbers[1] = 6
        assert after.recall("/d") == [0, 5], "the dead process changes nothing any more"
        assert after.fork().recall("/d") == after.fork().detach("lost").recall("/d") == [0, 5]
        assert after.fork().kill(forgetful=True).recall("/d") == []
        assert after.fork().detach("kept", forgetful=True).recall("/d") == []
        assert after.crash("kept").recall("/d") == []

    def test_a_file_synced_after_a_kill_is_durable_with_what_was_written_before(self) -> None:
        disk, file = disk_with(b"safe")
        file.write_at(4, [b"more"])
        after = disk.kill()
        after.open("/d/a", "write").sync()
        assert after.crash("lost").contents() == {"/d/a": b"safemore"}

    def test_what_is_left_after_a_crash_is_durable(self) -> None:
        disk, file = disk_with(b"safe")
        file.write_at(4, [b"more"])
        again = disk.crash("kept").crash("lost")
        assert (again.contents(), again.boot_id()) == ({"/d/a": b"safemore"}, "fake-boot-2")

    def test_one_moment_has_many_outcomes(self) -> None:
        disk, file = disk_with(b"")
        file.write_at(0, [bytes(range(1, 9))])
        lengths = {len(disk.crash("torn").contents()["/d/a"]) for _ in range(200)}
        assert lengths == set(range(9))

    def test_outcomes_share_nothing(self) -> None:
        disk, _ = disk_with(b"safe")
        first, second = disk.crash("kept"), disk.crash("kept")
        killed = disk.kill()
        for changed in (first, disk.kill()):
            changed.open("/d/a", "write").write_at(0, [b"X"])
        assert second.contents() == killed.contents() == {"/d/a": b"safe"}

    @pytest.mark.parametrize("mode", CRASH_MODES)
    def test_the_same_seed_gives_the_same_disk(self, mode: CrashMode) -> None:
        def run(seed: int) -> list[dict[str, bytes]]:
            disk, file = disk_with(b"safe", seed)
            for index in range(20):
                file.write_at(file.size(), [bytes([index]) * 300])
                disk.open(f"/d/{index}", "create").write_at(0, [b"x"])
            return [disk.crash(mode).contents() for _ in range(3)]

        assert run(1) == run(1)
        assert (run(1) == run(2)) == (mode in ("lost", "kept"))

    def test_a_generator_may_be_handed_in(self) -> None:
        disk, file = disk_with(b"")
        file.write_at(0, [b"x" * 1000])
        assert disk.crash("torn", random.Random(7)).contents() == disk.crash("torn", random.Random(7)).contents()


class TestCapacity:
    def test_a_write_takes_what_fits_and_fails(self) -> None:
        disk = FakeDisk(capacity_bytes=10)
        file = disk.open("/a", "create")
        file.write_at(0, [b"abcdef"])
        assert disk.free_bytes("/") == 4
        with pytest.raises(OSError) as failure:
            file.write_at(6, [b"ghi", b"jkl"])
        assert (failure.value.errno, failure.value.filename) == (errno.ENOSPC, "/a")
        assert (file.read_at(0, 100), disk.free_bytes("/")) == (b"abcdefghij", 0)

    def test_a_full_disk_still_takes_rewrites_and_unlinks(self) -> None:
        disk = FakeDisk(capacity_bytes=10)
        file = disk.open("/a", "create")
        file.allocate(10)
        file.write_at(2, [b"rewritten"[:8]])
        other = disk.open("/b", "create")
        with pytest.raises(OSError):
            other.write_at(0, [b"x"])
        disk.unlink("/a")
        other.write_at(0, [b"x"])
        assert disk.contents() == {"/b": b"x"}

    def test_a_write_past_the_end_of_the_disk_writes_nothing(self) -> None:
        disk = FakeDisk(capacity_bytes=10)
        file = disk.open("/a", "create")
        with pytest.raises(OSError):
            file.write_at(20, [b"x"])
        assert file.size() == 0

    @pytest.mark.parametrize("verb", ["allocate", "truncate"])
    def test_reserving_too_much_changes_nothing(self, verb: str) -> None:
        disk = FakeDisk(capacity_bytes=10)
        file = disk.open("/a", "create")
        with pytest.raises(OSError) as failure:
            getattr(file, verb)(11)
        assert (failure.value.errno, file.size()) == (errno.ENOSPC, 0)

    def test_capacity_can_change_in_mid_flight(self) -> None:
        disk = FakeDisk()
        file = disk.open("/a", "create")
        file.write_at(0, [b"abc"])
        disk.set_capacity(3)
        with pytest.raises(OSError):
            file.write_at(3, [b"d"])
        disk.set_capacity(4)
        file.write_at(3, [b"d"])
        assert disk.contents() == {"/a": b"abcd"}


def test_paths_have_one_spelling() -> None:
    disk = FakeDisk()
    disk.make_dir("data/x")
    disk.open("/data/x/../x/./a", "create").write_at(0, [b"here"])
    assert disk.contents() == {"/data/x/a": b"here"}
    assert disk.list("data/x/") == ["a"]


def test_a_fork_goes_its_own_way() -> None:
    disk = FakeDisk()
    file = disk.open("/a", "create")
    file.write_at(0, [b"unsynced"])
    fork = disk.fork()
    assert fork.contents() == disk.contents()
    assert fork.crash("lost").contents() == {}
    file.write_at(0, [b"goes on"])
    file.sync()
    disk.sync_dir("/")
    assert disk.crash("lost").contents() == {"/a": b"goes ond"}


def test_a_file_is_not_renamed_over_a_directory_and_a_directory_to_itself_is_as_it_was(tmp_path: Path) -> None:
    """On a real disk, and on this one."""
    disks: list[tuple[FileSystem, str]] = [(RealFs(), str(tmp_path)), (FakeDisk(), "/top")]
    for fs, top in disks:
        fs.make_dir(f"{top}/d")
        fs.open(f"{top}/file", "create").close()
        fs.open(f"{top}/d/inside", "create").close()
        with pytest.raises(IsADirectoryError):
            fs.rename(f"{top}/file", f"{top}/d")
        fs.rename_dir(f"{top}/d", f"{top}/d")
        assert (fs.list(top), fs.list(f"{top}/d")) == (["d", "file"], ["inside"])
