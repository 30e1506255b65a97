from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import get_args

import pytest

from topics.storage.fs import FileSystem
from topics.testing import CRASH_MODES, Call, CrashMode, FakeDisk, FaultFs, SimulatedCrash
from topics.testing.faultfs import CALL_NAMES, CHANGING_CALLS, CallName, When


def fresh() -> tuple[FaultFs, FakeDisk]:
    disk = FakeDisk()
    disk.make_dir("/d")
    return FaultFs(disk), disk


def use_everything(fs: FileSystem) -> Iterator[CallName]:
    """Make every call there is, naming each before it is made."""
    yield "make_dir"
    fs.make_dir("/d/sub")
    yield "lock"
    lock = fs.lock("/d/lock")
    yield "boot_id"
    fs.boot_id()
    yield "memorize"
    fs.memorize("/d", 1)
    yield "recall"
    fs.recall("/d")
    yield "forget"
    fs.forget("/d")
    yield "free_bytes"
    fs.free_bytes("/d")
    yield "restrict"
    fs.restrict("/d")
    yield "open"
    file = fs.open("/d/a", "create")
    yield "allocate"
    file.allocate(4)
    yield "write_at"
    file.write_at(0, [b"abc"])
    yield "truncate"
    file.truncate(3)
    yield "read_at"
    file.read_at(0, 3)
    yield "size"
    file.size()
    yield "sync"
    file.sync()
    yield "close"
    file.close()
    yield "map"
    fs.map("/d/a").release()
    yield "rename"
    fs.rename("/d/a", "/d/b")
    yield "sync_dir"
    fs.sync_dir("/d")
    yield "list"
    fs.list("/d")
    yield "exists"
    fs.exists("/d/b")
    yield "unlink"
    fs.unlink("/d/b")
    yield "make_dir"
    fs.make_dir("/d/e")
    yield "rename_dir"
    fs.rename_dir("/d/e", "/d/f")
    yield "remove_dir"
    fs.remove_dir("/d/f")
    yield "unlock"
    lock.release()


class TestCounting:
    def test_every_call_is_recorded_in_order(self) -> None:
        fs, _ = fresh()
        expected = list(use_everything(fs))
        assert [call.name for call in fs.calls] == expected
        assert [call.index for call in fs.calls] == list(range(len(expected)))
        assert set(expected) == set(CALL_NAMES)

    def test_a_call_says_what_it_is_about(self) -> None:
        fs, _ = fresh()
        fs.open("/d/a", "create").sync()
        fs.rename("/d/a", "/d/b")
        assert fs.calls == [Call(0, "open", "/d/a"), Call(1, "sync", "/d/a"), Call(2, "rename", "/d/a", "/d/b")]

    def test_a_call_that_fails_counts(self) -> None:
        fs, _ = fresh()
        with pytest.raises(FileNotFoundError):
            fs.open("/d/a", "read")
        assert len(fs.calls) == 1

    def test_the_disk_changes_around_changing_calls_only(self) -> None:
        fs, disk = fresh()
        steps = use_everything(fs)
        name = next(steps)
        while True:
            before = disk.contents(), disk.list("/d")
            following = next(steps, None)
            if (disk.contents(), disk.list("/d")) != before:
                assert name in CHANGING_CALLS
                assert fs.calls[-1].changes
            if following is None:
                break
            name = following


