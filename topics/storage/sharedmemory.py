"""Numbers about a directory in memory that outlives the process: `FileSystem.memorize` of the real file system.

The numbers of a directory are a file in a file system that is in memory (`/dev/shm`), mapped by the process that writes
them. Every user of the machine may create names there, so only a file that no other user can write is trusted. Whatever
fails here means that there are no numbers: the caller then knows less, and nothing wrong.
"""

from __future__ import annotations

import mmap
import os
import stat
from collections.abc import Sequence
from contextlib import suppress

PLACE = "/dev/shm"
"""Where the files are unless told otherwise."""
IN_MEMORY = ("tmpfs", "ramfs")
NUMBER_BYTES = 8
FILES_MAX = 1024
"""Files of one user; beyond that the oldest go. A directory that is not used after a kill leaves its file behind."""
_PERMISSIONS = 0o600


class SharedMemory:
    def __init__(self, place: str = PLACE) -> None:
        self._place = place

    def recall(self, directory: str) -> Sequence[int]:
        """The numbers of a directory, or none."""
        with suppress(OSError):
            descriptor = _open(self._path(directory), os.O_RDONLY)
            try:
                stored = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
            finally:
                os.close(descriptor)
            return memoryview(stored[: len(stored) // NUMBER_BYTES * NUMBER_BYTES]).cast("Q").tolist()
        return ()

    def memorize(self, directory: str, count: int) -> memoryview | None:
        """Map the numbers of a directory; None where that is not possible."""
        length = count * NUMBER_BYTES
        with suppress(OSError):
            if not is_in_memory(self._place):
                # On a disk the numbers could go back in time together with what they are about.
                return None
            descriptor = self._own(self._path(directory), length)
            try:
                # Reserved, so that no assignment meets a full file system, which would end the process.
                os.posix_fallocate(descriptor, 0, length)
                return memoryview(mmap.mmap(descriptor, length)).cast("Q")
            finally:
                os.close(descriptor)
        return None

    def forget(self, directory: str) -> None:
        with suppress(OSError):
            os.unlink(self._path(directory))

    def _path(self, directory: str) -> str:
        """One file for each user and directory, whatever its name is: a copy of the directory is another one."""
        found = os.stat(directory)
        return f"{self._place}/{_prefix()}{found.st_dev:x}-{found.st_ino:x}"

    def _own(self, path: str, length: int) -> int:
        """Open the file at `path` if it has this length, else replace it by an empty one."""
        with suppress(FileNotFoundError):
            descriptor = _open(path, os.O_RDWR)
            if os.fstat(descriptor).st_size == length:
                return descriptor
            os.close(descriptor)
            os.unlink(path)
        self._make_room()
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, _PERMISSIONS)

    def _make_room(self) -> None:
        """Remove the oldest of our files when there are too many; a process that still uses one then proves less."""
        prefix = _prefix()
        with os.scandir(self._place) as entries:
            ours = [(e.stat(follow_symlinks=False).st_ctime_ns, e.path) for e in entries if e.name.startswith(prefix)]
        for _, path in sorted(ours)[: max(0, len(ours) + 1 - FILES_MAX)]:
            os.unlink(path)


def is_in_memory(directory: str) -> bool:
    """Whether the file system of a directory is in memory: what its mount says."""
    device = os.stat(directory).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as source:
        for line in source:
            mount, _, kind = line.partition(" - ")
            if mount.split(" ")[2] == number:
                return kind.startswith(IN_MEMORY)
    return False


def _prefix() -> str:
    return f"topics-{os.geteuid()}-"


def _open(path: str, flags: int) -> int:
    """Open a file that is ours alone; `PermissionError` when another user could have written it."""
    descriptor = os.open(path, flags | os.O_NOFOLLOW)
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077:
        return descriptor
    os.close(descriptor)
    raise PermissionError(path)
