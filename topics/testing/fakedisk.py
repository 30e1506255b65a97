"""FakeDisk: a file system in memory that knows exactly what a power loss may take.

The fault model:
- A file has durable bytes and an ordered list of waiting changes; `sync` applies that file's. A directory has
  durable names and an ordered list of waiting creations, renames and unlinks; `sync_dir` applies that
  directory's. Reads, lists and mappings see everything at once. What survives of the waiting changes is
  drawn by the crash mode, defined in `platter.py`.
- `crash(mode)` is a power loss. It returns the disk as the next boot finds it: all that is left is durable,
  no lock is held, `boot_id` is new and all numbers of `memorize` are gone. `kill()` is the death of the process
  alone: it returns a disk where all that was written is there and what waited still waits, no lock is held,
  `boot_id` and the memorized numbers are the same.
- `detach(mode)` is a disk that was taken from under a process and came back, on a machine that kept running: it
  loses as in a power loss, but `boot_id` and the memorized numbers are the same. With `forgetful` the numbers
  of `kill` and `detach` are gone, as those of a container are that was made again.
- Either way this disk is off: its handles, locks and names answer EIO, its mappings are dead (slices cut from
  them before keep their bytes, as nothing can take a memoryview back). A disk that is off can be crashed
  again, so that one moment yields as many outcomes as a test wants.
- `make_dir`, `rename_dir` and `remove_dir` are durable on return, as the protocol promises; directories are never lost.
- With `capacity_bytes`, a write that would make the visible files longer than that in sum writes what fits and
  fails with ENOSPC; allocate and truncate fail whole. Bytes inside a file's length are its own: rewriting
  them never fails, and there are no holes.

Everything is drawn from `seed` (or the generator handed to `crash`): the same calls give the same disk.
"""

from __future__ import annotations

import copy
import errno
import posixpath
import random
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from topics.storage.fs import (
    Buffer,
    DirectoryLock,
    File,
    Mapping,
    OpenMode,
    failure,
    locked,
    released_view,
    require_one_directory,
)
from topics.testing.platter import Allocate, Blob, CrashMode, Create, Folder, Rename, Truncate, Unlink, Write

UNLIMITED_FREE_BYTES = 1 << 40
"""What a disk without a capacity says is free."""