class TestFailing:
    @pytest.mark.parametrize("name", CALL_NAMES)
    def test_any_call_can_fail(self, name: CallName) -> None:
        fs, _ = fresh()
        rule = fs.fail(name, errno.EROFS)
        reached = []
        with pytest.raises(OSError) as failure:
            for step in use_everything(fs):
                reached.append(step)
        assert (failure.value.errno, reached[-1], rule.fired) == (errno.EROFS, name, 1)

    def test_a_failed_call_is_not_made(self) -> None:
        fs, disk = fresh()
        file = fs.open("/d/a", "create")
        fs.fail("write_at")
        with pytest.raises(OSError) as failure:
            file.write_at(0, [b"x"])
        assert (failure.value.errno, failure.value.filename) == (errno.EIO, "/d/a")
        assert disk.contents() == {"/d/a": b""}

    @pytest.mark.parametrize(
        ("always", "expected"),
        [(False, [True, True, False, True, True]), (True, [True, True, False, False, False])],
    )
    def test_the_nth_match_once_or_from_then_on(self, always: bool, expected: list[bool]) -> None:
        fs, _ = fresh()
        file = fs.open("/d/a", "create")
        rule = fs.fail("sync", nth=3, always=always)
        worked = []
        for _ in range(5):
            try:
                file.sync()
            except OSError:
                worked.append(False)
            else:
                worked.append(True)
        assert worked == expected
        assert (rule.matched, rule.fired) == (5, expected.count(False))

    def test_matches_are_counted_from_when_the_rule_is_set(self) -> None:
        fs, _ = fresh()
        file = fs.open("/d/a", "create")
        file.sync()
        fs.fail("sync", nth=2)
        file.sync()
        with pytest.raises(OSError):
            file.sync()

    def test_names_and_paths_are_matched_by_glob(self) -> None:
        fs, _ = fresh()
        fs.make_dir("/d/wal")
        wal, other = fs.open("/d/wal/1.log", "create"), fs.open("/d/1.log", "create")
        rule = fs.fail("sync*", path="*/wal/*.log", always=True)
        other.sync()
        fs.sync_dir("/d/wal")
        wal.write_at(0, [b"x"])
        assert rule.matched == 0
        with pytest.raises(OSError):
            wal.sync()

    @pytest.mark.parametrize("path", ["/d/a", "/d/b"])
    def test_a_rename_is_matched_by_either_name(self, path: str) -> None:
        fs, _ = fresh()
        fs.open("/d/a", "create")
        fs.fail("rename", path=path)
        with pytest.raises(OSError):
            fs.rename("/d/a", "/d/b")

    def test_a_torn_write_leaves_its_first_bytes(self) -> None:
        fs, disk = fresh()
        file = fs.open("/d/a", "create")
        fs.tear(4, errno.ENOSPC)
        with pytest.raises(OSError) as failure:
            file.write_at(1, [b"abc", b"def"])
        assert (failure.value.errno, disk.contents()) == (errno.ENOSPC, {"/d/a": b"\0abcd"})

    def test_a_skipped_sync_lies(self) -> None:
        fs, disk = fresh()
        file = fs.open("/d/a", "create")
        fs.sync_dir("/d")
        fs.skip("sync")
        file.write_at(0, [b"abc"])
        file.sync()
        assert disk.crash("lost").contents() == {"/d/a": b""}

    def test_a_skipped_sync_dir_lies(self) -> None:
        fs, disk = fresh()
        fs.open("/d/a", "create")
        fs.skip("sync_dir")
        fs.sync_dir("/d")
        assert disk.crash("lost").contents() == {}

    def test_the_first_rule_that_is_due_decides(self) -> None:
        fs, _ = fresh()
        second, first = fs.fail("exists", errno.EIO, nth=2), fs.fail("exists", errno.EROFS, always=True)
        codes = []
        for _ in range(3):
            with pytest.raises(OSError) as failure:
                fs.exists("/d")
            codes.append(failure.value.errno)
        assert codes == [errno.EROFS, errno.EIO, errno.EROFS]
        assert (first.fired, second.fired) == (2, 1)

    @pytest.mark.parametrize("when", ["before", "after"])
    def test_a_crash_comes_to_pass_around_another_fault(self, when: When) -> None:
        fs, disk = fresh()
        file = fs.open("/d/a", "create")
        torn, crash = fs.tear(2), fs.crash("write_at", when=when)
        with pytest.raises(SimulatedCrash):
            file.write_at(0, [b"abc"])
        assert (torn.fired, crash.fired) == (1, 1)
        assert disk.contents() == {"/d/a": b"" if when == "before" else b"ab"}

    def test_a_failed_sync_can_take_the_bytes_with_it(self) -> None:
        fs, disk = fresh()
        file = fs.open("/d/a", "create")
        fs.sync_dir("/d")
        fs.fail("sync", on_fire=lambda call: disk.forget_pending(call.path))
        file.write_at(0, [b"abc"])
        with pytest.raises(OSError):
            file.sync()
        file.sync()
        assert disk.crash("lost").contents() == {"/d/a": b""}

    def test_clear_repairs_the_disk(self) -> None:
        fs, _ = fresh()
        fs.fail("*", always=True)
        fs.clear()
        assert fs.exists("/d")

    def test_a_rule_that_could_never_fire_is_refused(self) -> None:
        fs, _ = fresh()
        with pytest.raises(ValueError, match="no call is named 'fsync'"):
            fs.fail("fsync")
        with pytest.raises(ValueError, match="nth counts from 1"):
            fs.fail("sync", nth=0)
        fs.exists("/d")
        with pytest.raises(ValueError, match="call 0 has been made already"):
            fs.crash_at(0)


