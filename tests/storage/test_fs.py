"""What only `RealFs` can show: how it treats an operating system that does less than it was asked to."""

from __future__ import annotations

import builtins
import errno
import fcntl
import mmap
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from topics.errors import DirectoryLocked
from topics.storage.fs import RealFs, is_open_to_others
from topics.testing import SimClock

pwritev = os.pwritev
pread = os.pread


@pytest.mark.parametrize("taken_bytes", [1, 2, 3, 4, 7, 100])
def test_a_short_write_is_continued_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken_bytes: int
) -> None:
    def short_pwritev(descriptor: int, buffers: Sequence[memoryview], offset: int) -> int:
        return pwritev(descriptor, [b"".join(buffers)[:taken_bytes]], offset)

    monkeypatch.setattr(os, "pwritev", short_pwritev)
    file = RealFs().open(str(tmp_path / "a"), "create")
    file.write_at(5, [b"ab", b"", b"cde", b"f", b"ghi"])
    assert file.read_at(0, 100) == bytes(5) + b"abcdefghi"
    file.close()


def test_a_disk_that_takes_nothing_is_an_error_not_a_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "pwritev", lambda descriptor, buffers, offset: 0)
    file = RealFs().open(str(tmp_path / "a"), "create")
    with pytest.raises(OSError, match="took none of 3 bytes at offset 7") as failure:
        file.write_at(7, [b"abc"])
    assert failure.value.filename == str(tmp_path / "a")
    file.close()


def test_a_single_buffer_that_is_taken_in_part_is_written_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        os, "pwritev", lambda descriptor, buffers, offset: pwritev(descriptor, [buffers[0][:2]], offset)
    )
    file = RealFs().open(str(tmp_path / "a"), "create")
    file.write_at(1, [b"abcde"])
    assert file.read_at(0, 100) == b"\0abcde"
    file.close()


def test_a_short_read_is_continued_until_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = RealFs().open(str(tmp_path / "a"), "create")
    file.write_at(0, [b"abcdefghi"])
    monkeypatch.setattr(os, "pread", lambda descriptor, length, offset: pread(descriptor, min(length, 2), offset))
    assert (file.read_at(1, 5), file.read_at(1, 50)) == (b"bcdef", b"bcdefghi")
    file.close()


def refuse_with(code: int) -> Any:
    def refuse(*arguments: object) -> None:
        raise OSError(code, os.strerror(code))

    return refuse


@pytest.mark.parametrize("code", [errno.EOPNOTSUPP, errno.EINVAL])
def test_allocate_sets_the_length_where_nothing_can_be_reserved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    monkeypatch.setattr(os, "posix_fallocate", refuse_with(code))
    file = RealFs().open(str(tmp_path / "a"), "create")
    file.write_at(0, [b"abc"])
    file.allocate(10)
    file.allocate(5)
    assert file.read_at(0, 100) == b"abc" + bytes(7)
    file.close()


def test_allocate_reports_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "posix_fallocate", refuse_with(errno.ENOSPC))
    file = RealFs().open(str(tmp_path / "a"), "create")
    with pytest.raises(OSError) as failure:
        file.allocate(10)
    assert (failure.value.errno, failure.value.filename, file.size()) == (errno.ENOSPC, str(tmp_path / "a"), 0)
    file.close()


def test_allocated_space_is_really_reserved(tmp_path: Path) -> None:
    file = RealFs().open(str(tmp_path / "a"), "create")
    file.allocate(1 << 20)
    assert os.stat(tmp_path / "a").st_blocks * 512 >= 1 << 20
    file.close()


@pytest.mark.parametrize(("call", "use"), [("fdatasync", "file"), ("fsync", "directory")])
def test_a_failed_sync_says_what_could_not_be_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, use: str
) -> None:
    fs = RealFs()
    file = fs.open(str(tmp_path / "a"), "create")
    monkeypatch.setattr(os, call, refuse_with(errno.EIO))
    with pytest.raises(OSError) as failure:
        file.sync() if use == "file" else fs.sync_dir(str(tmp_path))
    assert failure.value.errno == errno.EIO
    assert failure.value.filename == (file.path if use == "file" else str(tmp_path))
    file.close()


