"""The file system as a protocol, and the real one: the only module of the package that opens files on disks.

Everything that touches a disk takes a `FileSystem`. `RealFs` is the operating system's; `topics.testing`
ships fakes that pass the same contract suite (`tests/contract/test_file_system.py`) and can lose, tear,
reorder, fail and watch every call.

What a caller may rely on, and no more:
- `write_at` reaches the operating system (it survives the death of the process), not the disk.
- `sync` makes the file's bytes and length durable; `sync_dir` makes the names in a directory durable
  (creations, renames, unlinks). Nothing else is durable at a power loss; unsynced writes may be lost,
  torn at any byte, zeroed or reordered against each other.
- `rename` replaces atomically, within one directory.
- Every failure is an `OSError` that names the path; a failed `write_at`, `allocate` or `truncate` may
  have done any part. After a failed `sync` nobody knows which of the bytes since the last good one
  are durable, and a later `sync` that succeeds does not tell either.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import posixpath
import stat
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Literal, Protocol

from topics.clock import Clock, SystemClock
from topics.errors import DirectoryLocked
from topics.storage.sharedmemory import PLACE, SharedMemory

Buffer = bytes | bytearray | memoryview
OpenMode = Literal["read", "write", "create"]
"""read: must exist. write: must exist, readable and writable. create: must not exist."""


class File(Protocol):
    """An open file. Calls name their offset, so several threads may share one."""

    @property
    def path(self) -> str:
        """The name it was opened by; a later rename does not change it."""

    def write_at(self, offset: int, buffers: Sequence[Buffer]) -> None:
        """Write all buffers one after the other from `offset`; a gap before it reads as zeros."""

    def read_at(self, offset: int, length: int) -> bytes:
        """Up to `length` bytes; fewer only at the end of the file."""

    def size(self) -> int: ...

    def truncate(self, length: int) -> None:
        """Make the file `length` bytes long, new bytes zero. Never shorten a file that is mapped."""

    def allocate(self, length: int) -> None:
        """Reserve disk space so that the file is at least `length` bytes long, new bytes zero."""

    def sync(self) -> None: ...

    def close(self) -> None:
        """Give the handle back; it syncs nothing. Closing twice is fine, any other use is an `OSError`."""


class Mapping(Protocol):
    """A read-only view of a whole file, as long as it was when mapped, that sees later `write_at` calls to it.

    `release` drops this handle, after which using `view` is a `ValueError`; the memory goes when the last
    view cut from it has gone too.
    """

    @property
    def view(self) -> memoryview: ...

    def release(self) -> None: ...


class DirectoryLock(Protocol):
    def release(self) -> None:
        """Let the next process in. The lock file stays. Releasing twice is fine."""


class FileSystem(Protocol):
    def open(self, path: str, mode: OpenMode) -> File: ...

    def map(self, path: str) -> Mapping: ...

    def rename(self, source: str, target: str) -> None:
        """Give a file another name in the same directory, replacing what had it; elsewhere is EXDEV."""

    def unlink(self, path: str) -> None: ...

    def list(self, directory: str) -> list[str]:
        """The names in a directory, sorted; empty when it does not exist."""

    def exists(self, path: str) -> bool: ...

    def make_dir(self, path: str) -> None:
        """Create a directory and its parents; no error when it exists. Names durable on return."""

    def rename_dir(self, source: str, target: str) -> None:
        """Give a directory another name beside it; what has that name may only be an empty one. Durable on return."""

    def remove_dir(self, path: str) -> None:
        """Take an empty directory away. Durable on return."""

    def sync_dir(self, path: str) -> None: ...

    def lock(self, path: str) -> DirectoryLock:
        """Take the exclusive lock file `path`, or raise `DirectoryLocked` naming its holder."""

    def boot_id(self) -> str:
        """The id of this run of the machine. Another one means that unsynced bytes may be lost; the same one alone
        proves nothing: a disk that is detached, or rolled back to a snapshot, loses them as well."""

    def recall(self, directory: str) -> Sequence[int]:
        """The numbers that the last process kept about a directory with `memorize`; empty when they are gone."""

    def memorize(self, directory: str, count: int) -> memoryview | None:
        """Numbers (64 bits, unsigned) about a directory, kept outside of its disk; None where there is no such place.

        They begin as the last process left them if there were as many, else as zeros. Assigning one takes no system
        call. They survive the death of the process; nothing that happens to the disk of `directory` changes them, and
        they may vanish at any time, but never go back to earlier values.
        """

    def forget(self, directory: str) -> None:
        """Remove the numbers about a directory."""

    def free_bytes(self, path: str) -> int: ...

    def restrict(self, path: str) -> None:
        """Let nobody but the owner read or write a file, as one that holds a secret."""


def failure(code: int, path: str) -> OSError:
    """The error the system gives for this `errno`; Python picks the subclass (`FileNotFoundError`, …)."""
    return OSError(code, os.strerror(code), path)


def require_one_directory(source: str, target: str) -> None:
    """Refuse a rename whose durability would hang on two directories: no single `sync_dir` could settle it."""
    if posixpath.dirname(posixpath.normpath(source)) != posixpath.dirname(posixpath.normpath(target)):
        raise OSError(
            errno.EXDEV, "rename works within one directory; copy, sync and unlink instead", source, None, target
        )


def locked(path: str, holder: str) -> DirectoryLocked:
    """The refusal every file system gives for a lock somebody else holds."""
    return DirectoryLocked(
        f"{path} is held by {holder or 'a process that left no name'}: stop it first, or use another directory",
        path=path,
        holder=holder,
    )


def released_view() -> memoryview:
    """What a dead mapping shows: any use of it raises instead of reading as empty."""
    view = memoryview(b"")
    view.release()
    return view


IOVECS_PER_WRITE = 1024
"""Linux's IOV_MAX: one system call takes no more buffers than this."""

