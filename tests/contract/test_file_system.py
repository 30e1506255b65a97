"""What every `FileSystem` promises, asked of the real one, of the fakes, and of the wrappers around both."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from topics.errors import DirectoryLocked
from topics.storage.fs import IOVECS_PER_WRITE, FileSystem, OpenMode, RealFs
from topics.testing import FakeDisk, FaultFs, MonitorFs


@dataclass(frozen=True)
class Place:
    """A file system and an empty directory in it."""

    fs: FileSystem
    root: str

    def path(self, name: str) -> str:
        return f"{self.root}/{name}"

    def write(self, name: str, *buffers: bytes) -> str:
        """A new file with these bytes, synced and closed."""
        file = self.fs.open(self.path(name), "create")
        file.write_at(0, buffers)
        file.sync()
        file.close()
        return self.path(name)

    def read(self, name: str) -> bytes:
        file = self.fs.open(self.path(name), "read")
        content = file.read_at(0, 1 << 20)
        file.close()
        return content


def monitored(inner: FileSystem) -> MonitorFs:
    monitor = MonitorFs(inner)
    monitor.allow_unlink(lambda path: True)
    return monitor


BUILDERS: dict[str, Callable[[], FileSystem]] = {
    "RealFs": RealFs,
    "FakeDisk": FakeDisk,
    "FaultFs(RealFs)": lambda: FaultFs(RealFs()),
    "FaultFs(FakeDisk)": lambda: FaultFs(FakeDisk()),
    "MonitorFs(RealFs)": lambda: monitored(RealFs()),
    "MonitorFs(FakeDisk)": lambda: monitored(FakeDisk()),
}


@pytest.fixture(params=BUILDERS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    fs = BUILDERS[request.param]()
    root = str(tmp_path)
    fs.make_dir(root)
    return Place(fs, root)


class TestOpen:
    def test_create_refuses_a_name_that_is_taken(self, place: Place) -> None:
        path = place.write("a", b"kept")
        with pytest.raises(FileExistsError) as refusal:
            place.fs.open(path, "create")
        assert refusal.value.filename == path
        assert place.read("a") == b"kept"

    @pytest.mark.parametrize("mode", ["read", "write"])
    def test_the_other_modes_need_the_file(self, place: Place, mode: OpenMode) -> None:
        with pytest.raises(FileNotFoundError) as refusal:
            place.fs.open(place.path("a"), mode)
        assert refusal.value.filename == place.path("a")
        assert place.fs.list(place.root) == []

    @pytest.mark.parametrize("mode", ["read", "write", "create"])
    def test_the_directory_must_exist(self, place: Place, mode: OpenMode) -> None:
        with pytest.raises(FileNotFoundError):
            place.fs.open(place.path("no/a"), mode)

    @pytest.mark.parametrize("mode", ["read", "write", "create"])
    def test_a_directory_is_no_file(self, place: Place, mode: OpenMode) -> None:
        place.fs.make_dir(place.path("d"))
        with pytest.raises(FileExistsError if mode == "create" else IsADirectoryError):
            place.fs.open(place.path("d"), mode)

    def test_a_new_file_is_empty_readable_and_writable(self, place: Place) -> None:
        file = place.fs.open(place.path("a"), "create")
        assert (file.path, file.size(), file.read_at(0, 10)) == (place.path("a"), 0, b"")
        file.write_at(0, [b"x"])
        assert file.read_at(0, 10) == b"x"
        file.close()

    def test_write_mode_keeps_the_content(self, place: Place) -> None:
        file = place.fs.open(place.write("a", b"abcdef"), "write")
        file.write_at(2, [b"CD"])
        assert file.read_at(0, 10) == b"abCDef"
        file.close()

    def test_read_mode_cannot_change_the_file(self, place: Place) -> None:
        file = place.fs.open(place.write("a", b"abc"), "read")
        changes: list[Callable[[], None]] = [
            lambda: file.write_at(0, [b"x"]),
            lambda: file.truncate(1),
            lambda: file.allocate(10),
        ]
        for change in changes:
            with pytest.raises(OSError) as refusal:
                change()
            assert refusal.value.filename == place.path("a")
        assert file.read_at(0, 10) == b"abc"
        file.close()

    def test_a_closed_file_is_refused_and_closing_again_is_not(self, place: Place) -> None:
        file = place.fs.open(place.path("a"), "create")
        file.close()
        file.close()
        for use in (
            lambda: file.write_at(0, [b"x"]),
            lambda: file.read_at(0, 1),
            lambda: file.truncate(1),
            lambda: file.allocate(1),
            file.size,
            file.sync,
        ):
            with pytest.raises(OSError) as refusal:
                use()
            assert (refusal.value.errno, refusal.value.filename) == (errno.EBADF, place.path("a"))


class TestBytes:
    def test_buffers_of_every_kind_are_written_one_after_the_other(self, place: Place) -> None:
        file = place.fs.open(place.path("a"), "create")
        file.write_at(3, [b"ab", bytearray(b"cd"), memoryview(b"_ef_")[1:3], b"", memoryview(b"gh").cast("H")])
        assert file.read_at(0, 100) == b"\0\0\0abcdefgh"
        file.close()

    @pytest.mark.parametrize("count", [IOVECS_PER_WRITE - 1, IOVECS_PER_WRITE, 2 * IOVECS_PER_WRITE + 1])
    def test_more_buffers_than_one_system_call_takes(self, place: Place, count: int) -> None:
        buffers = [index.to_bytes(3, "big") for index in range(count)]
        place.write("a", *buffers)
        assert place.read("a") == b"".join(buffers)

    def test_writing_nothing_changes_nothing(self, place: Place) -> None:
        file = place.fs.open(place.path("a"), "create")
        file.write_at(100, [])
        file.write_at(100, [b""])
        assert file.size() == 0
        file.close()

    def test_a_read_is_short_only_at_the_end(self, place: Place) -> None:
        file = place.fs.open(place.write("a", b"abcdef"), "read")
        assert [file.read_at(0, 6), file.read_at(4, 6), file.read_at(6, 6), file.read_at(60, 6)] == [
            b"abcdef",
            b"ef",
            b"",
            b"",
        ]
        assert file.read_at(2, 0) == b""
        file.close()

    def test_a_negative_offset_is_an_error(self, place: Place) -> None:
        file = place.fs.open(place.path("a"), "create")
        with pytest.raises(OSError):
            file.write_at(-1, [b"x"])
        with pytest.raises(OSError):
            file.read_at(-1, 1)
        file.close()

    def test_two_handles_see_each_other(self, place: Place) -> None:
        writer = place.fs.open(place.path("a"), "create")
        reader = place.fs.open(place.path("a"), "read")
        writer.write_at(0, [b"seen"])
        assert (reader.read_at(0, 10), reader.size()) == (b"seen", 4)
        writer.close()
        reader.close()

    def test_truncate_cuts_and_extends_with_zeros(self, place: Place) -> None:
        file = place.fs.open(place.path("a"), "create")
        file.write_at(0, [b"abcdef"])
        file.truncate(2)
        assert (file.size(), file.read_at(0, 10)) == (2, b"ab")
        file.truncate(4)
        assert (file.size(), file.read_at(0, 10)) == (4, b"ab\0\0")
        file.close()

    def test_allocate_makes_it_longer_and_never_shorter(self, place: Place) -> None:
        file = place.fs.open(place.path("a"), "create")
        file.write_at(0, [b"abc"])
        file.allocate(6000)
        assert (file.size(), file.read_at(0, 7000)) == (6000, b"abc" + bytes(5997))
        file.allocate(10)
        file.allocate(0)
        assert file.size() == 6000
        file.close()

    @pytest.mark.parametrize("verb", ["truncate", "allocate"])
    def test_a_negative_length_is_an_error(self, place: Place, verb: str) -> None:
        file = place.fs.open(place.path("a"), "create")
        with pytest.raises(OSError):
            getattr(file, verb)(-1)
        file.close()


class TestMapping:
    def test_it_is_the_whole_file_read_only(self, place: Place) -> None:
        mapping = place.fs.map(place.write("a", b"abcdef"))
        assert bytes(mapping.view) == b"abcdef"
        assert mapping.view.readonly
        mapping.release()

    def test_an_empty_file_has_an_empty_view(self, place: Place) -> None:
        mapping = place.fs.map(place.write("a"))
        assert bytes(mapping.view) == b""
        mapping.release()

    def test_it_sees_later_writes_also_once_the_file_has_grown(self, place: Place) -> None:
        file = place.fs.open(place.write("a", b"abcdef"), "write")
        mapping = place.fs.map(place.path("a"))
        file.write_at(1, [b"B"])
        assert bytes(mapping.view) == b"aBcdef"
        file.write_at(5, [b"F" * 10_000])
        file.write_at(2, [b"C"])
        file.write_at(9_000, [b"."])
        assert bytes(mapping.view) == b"aBCdeF"
        mapping.release()
        file.close()

    def test_release_leaves_the_views_cut_from_it(self, place: Place) -> None:
        mapping = place.fs.map(place.write("a", b"abcdef"))
        cut = mapping.view[2:4]
        mapping.release()
        mapping.release()
        assert bytes(cut) == b"cd"
        with pytest.raises(ValueError):
            bytes(mapping.view)

    def test_it_outlives_the_name(self, place: Place) -> None:
        path = place.write("a", b"abcdef")
        mapping = place.fs.map(path)
        place.fs.unlink(path)
        assert bytes(mapping.view) == b"abcdef"
        mapping.release()

    def test_a_missing_file_cannot_be_mapped(self, place: Place) -> None:
        with pytest.raises(FileNotFoundError):
            place.fs.map(place.path("a"))


class TestNames:
    def test_list_is_sorted_and_shows_files_and_directories(self, place: Place) -> None:
        for name in ("b", "c", "a"):
            place.write(name)
        place.fs.make_dir(place.path("bb/inner"))
        assert place.fs.list(place.root) == ["a", "b", "bb", "c"]
        assert place.fs.list(place.path("bb")) == ["inner"]

    def test_a_missing_directory_lists_as_empty_but_a_file_is_an_error(self, place: Place) -> None:
        assert place.fs.list(place.path("no")) == []
        with pytest.raises(NotADirectoryError):
            place.fs.list(place.write("a"))

    def test_exists(self, place: Place) -> None:
        place.write("a")
        place.fs.make_dir(place.path("d"))
        assert [place.fs.exists(place.path(name)) for name in ("a", "d", "no", "a/below", "no/below")] == [
            True,
            True,
            False,
            False,
            False,
        ]

    def test_rename_replaces(self, place: Place) -> None:
        place.write("new", b"new")
        place.write("old", b"old")
        place.fs.rename(place.path("new"), place.path("old"))
        assert (place.fs.list(place.root), place.read("old")) == (["old"], b"new")

    def test_rename_to_itself_changes_nothing(self, place: Place) -> None:
        path = place.write("a", b"kept")
        place.fs.rename(path, path)
        assert place.read("a") == b"kept"

    def test_an_open_file_goes_along_with_a_rename(self, place: Place) -> None:
        file = place.fs.open(place.write("a", b"abc"), "write")
        place.fs.rename(place.path("a"), place.path("b"))
        file.write_at(3, [b"d"])
        assert (place.read("b"), file.path) == (b"abcd", place.path("a"))
        file.close()

    def test_a_handle_of_a_replaced_file_keeps_the_old_bytes(self, place: Place) -> None:
        reader = place.fs.open(place.write("a", b"old"), "read")
        place.fs.rename(place.write("b", b"new"), place.path("a"))
        assert (reader.read_at(0, 10), place.read("a")) == (b"old", b"new")
        reader.close()

    def test_rename_stays_in_its_directory(self, place: Place) -> None:
        path = place.write("a", b"kept")
        place.fs.make_dir(place.path("d"))
        with pytest.raises(OSError) as refusal:
            place.fs.rename(path, place.path("d/a"))
        assert refusal.value.errno == errno.EXDEV
        assert place.read("a") == b"kept"

    def test_a_missing_file_can_be_neither_renamed_nor_unlinked(self, place: Place) -> None:
        with pytest.raises(FileNotFoundError):
            place.fs.rename(place.path("no"), place.path("a"))
        with pytest.raises(FileNotFoundError):
            place.fs.unlink(place.path("no"))

    def test_unlink_frees_the_name_and_leaves_open_files(self, place: Place) -> None:
        file = place.fs.open(place.write("a", b"old"), "read")
        place.fs.unlink(place.path("a"))
        assert not place.fs.exists(place.path("a"))
        place.write("a", b"another")
        assert (file.read_at(0, 10), place.read("a")) == (b"old", b"another")
        file.close()

    def test_make_dir_makes_parents_and_may_be_repeated(self, place: Place) -> None:
        place.fs.make_dir(place.path("x/y/z"))
        place.write("x/y/z/a", b"kept")
        place.fs.make_dir(place.path("x/y/z"))
        assert place.read("x/y/z/a") == b"kept"

    @pytest.mark.parametrize("name", ["a", "a/below"])
    def test_make_dir_where_a_file_is_is_refused(self, place: Place, name: str) -> None:
        place.write("a", b"kept")
        with pytest.raises(NotADirectoryError):
            place.fs.make_dir(place.path(name))
        assert place.read("a") == b"kept"

    def test_rename_dir_takes_everything_along(self, place: Place) -> None:
        place.fs.make_dir(place.path("d/inner"))
        place.write("d/a", b"one")
        place.write("d/inner/b", b"two")
        place.fs.sync_dir(place.path("d"))
        place.fs.sync_dir(place.path("d/inner"))
        place.fs.rename_dir(place.path("d"), place.path("e"))
        assert (place.read("e/a"), place.read("e/inner/b")) == (b"one", b"two")
        assert place.fs.list(place.root) == ["e"] and not place.fs.exists(place.path("d/a"))

    def test_rename_dir_replaces_only_an_empty_directory(self, place: Place) -> None:
        for name in ("d", "empty", "full/inner"):
            place.fs.make_dir(place.path(name))
        place.write("file", b"kept")
        with pytest.raises(OSError) as refusal:
            place.fs.rename_dir(place.path("d"), place.path("full"))
        assert refusal.value.errno in (errno.ENOTEMPTY, errno.EEXIST)
        with pytest.raises(NotADirectoryError):
            place.fs.rename_dir(place.path("d"), place.path("file"))
        place.fs.rename_dir(place.path("d"), place.path("empty"))
        assert place.fs.list(place.root) == ["empty", "file", "full"] and place.read("file") == b"kept"

    def test_rename_dir_is_for_directories_and_stays_beside_them(self, place: Place) -> None:
        place.fs.make_dir(place.path("d/inner"))
        with pytest.raises(NotADirectoryError):
            place.fs.rename_dir(place.write("file"), place.path("x"))
        with pytest.raises(FileNotFoundError):
            place.fs.rename_dir(place.path("no"), place.path("x"))
        with pytest.raises(OSError) as refusal:
            place.fs.rename_dir(place.path("d/inner"), place.path("x"))
        assert refusal.value.errno == errno.EXDEV
        assert place.fs.list(place.root) == ["d", "file"]

    def test_remove_dir_takes_an_empty_directory(self, place: Place) -> None:
        place.fs.make_dir(place.path("d/inner"))
        place.write("file")
        for name, code in (("d", errno.ENOTEMPTY), ("file", errno.ENOTDIR), ("no", errno.ENOENT)):
            with pytest.raises(OSError) as refusal:
                place.fs.remove_dir(place.path(name))
            assert refusal.value.errno == code
        place.fs.remove_dir(place.path("d/inner"))
        place.fs.remove_dir(place.path("d"))
        assert place.fs.list(place.root) == ["file"]

    def test_sync_dir_needs_a_directory(self, place: Place) -> None:
        place.fs.sync_dir(place.root)
        with pytest.raises(FileNotFoundError):
            place.fs.sync_dir(place.path("no"))
        with pytest.raises(NotADirectoryError):
            place.fs.sync_dir(place.write("a"))


class TestMachine:
    def test_a_lock_is_exclusive_and_names_its_holder(self, place: Place) -> None:
        lock = place.fs.lock(place.path("lock"))
        with pytest.raises(DirectoryLocked) as refusal:
            place.fs.lock(place.path("lock"))
        holder = refusal.value.detail["holder"]
        assert "process" in holder
        assert holder in refusal.value.message
        assert place.path("lock") in refusal.value.message
        lock.release()

    def test_a_released_lock_can_be_taken_again(self, place: Place) -> None:
        first = place.fs.lock(place.path("lock"))
        first.release()
        second = place.fs.lock(place.path("lock"))
        first.release()
        with pytest.raises(DirectoryLocked):
            place.fs.lock(place.path("lock"))
        second.release()
        assert place.fs.exists(place.path("lock"))

    def test_locks_of_two_directories_are_independent(self, place: Place) -> None:
        place.fs.make_dir(place.path("d"))
        locks = [place.fs.lock(place.path("lock")), place.fs.lock(place.path("d/lock"))]
        for lock in locks:
            lock.release()

    def test_boot_id_stays_the_same(self, place: Place) -> None:
        assert place.fs.boot_id()
        assert place.fs.boot_id() == place.fs.boot_id()

    def test_a_file_may_be_kept_from_others(self, place: Place) -> None:
        path = place.path("secret")
        place.fs.open(path, "create").close()
        place.fs.restrict(path)
        if isinstance(place.fs, RealFs):
            assert os.stat(path).st_mode & 0o777 == 0o600
        with pytest.raises(FileNotFoundError):
            place.fs.restrict(place.path("no"))

    def test_free_bytes(self, place: Place) -> None:
        assert place.fs.free_bytes(place.root) > 0
        with pytest.raises(FileNotFoundError):
            place.fs.free_bytes(place.path("no"))


class TestMemory:
    @pytest.fixture
    def directory(self, place: Place) -> Iterator[str]:
        directory = place.path("wal")
        place.fs.make_dir(directory)
        yield directory
        place.fs.forget(directory)

    def numbers(self, place: Place, directory: str, count: int) -> memoryview:
        numbers = place.fs.memorize(directory, count)
        assert numbers is not None and len(numbers) == count
        return numbers

    def test_numbers_begin_as_zeros_and_are_recalled(self, place: Place, directory: str) -> None:
        assert list(place.fs.recall(directory)) == []
        numbers = self.numbers(place, directory, 3)
        assert numbers.tolist() == [0, 0, 0]
        numbers[0], numbers[2] = 7, 2**64 - 1
        assert list(place.fs.recall(directory)) == [7, 0, 2**64 - 1]

    def test_next_process_finds_them_if_it_wants_as_many(self, place: Place, directory: str) -> None:
        self.numbers(place, directory, 3)[1] = 5
        assert self.numbers(place, directory, 3).tolist() == [0, 5, 0]
        assert self.numbers(place, directory, 4).tolist() == [0, 0, 0, 0]
        assert list(place.fs.recall(directory)) == [0, 0, 0, 0]

    def test_forgotten_numbers_are_gone(self, place: Place, directory: str) -> None:
        self.numbers(place, directory, 1)[0] = 1
        place.fs.forget(directory)
        assert list(place.fs.recall(directory)) == []
        place.fs.forget(directory)

    def test_two_directories_are_independent(self, place: Place, directory: str) -> None:
        self.numbers(place, directory, 1)[0] = 1
        other = place.path("other")
        place.fs.make_dir(other)
        assert list(place.fs.recall(other)) == []
        self.numbers(place, other, 1)[0] = 2
        assert list(place.fs.recall(directory)) == [1]
        place.fs.forget(other)

    def test_renamed_directory_keeps_them(self, place: Place, directory: str) -> None:
        self.numbers(place, directory, 1)[0] = 1
        place.fs.rename_dir(directory, place.path("new"))
        assert list(place.fs.recall(place.path("new"))) == [1]
        place.fs.rename_dir(place.path("new"), directory)

    def test_missing_directory_has_none(self, place: Place) -> None:
        assert list(place.fs.recall(place.path("missing"))) == []