def test_a_file_that_cannot_be_closed_is_named_and_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a network file system says only then: that the bytes did not get there."""
    file = RealFs().open(str(tmp_path / "a"), "create")
    close = os.close

    def close_in_vain(descriptor: int) -> None:
        close(descriptor)
        refuse_with(errno.EIO)()

    monkeypatch.setattr(os, "close", close_in_vain)
    with pytest.raises(OSError) as failure:
        file.close()
    assert (failure.value.errno, failure.value.filename) == (errno.EIO, str(tmp_path / "a"))
    file.close()


def test_a_file_that_cannot_be_mapped_is_named_and_not_left_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    fs = RealFs()
    opened = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(mmap, "mmap", lambda *arguments, **options: refuse_with(errno.ENOMEM)())
    with pytest.raises(OSError) as failure:
        fs.map(str(tmp_path / "a"))
    assert (failure.value.errno, failure.value.filename) == (errno.ENOMEM, str(tmp_path / "a"))
    assert len(os.listdir("/proc/self/fd")) == opened


def test_make_dir_syncs_every_name_it_makes_and_the_one_above(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    fsync = os.fsync

    def watched_fsync(descriptor: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    RealFs().make_dir(str(tmp_path / "x" / "y"))
    assert synced == [str(tmp_path.parent), str(tmp_path), str(tmp_path / "x")]
    synced.clear()
    RealFs().make_dir(str(tmp_path / "x" / "y"))
    assert synced == [str(tmp_path / "x")]


def test_a_lock_holds_against_another_process_and_goes_with_it(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    program = (
        "import sys; from topics.storage.fs import RealFs; lock = RealFs().lock(sys.argv[1]);"
        " print('held', flush=True); sys.stdin.read()"
    )
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", program, path], cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(DirectoryLocked, match=rf"process {other.pid} since 20\d\d-"):
            RealFs().lock(path)
        other.kill()
        other.wait()
        RealFs().lock(path).release()


def test_a_lock_says_since_when_it_is_held(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    Path(path).write_text("the name of an earlier holder, and a longer one than the next will leave there")
    lock = RealFs(SimClock(now_ms=1_700_000_000_000)).lock(path)
    with pytest.raises(DirectoryLocked) as refusal:
        RealFs().lock(path)
    assert refusal.value.detail == {"path": path, "holder": f"process {os.getpid()} since 2023-11-14T22:13:20+00:00"}
    lock.release()


def test_a_lock_holds_without_a_name_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "lock")
    monkeypatch.setattr(os, "pwrite", refuse_with(errno.ENOSPC))
    lock = RealFs().lock(path)
    with pytest.raises(DirectoryLocked, match="a process that left no name"):
        RealFs().lock(path)
    lock.release()


@pytest.mark.parametrize(("module", "call"), [(fcntl, "flock"), (os, "pwrite")])
def test_a_lock_that_the_disk_refuses_is_named_and_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: Any, call: str
) -> None:
    path = str(tmp_path / "lock")
    with monkeypatch.context() as broken:
        broken.setattr(module, call, refuse_with(errno.EIO))
        with pytest.raises(OSError) as failure:
            RealFs().lock(path)
    assert (failure.value.errno, failure.value.filename) == (errno.EIO, path)
    RealFs().lock(path).release()


def open_except(*missing: str) -> Any:
    original = builtins.open

    def selective(path: Any, *arguments: Any, **options: Any) -> Any:
        if path in missing:
            raise FileNotFoundError(errno.ENOENT, "not on this system", path)
        return original(path, *arguments, **options)

    return selective


def test_boot_id_is_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert RealFs().boot_id() == RealFs().boot_id() == kernel


def test_boot_id_falls_back_to_the_time_of_boot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtins, "open", open_except("/proc/sys/kernel/random/boot_id"))
    first, second = RealFs().boot_id(), RealFs().boot_id()
    assert first == second
    assert first.startswith("booted-at-")


def test_an_unknown_boot_is_never_taken_for_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtins, "open", open_except("/proc/sys/kernel/random/boot_id", "/proc/stat"))
    first, second = RealFs(), RealFs()
    assert first.boot_id() == first.boot_id()
    assert first.boot_id() != second.boot_id()


def test_directories_that_are_made_are_their_owners(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        RealFs().make_dir(str(tmp_path / "data" / "wal"))
    finally:
        os.umask(before)
    for path in (tmp_path / "data", tmp_path / "data" / "wal"):
        assert path.stat().st_mode & 0o777 == 0o700
        assert not is_open_to_others(str(path))
    for mode, is_open in ((0o755, True), (0o701, True), (0o750, False)):
        (tmp_path / "data").chmod(mode)
        assert is_open_to_others(str(tmp_path / "data")) is is_open
