"""What the numbers beside a directory may not be trusted to: other users, other file systems, other names."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from topics.storage import sharedmemory
from topics.storage.sharedmemory import SharedMemory


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SharedMemory:
    place = tmp_path / "shm"
    place.mkdir()
    monkeypatch.setattr(sharedmemory, "is_in_memory", lambda directory: directory == str(place))
    return SharedMemory(str(place))


@pytest.fixture
def directory(tmp_path: Path) -> str:
    (tmp_path / "wal").mkdir()
    return str(tmp_path / "wal")


def kept(directory: str) -> Path:
    (path,) = Path(directory).parent.joinpath("shm").iterdir()
    return path


def test_only_the_owner_may_read_or_write_them(memory: SharedMemory, directory: str) -> None:
    assert memory.memorize(directory, 1) is not None
    assert kept(directory).stat().st_mode & 0o777 == 0o600
    assert f"topics-{os.geteuid()}-" in kept(directory).name


def test_file_that_others_may_write_is_not_trusted(memory: SharedMemory, directory: str) -> None:
    memory.memorize(directory, 1)
    kept(directory).chmod(0o666)
    assert memory.recall(directory) == ()
    assert memory.memorize(directory, 1) is None


def test_file_of_another_user_is_not_trusted(
    memory: SharedMemory, directory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.memorize(directory, 1)
    path = str(kept(directory))
    monkeypatch.setattr(SharedMemory, "_path", lambda self, directory: path)
    monkeypatch.setattr(os, "geteuid", lambda: 4321)
    assert memory.recall(directory) == ()
    assert memory.memorize(directory, 1) is None


def test_symbolic_link_is_not_followed(memory: SharedMemory, directory: str, tmp_path: Path) -> None:
    memory.memorize(directory, 1)
    path = kept(directory)
    path.unlink()
    target = tmp_path / "target"
    target.write_bytes(bytes(8))
    target.chmod(0o600)
    path.symlink_to(target)
    assert memory.recall(directory) == ()
    assert memory.memorize(directory, 1) is None


def test_place_on_a_disk_keeps_nothing(directory: str, tmp_path: Path) -> None:
    memory = SharedMemory(str(tmp_path))
    if not sharedmemory.is_in_memory(str(tmp_path)):
        assert memory.memorize(directory, 1) is None
    assert sharedmemory.is_in_memory("/dev/shm") and not sharedmemory.is_in_memory("/proc")
    assert SharedMemory("/proc").memorize(directory, 1) is None


def test_place_that_is_missing_keeps_nothing(directory: str, tmp_path: Path) -> None:
    memory = SharedMemory(str(tmp_path / "missing"))
    assert memory.memorize(directory, 1) is None and memory.recall(directory) == ()
    memory.forget(directory)


def test_full_memory_keeps_nothing(memory: SharedMemory, directory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int, offset: int, length: int) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    assert memory.memorize(directory, 1) is None


def test_copy_of_a_directory_has_none(memory: SharedMemory, directory: str, tmp_path: Path) -> None:
    memory.memorize(directory, 1)
    shutil.copytree(directory, tmp_path / "copy")
    assert memory.recall(str(tmp_path / "copy")) == ()


def test_file_cut_off_in_a_number_is_read_up_to_it(memory: SharedMemory, directory: str) -> None:
    memory.memorize(directory, 2)
    os.truncate(kept(directory), 12)
    assert memory.recall(directory) == [0]


def test_oldest_files_go_when_there_are_too_many(
    memory: SharedMemory, directory: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sharedmemory, "FILES_MAX", 3)
    place = Path(directory).parent / "shm"
    foreign = place / "somebody-else"
    foreign.write_bytes(b"")
    made = []
    for number in range(5):
        (tmp_path / str(number)).mkdir()
        made.append(str(tmp_path / str(number)))
        memory.memorize(made[-1], 1)
        assert len(list(place.iterdir())) <= 1 + 3
    assert memory.recall(made[-1]) == [0] and memory.recall(made[0]) == ()
    assert foreign.exists()