class FakeDisk:
    def __init__(self, seed: int = 0, capacity_bytes: int | None = None) -> None:
        self._rng = random.Random(seed)
        self._capacity_bytes = capacity_bytes
        self._folders: dict[str, Folder] = {"/": Folder()}
        self._boot_number = 0
        self._locks: set[str] = set()
        self._memory: dict[str, memoryview] = {}
        self._mappings: weakref.WeakSet[FakeMapping] = weakref.WeakSet()
        self._off_because = ""
        # Several threads may share a disk, and a crash must see each call done or not begun.
        self._mutex = threading.RLock()

    @contextmanager
    def powered(self, path: str) -> Iterator[None]:
        """Run one call: alone, and only while the disk is on."""
        with self._mutex:
            if self._off_because:
                raise OSError(errno.EIO, f"this disk is off after {self._off_because}; use the one it returned", path)
            yield

    # Names.

    def open(self, path: str, mode: OpenMode) -> File:
        with self.powered(path):
            folder, name = self._locate(path)
            if mode == "create":
                if self._is_taken(path):
                    raise failure(errno.EEXIST, path)
                folder.change(Create(name, Blob()))
            return FakeFile(self, path, self._blob(path), writable=mode != "read")

    def map(self, path: str) -> Mapping:
        with self.powered(path):
            mapping = FakeMapping(memoryview(self._blob(path).content).toreadonly())
            self._mappings.add(mapping)
            return mapping

    def rename(self, source: str, target: str) -> None:
        with self.powered(source):
            require_one_directory(source, target)
            folder, source_name = self._locate(source)
            blob = self._blob(source)
            if _key(target) in self._folders:
                raise failure(errno.EISDIR, target)
            if _key(source) != _key(target):
                folder.change(Rename(source_name, posixpath.basename(_key(target)), blob))

    def unlink(self, path: str) -> None:
        with self.powered(path):
            folder, name = self._locate(path)
            folder.change(Unlink(name, self._blob(path)))

    def list(self, directory: str) -> list[str]:
        with self.powered(directory):
            key = _key(directory)
            if key not in self._folders:
                if self._is_taken(directory):
                    raise failure(errno.ENOTDIR, directory)
                return []
            subdirectories = [posixpath.basename(path) for path in self._folders if posixpath.dirname(path) == key]
            return sorted([*self._folders[key].names, *(name for name in subdirectories if name)])

    def exists(self, path: str) -> bool:
        with self.powered(path):
            return self._is_taken(path)

    def make_dir(self, path: str) -> None:
        with self.powered(path):
            key = _key(path)
            lineage = [key]
            while key != "/":
                key = posixpath.dirname(key)
                lineage.append(key)
            for key in reversed(lineage):
                if key not in self._folders and self._is_taken(key):
                    raise failure(errno.ENOTDIR, path)
                self._folders.setdefault(key, Folder())

    def rename_dir(self, source: str, target: str) -> None:
        with self.powered(source):
            require_one_directory(source, target)
            old, new = self._folder_key(source), _key(target)
            if old == new:
                return
            if new in self._folders:
                self._require_empty(new)
            elif self._is_taken(target):
                raise failure(errno.ENOTDIR, target)
            inside = [key for key in self._folders if key == old or key.startswith(f"{old}/")]
            moved = {new + key.removeprefix(old): self._folders.pop(key) for key in inside}
            self._folders.update(moved)
            for key in [key for key in self._memory if key == old or key.startswith(f"{old}/")]:
                self._memory[new + key.removeprefix(old)] = self._memory.pop(key)

    def remove_dir(self, path: str) -> None:
        with self.powered(path):
            key = self._folder_key(path)
            self._require_empty(key)
            del self._folders[key]

    def sync_dir(self, path: str) -> None:
        with self.powered(path):
            self._folders[self._folder_key(path)].sync()

    # The machine.

    def lock(self, path: str) -> DirectoryLock:
        with self.powered(path):
            folder, name = self._locate(path)
            if _key(path) in self._locks:
                raise locked(path, bytes(self._blob(path).content).decode().strip())
            if not self._is_taken(path):
                folder.change(Create(name, Blob()))
            blob = self._blob(path)
            blob.change(Truncate(0))
            blob.change(Write(0, f"a process on {self.boot_id()}\n".encode()))
            self._locks.add(_key(path))
            return FakeLock(self, path)

    def unlock(self, path: str) -> None:
        with self._mutex:
            self._locks.discard(_key(path))

    def boot_id(self) -> str:
        with self.powered("/"):
            return f"fake-boot-{self._boot_number}"

    def recall(self, directory: str) -> Sequence[int]:
        with self.powered(directory):
            return self._memory.get(_key(directory), _no_numbers()).tolist()

    def memorize(self, directory: str, count: int) -> memoryview | None:
        with self.powered(directory):
            kept = self._memory.get(_key(directory), _no_numbers())
            if len(kept) != count:
                kept = self._memory[_key(directory)] = memoryview(bytearray(8 * count)).cast("Q")
            return kept

    def forget(self, directory: str) -> None:
        with self.powered(directory):
            self._memory.pop(_key(directory), None)

    def restrict(self, path: str) -> None:
        with self.powered(path):
            if not self._is_taken(path):
                raise failure(errno.ENOENT, path)

    def free_bytes(self, path: str) -> int:
        with self.powered(path):
            if not self._is_taken(path):
                raise failure(errno.ENOENT, path)
            if self._capacity_bytes is None:
                return UNLIMITED_FREE_BYTES
            used_bytes = sum(len(blob.content) for folder in self._folders.values() for blob in folder.names.values())
            return max(0, self._capacity_bytes - used_bytes)

    def set_capacity(self, capacity_bytes: int | None) -> None:
        """Fill the disk up, or make room on it, in mid-flight."""
        with self._mutex:
            self._capacity_bytes = capacity_bytes

    # Death.

    def crash(self, mode: CrashMode, rng: random.Random | None = None) -> FakeDisk:
        """Cut the power; the disk as the next boot finds it. Off already, it draws another outcome of that moment."""
        rng = rng or self._rng
        with self._mutex:
            self._turn_off(f"crash({mode!r})")
            folders = {path: folder.survivor(mode, rng) for path, folder in sorted(self._folders.items())}
            return self._successor(folders, self._boot_number + 1, rng)

    def kill(self, forgetful: bool = False) -> FakeDisk:
        """Kill the process that used this disk; the disk as the next process finds it."""
        with self._mutex:
            self._turn_off("kill()")
            disk = self._successor(copy.deepcopy(self._folders), self._boot_number, self._rng)
            return disk if forgetful else self._remind(disk)

    def detach(self, mode: CrashMode, rng: random.Random | None = None, forgetful: bool = False) -> FakeDisk:
        """Take the disk from a machine that keeps running; the disk as it is when it is attached again."""
        with self._mutex:
            disk = self.crash(mode, rng)
            disk._boot_number = self._boot_number
            return disk if forgetful else self._remind(disk)

    def fork(self) -> FakeDisk:
        """Another disk in the same state, to be crashed or killed while this one goes on."""
        with self._mutex:
            return self._remind(self._successor(copy.deepcopy(self._folders), self._boot_number, random.Random(0)))

    def _remind(self, disk: FakeDisk) -> FakeDisk:
        """Give another disk a copy of what was memorized about this one."""
        disk._memory = {path: memoryview(bytearray(kept)).cast("Q") for path, kept in self._memory.items()}
        return disk

    def _turn_off(self, reason: str) -> None:
        self._off_because = self._off_because or reason
        self._locks.clear()
        for mapping in self._mappings:
            mapping.release()

    def _successor(self, folders: dict[str, Folder], boot_number: int, rng: random.Random) -> FakeDisk:
        disk = FakeDisk(rng.getrandbits(64), self._capacity_bytes)
        disk._folders = folders
        disk._boot_number = boot_number
        return disk

    # What tests look at and do by hand.

    def contents(self) -> dict[str, bytes]:
        """Every file by path, as readers see it: two disks hold the same if these are equal."""
        with self._mutex:
            return {
                posixpath.join(path, name): bytes(blob.content)
                for path, folder in sorted(self._folders.items())
                for name, blob in sorted(folder.names.items())
            }

    def forget_pending(self, path: str) -> None:
        """What a kernel does after a failed sync: readers still see the bytes, no later sync will write them."""
        with self._mutex:
            self._blob(path).pending.clear()

    # Looking up.

    def _locate(self, path: str) -> tuple[Folder, str]:
        directory, name = posixpath.split(_key(path))
        if directory not in self._folders:
            raise failure(errno.ENOTDIR if self._is_taken(directory) else errno.ENOENT, path)
        return self._folders[directory], name

    def _folder_key(self, path: str) -> str:
        if _key(path) not in self._folders:
            raise failure(errno.ENOTDIR if self._is_taken(path) else errno.ENOENT, path)
        return _key(path)

    def _require_empty(self, key: str) -> None:
        if self._folders[key].names or any(other.startswith(f"{key}/") for other in self._folders):
            raise failure(errno.ENOTEMPTY, key)

    def _blob(self, path: str) -> Blob:
        if _key(path) in self._folders:
            raise failure(errno.EISDIR, path)
        folder, name = self._locate(path)
        if name not in folder.names:
            raise failure(errno.ENOENT, path)
        return folder.names[name]

    def _is_taken(self, path: str) -> bool:
        key = _key(path)
        directory, name = posixpath.split(key)
        return key in self._folders or (directory in self._folders and name in self._folders[directory].names)


