"""A mounted disk that loses power on demand: `python -m tests.e2e.jepsen.powerdisk MOUNTPOINT`.

Commands come as JSON lines on stdin, and each is answered by one line on stdout. See `Harness` for what they do.
Unmounting ends the current mount only: the disk stays in memory until stdin ends.
"""

from __future__ import annotations

import errno
import json
import os
import random
import stat
import sys
import threading
import time
from typing import Any

import mfusepy

from tests.e2e.jepsen.platter import SECTOR_BYTES, Directory, File, Platter, Write

BLOCK_BYTES = 4096
DISK_BYTES = 4 << 30


class PowerDisk(mfusepy.Operations):
    """FUSE operations on a platter, with faults."""

    use_ns = True

    def __init__(self) -> None:
        self.platter = Platter()
        self.detached = False
        """Every call fails, as on a disk that was pulled out."""
        self.capacity_bytes = DISK_BYTES
        self.slow_prefix = ""
        self.slow_s = 0.0
        self.lies = False
        """Syncs answer without making anything durable."""
        self.syncs = 0
        self._open: dict[int, File] = {}
        self._last_handle = 0
        self._names = threading.Lock()

    def init(self, path: str) -> None:
        """Called when the mount can be used."""
        self.say("mount")

    def say(self, done: str) -> None:
        """Answer a command."""
        fields = {"done": done, "syncs": self.syncs, "used_bytes": self.platter.used_bytes()}
        sys.stdout.write(json.dumps(fields) + "\n")
        sys.stdout.flush()

    # ---- finding things

    def _entry(self, path: str) -> File | Directory:
        if self.detached:
            raise mfusepy.FuseOSError(errno.EIO)
        entry: File | Directory = self.platter.root
        for name in path.split("/"):
            if name:
                if not isinstance(entry, Directory):
                    raise mfusepy.FuseOSError(errno.ENOTDIR)
                found = entry.names.get(name)
                if found is None:
                    raise mfusepy.FuseOSError(errno.ENOENT)
                entry = found
        return entry

    def _directory(self, path: str) -> Directory:
        entry = self._entry(path)
        if not isinstance(entry, Directory):
            raise mfusepy.FuseOSError(errno.ENOTDIR)
        return entry

    def _file(self, path: str, handle: int | None) -> File:
        if self.detached:
            raise mfusepy.FuseOSError(errno.EIO)
        file = self._open.get(handle) if handle else None
        entry = file if file is not None else self._entry(path)
        if not isinstance(entry, File):
            raise mfusepy.FuseOSError(errno.EISDIR)
        return entry

    def _parent(self, path: str) -> tuple[Directory, str]:
        head, _, name = path.rpartition("/")
        return self._directory(head), name

    def _delay(self, path: str) -> None:
        if self.slow_s and path.startswith(self.slow_prefix):
            time.sleep(self.slow_s)

    def _require_room(self, more: int) -> None:
        if more > 0 and self.platter.used_bytes() + more > self.capacity_bytes:
            raise mfusepy.FuseOSError(errno.ENOSPC)

    # ---- files

    def _handle(self, file: File) -> int:
        self._last_handle += 1
        self._open[self._last_handle] = file
        return self._last_handle

    def create(self, path: str, mode: int, fi: Any = None) -> int:
        with self._names:
            parent, name = self._parent(path)
            file = File(stat.S_IFREG | (mode & 0o777))
            parent.names[name] = file
            parent.changed()
            return self._handle(file)

    def open(self, path: str, flags: int) -> int:
        with self._names:
            file = self._file(path, None)
            if flags & os.O_TRUNC:
                file.write(Write(size=0))
            return self._handle(file)

    def release(self, path: str, fh: int) -> int:
        self._open.pop(fh, None)
        return 0

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        return bytes(self._file(path, fh).content[offset : offset + size])

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        self._delay(path)
        file = self._file(path, fh)
        self._require_room(offset + len(data) - len(file.content))
        file.write(Write(offset, bytes(data)))
        return len(data)

    def truncate(self, path: str, length: int, fh: int | None = None) -> int:
        file = self._file(path, fh)
        self._require_room(length - len(file.content))
        file.write(Write(size=length))
        return 0

    def fallocate(self, path: str, mode: int, offset: int, size: int, fh: int) -> int:
        if mode:
            raise mfusepy.FuseOSError(errno.EOPNOTSUPP)
        file = self._file(path, fh)
        if offset + size > len(file.content):
            self._require_room(offset + size - len(file.content))
            file.write(Write(size=offset + size))
        return 0

    def fsync(self, path: str, datasync: int, fh: int) -> int:
        file = self._file(path, fh)
        count = file.pending_count()
        self._delay(path)
        if self.detached:
            raise mfusepy.FuseOSError(errno.EIO)
        self.syncs += 1
        if not self.lies:
            file.sync(count)
        return 0

    # ---- names

    def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:
        entry = self._file(path, fh) if fh and fh in self._open else self._entry(path)
        size = len(entry.content) if isinstance(entry, File) else 0
        links = 1 if isinstance(entry, File) else 2
        blocks = -(-size // SECTOR_BYTES)
        return {"st_mode": entry.mode, "st_nlink": links, "st_size": size, "st_blocks": blocks, "st_ino": id(entry)}

    def readdir(self, path: str, fh: int) -> list[str]:
        return [".", "..", *self._directory(path).names]

    def mkdir(self, path: str, mode: int) -> int:
        with self._names:
            parent, name = self._parent(path)
            if name in parent.names:
                raise mfusepy.FuseOSError(errno.EEXIST)
            parent.names[name] = Directory(stat.S_IFDIR | (mode & 0o777))
            parent.changed()
            return 0

    def rmdir(self, path: str) -> int:
        with self._names:
            if self._directory(path).names:
                raise mfusepy.FuseOSError(errno.ENOTEMPTY)
            return self._forget(path)

    def unlink(self, path: str) -> int:
        with self._names:
            return self._forget(path)

    def _forget(self, path: str) -> int:
        parent, name = self._parent(path)
        if parent.names.pop(name, None) is None:
            raise mfusepy.FuseOSError(errno.ENOENT)
        parent.changed()
        return 0

    def rename(self, old: str, new: str, flags: int = 0) -> int:
        with self._names:
            (source, name), (target, new_name) = self._parent(old), self._parent(new)
            entry = self._entry(old)
            del source.names[name]
            target.names[new_name] = entry
            source.changed()
            if target is not source:
                target.changed()
            return 0

    def fsyncdir(self, path: str, datasync: int, fh: int) -> int:
        with self._names:
            directory = self._directory(path)
            count = len(directory.states) - 1
        self._delay(path)
        if self.detached:
            raise mfusepy.FuseOSError(errno.EIO)
        self.syncs += 1
        if not self.lies:
            with self._names:
                directory.sync(count)
        return 0

    def chmod(self, path: str, mode: int) -> int:
        entry = self._entry(path)
        entry.mode = stat.S_IFMT(entry.mode) | (mode & 0o777)
        return 0

    def chown(self, path: str, uid: int, gid: int) -> int:
        self._entry(path)
        return 0

    def utimens(self, path: str, times: Any = None) -> int:
        self._entry(path)
        return 0

    def access(self, path: str, amode: int) -> int:
        self._entry(path)
        return 0

    def flush(self, path: str, fh: int) -> int:
        return 0

    def statfs(self, path: str) -> dict[str, int]:
        free = max(0, self.capacity_bytes - self.platter.used_bytes()) // BLOCK_BYTES
        blocks = DISK_BYTES // BLOCK_BYTES
        return {"f_bsize": BLOCK_BYTES, "f_frsize": BLOCK_BYTES, "f_blocks": blocks, "f_bfree": free, "f_bavail": free}


class Harness:
    """The commands: what each does to the disk."""

    def __init__(self, disk: PowerDisk) -> None:
        self._disk = disk
        self.mounted = threading.Event()
        self.ended = False

    def serve(self) -> None:
        for line in sys.stdin:
            asked = json.loads(line)
            self._do(asked.pop("do"), asked)
        self.ended = True
        self.mounted.set()

    def _do(self, name: str, asked: dict[str, Any]) -> None:
        disk = self._disk
        if name == "mount":
            self.mounted.set()
            return
        if name == "detach":
            disk.detached = True
        elif name == "lose_power":
            disk.platter.lose_power(asked["mode"], random.Random(asked["seed"]))
            disk.detached = False
        elif name == "slow":
            disk.slow_prefix, disk.slow_s = asked["prefix"], asked["seconds"]
        elif name == "fill":
            disk.capacity_bytes = disk.platter.used_bytes() + asked["room_bytes"]
        elif name == "empty":
            disk.capacity_bytes = DISK_BYTES
        elif name == "lie":
            disk.lies = True
        else:
            raise AssertionError(f"unknown command {name}")
        disk.say(name)


def main(mountpoint: str) -> None:
    disk = PowerDisk()
    harness = Harness(disk)
    threading.Thread(target=harness.serve, daemon=True).start()
    while True:
        harness.mounted.wait()
        harness.mounted.clear()
        if harness.ended:
            return
        mfusepy.FUSE(disk, mountpoint, foreground=True, fsname="powerdisk", hard_remove=True)


if __name__ == "__main__":
    main(sys.argv[1])