NEW_FILE_PERMISSIONS = 0o640
NEW_DIRECTORY_PERMISSIONS = 0o700
OTHERS_PERMISSIONS = 0o007
SECRET_FILE_PERMISSIONS = 0o600
LOCK_NOTE_BYTES_MAX = 200
NO_PREALLOCATION = frozenset({errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL, errno.ENOSYS})

_OPEN_FLAGS: dict[OpenMode, int] = {
    "read": os.O_RDONLY,
    "write": os.O_RDWR,
    "create": os.O_RDWR | os.O_CREAT | os.O_EXCL,
}


def _located(error: OSError, path: str) -> OSError:
    """Calls on a descriptor do not say which file failed; this does."""
    return OSError(error.errno, error.strerror, path)


class RealFile:
    def __init__(self, path: str, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    def write_at(self, offset: int, buffers: Sequence[Buffer]) -> None:
        if offset < 0:
            # The system call would take -1 for "wherever the last write ended".
            raise failure(errno.EINVAL, self.path)
        try:
            if len(buffers) == 1 and type(buffers[0]) is bytes:
                # Most writes: small, and taken whole. Of one that is not, the rest is written with its beginning.
                if os.pwritev(self._descriptor, buffers, offset) == len(buffers[0]):
                    return
            views = [memoryview(buffer).cast("B") for buffer in buffers]
            for first in range(0, len(views), IOVECS_PER_WRITE):
                offset = self._write_batch(offset, views[first : first + IOVECS_PER_WRITE])
        except OSError as error:
            raise _located(error, self.path) from error

    def _write_batch(self, offset: int, views: list[memoryview]) -> int:
        """Write until all views are out, as one call may take only part of them; the offset after the last byte."""
        left = sum(view.nbytes for view in views)
        while left:
            written = os.pwritev(self._descriptor, views, offset)
            if written == 0:
                raise OSError(errno.EIO, f"the disk took none of {left} bytes at offset {offset}")
            offset += written
            left -= written
            if left:
                views = _after(views, written)
        return offset

    def read_at(self, offset: int, length: int) -> bytes:
        try:
            chunk = os.pread(self._descriptor, length, offset)
            if len(chunk) == length or not chunk:
                return chunk
            chunks = [chunk]
            read_bytes = len(chunk)
            while read_bytes < length and chunk:
                chunk = os.pread(self._descriptor, length - read_bytes, offset + read_bytes)
                chunks.append(chunk)
                read_bytes += len(chunk)
        except OSError as error:
            raise _located(error, self.path) from error
        return b"".join(chunks)

    def size(self) -> int:
        try:
            return os.fstat(self._descriptor).st_size
        except OSError as error:
            raise _located(error, self.path) from error

    def truncate(self, length: int) -> None:
        try:
            os.ftruncate(self._descriptor, length)
        except OSError as error:
            raise _located(error, self.path) from error

    def allocate(self, length: int) -> None:
        if length == 0:
            return
        try:
            os.posix_fallocate(self._descriptor, 0, length)
        except OSError as error:
            if error.errno not in NO_PREALLOCATION or length < 0:
                raise _located(error, self.path) from error
            if self.size() < length:
                self.truncate(length)

    def sync(self) -> None:
        if self._descriptor < 0:
            # Python would refuse the number with a ValueError before the system could.
            raise failure(errno.EBADF, self.path)
        try:
            os.fdatasync(self._descriptor)
        except OSError as error:
            raise _located(error, self.path) from error

    def close(self) -> None:
        # The number is forgotten first: the system may hand it to another file the moment it is closed.
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor < 0:
            return
        try:
            os.close(descriptor)
        except OSError as error:
            raise _located(error, self.path) from error


def _after(views: list[memoryview], written: int) -> list[memoryview]:
    """What is left of `views`, which is something, once their first `written` bytes are out."""
    first = 0
    while written >= views[first].nbytes:
        written -= views[first].nbytes
        first += 1
    return [views[first][written:], *views[first + 1 :]]


class RealMapping:
    def __init__(self, view: memoryview) -> None:
        self.view = view

    def release(self) -> None:
        # Unmapping here would fail while slices are about; the mapping is freed with its last reference.
        self.view = released_view()


class RealLock:
    """Holds an flock: the system drops it with the process, so a crash never leaves a stale lock."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


class RealFs:
    """The operating system's file system; paths are its paths."""

    def __init__(self, clock: Clock | None = None, memory_dir: str = PLACE) -> None:
        self._clock = clock or SystemClock()
        self._boot_id = _read_boot_id()
        self._memory = SharedMemory(memory_dir)

    def open(self, path: str, mode: OpenMode) -> File:
        descriptor = os.open(path, _OPEN_FLAGS[mode], NEW_FILE_PERMISSIONS)
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise failure(errno.EISDIR, path)
        return RealFile(path, descriptor)

    def map(self, path: str) -> Mapping:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            if os.fstat(descriptor).st_size == 0:
                return RealMapping(memoryview(b""))
            return RealMapping(memoryview(mmap.mmap(descriptor, 0, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ)))
        except OSError as error:
            raise _located(error, path) from error
        finally:
            os.close(descriptor)

    def rename(self, source: str, target: str) -> None:
        require_one_directory(source, target)
        os.replace(source, target)

    def unlink(self, path: str) -> None:
        os.unlink(path)

    def list(self, directory: str) -> list[str]:
        try:
            return sorted(os.listdir(directory))
        except FileNotFoundError:
            return []

    def exists(self, path: str) -> bool:
        try:
            os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def make_dir(self, path: str) -> None:
        path = os.path.abspath(path)
        missing: list[str] = []
        present = path
        while not self.exists(present):
            missing.append(present)
            present = os.path.dirname(present)
        # A process killed between its mkdir and its sync leaves exactly the deepest directory unsettled. One whose
        # parent is closed to us was made by somebody else, and is not ours to settle.
        with suppress(PermissionError):
            self.sync_dir(os.path.dirname(present))
        for directory in reversed(missing):
            with suppress(FileExistsError):
                os.mkdir(directory, NEW_DIRECTORY_PERMISSIONS)
            self.sync_dir(os.path.dirname(directory))
        if not os.path.isdir(path):
            raise OSError(errno.ENOTDIR, "a file is where a directory should be", path)

    def rename_dir(self, source: str, target: str) -> None:
        require_one_directory(source, target)
        if not os.path.isdir(source):
            # The system would rename a file as readily.
            raise failure(errno.ENOTDIR if self.exists(source) else errno.ENOENT, source)
        os.rename(source, target)
        self.sync_dir(os.path.dirname(os.path.abspath(target)))

    def remove_dir(self, path: str) -> None:
        os.rmdir(path)
        self.sync_dir(os.path.dirname(os.path.abspath(path)))

    def sync_dir(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        except OSError as error:
            raise _located(error, path) from error
        finally:
            os.close(descriptor)

    def lock(self, path: str) -> DirectoryLock:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, NEW_FILE_PERMISSIONS)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(descriptor, LOCK_NOTE_BYTES_MAX, 0).decode("utf-8", "replace").strip()
            os.close(descriptor)
            raise locked(path, holder) from error
        except OSError as error:
            os.close(descriptor)
            raise _located(error, path) from error
        self._sign(descriptor, path)
        return RealLock(descriptor)

    def _sign(self, descriptor: int, path: str) -> None:
        """Leave our name for whoever finds the lock taken."""
        since = datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC).isoformat(timespec="seconds")
        try:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"process {os.getpid()} since {since}\n".encode(), 0)
        except OSError as error:
            # A full disk must not keep the directory from being opened for reading: the lock holds without a name.
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                os.close(descriptor)
                raise _located(error, path) from error

    def boot_id(self) -> str:
        return self._boot_id

    def recall(self, directory: str) -> Sequence[int]:
        return self._memory.recall(directory)

    def memorize(self, directory: str, count: int) -> memoryview | None:
        return self._memory.memorize(directory, count)

    def forget(self, directory: str) -> None:
        self._memory.forget(directory)

    def free_bytes(self, path: str) -> int:
        usage = os.statvfs(path)
        return usage.f_bavail * usage.f_frsize

    def restrict(self, path: str) -> None:
        os.chmod(path, SECRET_FILE_PERMISSIONS)