class TestCrashing:
    @pytest.mark.parametrize(("when", "done"), [("before", False), ("after", True)])
    def test_the_call_is_made_or_not(self, when: When, done: bool) -> None:
        fs, disk = fresh()
        fs.crash("open", when=when)
        with pytest.raises(SimulatedCrash):
            fs.open("/d/a", "create")
        assert disk.exists("/d/a") == done

    def test_nothing_swallows_it_and_the_dead_do_nothing(self) -> None:
        fs, disk = fresh()
        file = fs.open("/d/a", "create")
        lock = fs.lock("/d/lock")
        fs.crash("write_at")
        with pytest.raises(SimulatedCrash):
            try:
                file.write_at(0, [b"x"])
            except Exception:
                pytest.fail("a crash was handled as an error")
        fs.clear()
        for use in (file.sync, file.close, lock.release, lambda: fs.unlink("/d/a"), fs.boot_id):
            with pytest.raises(SimulatedCrash):
                use()
        assert fs.crashed
        assert disk.exists("/d/a")

    def test_a_crash_can_be_set_at_each_call_by_its_number(self) -> None:
        fs, _ = fresh()
        expected = list(use_everything(fs))
        for index, name in enumerate(expected):
            fs, _ = fresh()
            fs.crash_at(index)
            reached = []
            with pytest.raises(SimulatedCrash):
                for step in use_everything(fs):
                    reached.append(step)
            assert (reached[-1], len(fs.calls)) == (name, index + 1)


def replace(fs: FileSystem, content: bytes) -> None:
    """The classic safe replacement of a file."""
    file = fs.open("/d/a.tmp", "create")
    file.write_at(0, [content])
    file.sync()
    file.close()
    fs.rename("/d/a.tmp", "/d/a")
    fs.sync_dir("/d")


def found_at_every_crash_point(mode: CrashMode, *, lying: bool = False) -> set[bytes]:
    """What the file holds after a crash before or after each call of a replacement."""

    def prepare() -> tuple[FaultFs, FakeDisk]:
        fs, disk = fresh()
        replace(disk, b"old")
        if lying:
            fs.skip("sync", always=True)
        return fs, disk

    rehearsal, _ = prepare()
    replace(rehearsal, b"new")
    found = set()
    for index in range(len(rehearsal.calls)):
        for when in get_args(When):
            fs, disk = prepare()
            fs.crash_at(index, when)
            with pytest.raises(SimulatedCrash):
                replace(fs, b"new")
            found |= {disk.crash(mode).contents()["/d/a"] for _ in range(20)}
    return found


@pytest.mark.parametrize("mode", CRASH_MODES)
def test_a_safe_replacement_is_old_or_new_at_every_crash_point(mode: CrashMode) -> None:
    assert found_at_every_crash_point(mode) == {b"old", b"new"}


@pytest.mark.parametrize("mode", ["lost", "torn", "zeroed", "reordered"])
def test_the_same_search_finds_out_a_missing_sync(mode: CrashMode) -> None:
    assert not found_at_every_crash_point(mode, lying=True) <= {b"old", b"new"}


def test_an_observer_is_told_of_every_call_before_it_is_made() -> None:
    disk = FakeDisk()
    fs = FaultFs(disk)
    seen: list[tuple[str, bool]] = []
    fs.on_call = lambda call: seen.append((call.name, disk.exists("/a")))
    fs.open("/a", "create").close()
    fs.unlink("/a")
    assert seen == [("open", False), ("close", True), ("unlink", True)]
