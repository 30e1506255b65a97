"""The file system as a protocol: the only module of the package that opens files.

Everything that touches a disk takes a `FileSystem`. `RealFs` is the operating system's; `topics.testing`
ships fakes that pass the same contract suite (`tests/contract/test_file_system.py`) and can lose, tear,
reorder, fail and watch every call.

What a caller may rely on, and no more:
- `write_at` reaches the operating system (it survives the death of the process), not the disk.
- `sync` makes the file's bytes and length durable; `sync_dir` makes the names in a directory durable
  (creations, renames, unlinks). Nothing else is durable at a power loss; unsynced writes may be lost,
  torn at any byte, zeroed or reordered against each other.
- `rename` replaces atomically.
- Every failure is an `OSError`; a failed `write_at` may have written any part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

Buffer = bytes | bytearray | memoryview
OpenMode = Literal["read", "write", "create"]
"""read: must exist. write: must exist, readable and writable. create: must not exist."""


class File(Protocol):
    path: str

    def write_at(self, offset: int, buffers: Sequence[Buffer]) -> None:
        """Write all buffers one after the other from `offset`."""

    def read_at(self, offset: int, length: int) -> bytes:
        """Up to `length` bytes; fewer only at the end of the file."""

    def size(self) -> int: ...

    def truncate(self, length: int) -> None: ...

    def allocate(self, length: int) -> None:
        """Reserve disk space so that the file is at least `length` bytes long, new bytes zero."""

    def sync(self) -> None: ...

    def close(self) -> None: ...


class Mapping(Protocol):
    """A read-only view of a whole file that sees later `write_at` calls to it.

    `release` drops this handle; the memory goes when the last view cut from it has gone too.
    """

    view: memoryview

    def release(self) -> None: ...


class DirectoryLock(Protocol):
    def release(self) -> None: ...


class FileSystem(Protocol):
    def open(self, path: str, mode: OpenMode) -> File: ...

    def map(self, path: str) -> Mapping: ...

    def rename(self, source: str, target: str) -> None: ...

    def unlink(self, path: str) -> None: ...

    def list(self, directory: str) -> list[str]:
        """The names in a directory, sorted; empty when it does not exist."""

    def exists(self, path: str) -> bool: ...

    def make_dir(self, path: str) -> None:
        """Create a directory and its parents; no error when it exists. Names durable on return."""

    def sync_dir(self, path: str) -> None: ...

    def lock(self, path: str) -> DirectoryLock:
        """Take the exclusive lock file `path`, or raise `DirectoryLocked` naming its holder."""

    def boot_id(self) -> str:
        """Changes whenever written but unsynced bytes may have been lost (a reboot), and only then."""

    def free_bytes(self, path: str) -> int: ...