def is_open_to_others(path: str) -> bool:
    """Whether every user of this machine may look into a directory, or change it."""
    return bool(os.stat(path).st_mode & OTHERS_PERMISSIONS)


def _read_boot_id() -> str:
    """The kernel's id of this boot, or the time it booted; failing both an id that is never seen again.

    Each fallback errs towards "may have lost bytes": a caller then checks more than it needed to, never less.
    """
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as source:
            return source.read().strip()
    except (OSError, ValueError):
        pass
    try:
        with open("/proc/stat", encoding="ascii") as source:
            booted = [line.split()[1] for line in source if line.startswith("btime ")]
        return f"booted-at-{booted[0]}"
    except (OSError, ValueError, IndexError):
        return f"unknown-{os.urandom(16).hex()}"


class ProcessMemory:
    """What the kernel says of the memory of this process. Linux only; elsewhere nothing is known."""

    def __init__(self) -> None:
        try:
            # Open for good: who asks later may not be allowed to open files any more.
            self._source = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._source = -1

    def data_bytes(self) -> int:
        """Private writable memory, which is what RLIMIT_DATA limits; 0 where it is not known."""
        if self._source < 0:
            return 0
        return int(os.pread(self._source, 256, 0).split()[5]) * mmap.PAGESIZE

    def expendable(self) -> None:
        """When the machine runs out of memory, have the kernel end this process before any other."""
        with suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as target:
            target.write("1000")