def _no_numbers() -> memoryview:
    return memoryview(b"").cast("Q")


def _key(path: str) -> str:
    """One spelling per path; a relative one starts at the root."""
    return posixpath.normpath(posixpath.join("/", path))


class FakeFile:
    def __init__(self, disk: FakeDisk, path: str, blob: Blob, *, writable: bool) -> None:
        self.path = path
        self._disk = disk
        self._blob = blob
        self._writable = writable
        self._open = True

    @contextmanager
    def _using(self, *, to_write: bool = False) -> Iterator[Blob]:
        with self._disk.powered(self.path):
            if not self._open or (to_write and not self._writable):
                raise failure(errno.EBADF, self.path)
            yield self._blob

    def write_at(self, offset: int, buffers: Sequence[Buffer]) -> None:
        with self._using(to_write=True) as blob:
            data = b"".join(buffers)
            if offset < 0:
                raise failure(errno.EINVAL, self.path)
            missing_bytes = self._missing_bytes(offset + len(data)) if data else 0
            fitting = data[: max(0, len(data) - missing_bytes)]
            if fitting:
                blob.change(Write(offset, fitting))
            if missing_bytes:
                raise failure(errno.ENOSPC, self.path)

    def read_at(self, offset: int, length: int) -> bytes:
        with self._using() as blob:
            if offset < 0 or length < 0:
                raise failure(errno.EINVAL, self.path)
            return bytes(blob.content[offset : offset + length])

    def size(self) -> int:
        with self._using() as blob:
            return len(blob.content)

    def truncate(self, length: int) -> None:
        with self._using(to_write=True) as blob:
            self._require_room(length)
            if length != len(blob.content):
                blob.change(Truncate(length))

    def allocate(self, length: int) -> None:
        with self._using(to_write=True) as blob:
            self._require_room(length)
            if length > len(blob.content):
                blob.change(Allocate(length))

    def sync(self) -> None:
        with self._using() as blob:
            blob.sync()

    def close(self) -> None:
        self._open = False

    def _missing_bytes(self, length: int) -> int:
        """How many bytes the disk lacks for this file to be `length` long."""
        growth_bytes = length - len(self._blob.content)
        return max(0, growth_bytes - self._disk.free_bytes("/")) if growth_bytes > 0 else 0

    def _require_room(self, length: int) -> None:
        if length < 0:
            raise failure(errno.EINVAL, self.path)
        if self._missing_bytes(length):
            raise failure(errno.ENOSPC, self.path)


class FakeMapping:
    def __init__(self, view: memoryview) -> None:
        self.view = view

    def release(self) -> None:
        self.view = released_view()


class FakeLock:
    def __init__(self, disk: FakeDisk, path: str) -> None:
        self._disk = disk
        self._path = path
        self._held = True

    def release(self) -> None:
        if self._held:
            self._held = False
            self._disk.unlock(self._path)
