"""The files of the audit log: `audit/audit.jsonl`, and those that were full, named by the first line they hold.

A file that is full is renamed; the next one goes on with the chain. All here blocks, and is for a thread.
"""

from __future__ import annotations

import re
from typing import Final

from topics.core.auditchain import Link, link_of
from topics.limits import MIB
from topics.storage.fs import File, FileSystem

DIRECTORY: Final = "audit"
FILE: Final = "audit.jsonl"
FILE_BYTES_MAX: Final = 64 * MIB
TAIL_BYTES: Final = 1 * MIB
"""More than the longest line."""

_FULL: Final = re.compile(r"audit-(\d{12})\.jsonl")


class AuditFile:
    def __init__(self, fs: FileSystem, data_dir: str, file_bytes_max: int = FILE_BYTES_MAX) -> None:
        self._fs = fs
        self.directory = f"{data_dir}/{DIRECTORY}"
        self.path = f"{self.directory}/{FILE}"
        self._file_bytes_max = file_bytes_max
        self._file: File | None = None
        self._size_bytes = 0
        self._unsynced = b""
        """The lines at the end that no sync has covered."""
        self._first_seq = 0
        """Of the first line in the file; 0 when it has none."""

    def open(self) -> tuple[Link | None, int]:
        """The last line's link, and how many bytes of a line that was cut off by a crash were taken away."""
        if not self._fs.exists(self.path):
            full = self.full_files()
            return (_last_link(self._read(full[-1])), 0) if full else (None, 0)
        self._file = self._fs.open(self.path, "write")
        text = self._file.read_at(max(0, self._file.size() - TAIL_BYTES), TAIL_BYTES)
        whole = text.rfind(b"\n") + 1
        torn_bytes = len(text) - whole
        self._size_bytes = self._file.size() - torn_bytes
        first = link_of(self._file.read_at(0, TAIL_BYTES).partition(b"\n")[0])
        self._first_seq = 0 if first is None else first.seq
        last = _last_link(text[:whole])
        if not whole and (full := self.full_files()):
            # A crash came between the file and its first line.
            last = _last_link(self._read(full[-1]))
        return last, torn_bytes

    def append(self, first_seq: int, lines: list[bytes], sync: bool = True) -> None:
        """Write the lines; with `sync`, return when they and those before them are on the disk. After an error none of
        them counts."""
        if lines and self._size_bytes >= self._file_bytes_max:
            self.sync()
            self._rotate()
        file = self._file
        is_new = file is None
        sync = sync or is_new
        if file is None:
            self._fs.make_dir(self.directory)
            file = self._file = self._fs.open(self.path, "create")
            self._size_bytes = self._first_seq = 0
        text = b"".join(line + b"\n" for line in lines)
        if file.size() > self._size_bytes:
            # What is left of an attempt that failed, or that a crash cut off.
            file.truncate(self._size_bytes)
        if sync:
            # A sync that failed may have lost what was written before it, so all unsynced lines are written again.
            file.write_at(self._size_bytes - len(self._unsynced), [self._unsynced, text])
            file.sync()
        else:
            file.write_at(self._size_bytes, [text])
        if is_new:
            self._fs.sync_dir(self.directory)
        self._unsynced = b"" if sync else self._unsynced + text
        self._size_bytes += len(text)
        self._first_seq = self._first_seq or first_seq

    def sync(self) -> None:
        """Return when all lines are on the disk."""
        if self._unsynced:
            self.append(self._first_seq, [])

    def _rotate(self) -> None:
        assert self._file is not None
        self._file.close()
        self._file = None
        self._fs.rename(self.path, f"{self.directory}/audit-{self._first_seq:012d}.jsonl")
        self._fs.sync_dir(self.directory)
        self._size_bytes = 0

    def close(self) -> None:
        if self._file is not None:
            self.sync()
            self._file.close()
            self._file = None

    # ---- reading

    def full_files(self) -> list[str]:
        """Paths of the files that are full, the oldest first."""
        names = filter(_FULL.fullmatch, self._fs.list(self.directory))
        return [f"{self.directory}/{name}" for name in names]

    def files(self) -> list[str]:
        return [*self.full_files(), *([self.path] if self._fs.exists(self.path) else [])]

    def lines(self, path: str) -> list[bytes]:
        """The lines of one of the files; one that was cut off at the end is no line."""
        return self._read(path).split(b"\n")[:-1]

    def lines_after(self, seq: int) -> list[bytes]:
        """The lines behind a number, over all files."""
        found: list[bytes] = []
        for path in reversed(self.files()):
            lines = self.lines(path)
            behind = [line for line in lines if (link := link_of(line)) is not None and link.seq > seq]
            found = behind + found
            if len(behind) < len(lines):
                break
        return found

    def _read(self, path: str) -> bytes:
        file = self._fs.open(path, "read")
        try:
            return file.read_at(0, file.size())
        finally:
            file.close()


def _last_link(text: bytes) -> Link | None:
    """The link of the last line that is one."""
    for line in reversed(text.split(b"\n")):
        link = link_of(line) if line else None
        if link is not None:
            return link
    return None
