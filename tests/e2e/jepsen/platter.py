"""A disk in memory that knows what was synced, so that a power loss can take the rest.

This model shares no code with `topics.testing`: what one of the two overlooks, the other may still see.

- A write, a truncation or an allocation is pending until the file is synced.
- A new, renamed or removed name is pending until its directory is synced.
- `lose_power` keeps a part of what is pending. Mode "torn" keeps the first writes of a file and a piece of the next,
  "scattered" keeps any of their 512-byte sectors, "dropped" keeps nothing. A directory keeps its first changes, as on a
  file system with a journal.
"""

from __future__ import annotations

import random
import stat
import threading
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

LossMode = Literal["torn", "scattered", "dropped"]
LOSS_MODES: tuple[LossMode, ...] = ("torn", "scattered", "dropped")
SECTOR_BYTES = 512
FILE_MODE = stat.S_IFREG | 0o644
DIRECTORY_MODE = stat.S_IFDIR | 0o755


@dataclass(frozen=True, slots=True)
class Write:
    """Bytes written at an offset; with `size`, the file got this length instead."""

    offset: int = 0
    data: bytes = b""
    size: int | None = None

    def apply(self, content: bytearray) -> None:
        if self.size is not None:
            del content[self.size :]
            content.extend(bytes(self.size - len(content)))
            return
        end = self.offset + len(self.data)
        content.extend(bytes(max(0, end - len(content))))
        content[self.offset : end] = self.data

    def sectors(self) -> list[Write]:
        """The parts of it that a disk writes at once."""
        if self.size is not None:
            return [self]
        cuts = range(self.offset - self.offset % SECTOR_BYTES, self.offset + len(self.data), SECTOR_BYTES)
        bounds = [max(cut, self.offset) for cut in cuts] + [self.offset + len(self.data)]
        return [Write(first, self.data[first - self.offset : last - self.offset]) for first, last in pairwise(bounds)]


@dataclass(slots=True, eq=False)
class File:
    mode: int = FILE_MODE
    content: bytearray = field(default_factory=bytearray)
    durable: bytearray = field(default_factory=bytearray)
    pending: list[Write] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def write(self, write: Write) -> None:
        with self.lock:
            write.apply(self.content)
            self.pending.append(write)

    def pending_count(self) -> int:
        with self.lock:
            return len(self.pending)

    def sync(self, count: int) -> None:
        """Make the first `count` pending writes durable: those made before the sync began."""
        with self.lock:
            done, self.pending = self.pending[:count], self.pending[count:]
            for write in done:
                write.apply(self.durable)

    def lose(self, mode: LossMode, chance: random.Random) -> None:
        for write in _survivors(self.pending, mode, chance):
            write.apply(self.durable)
        self.pending = []
        self.content = bytearray(self.durable)


def _survivors(pending: list[Write], mode: LossMode, chance: random.Random) -> list[Write]:
    if mode == "dropped" or not pending:
        return []
    if mode == "scattered":
        return [sector for write in pending for sector in write.sectors() if chance.random() < 0.5]
    kept = chance.randint(0, len(pending))
    torn = pending[kept : kept + 1]
    part = [Write(one.offset, one.data[: chance.randint(0, len(one.data))]) for one in torn if one.size is None]
    return [*pending[:kept], *part]


Names = dict[str, "File | Directory"]


@dataclass(slots=True, eq=False)
class Directory:
    mode: int = DIRECTORY_MODE
    names: Names = field(default_factory=dict)
    states: list[Names] = field(default_factory=lambda: [{}])
    """Its names when it was synced last, and then behind each change since."""

    def changed(self) -> None:
        self.states.append(dict(self.names))

    def sync(self, count: int) -> None:
        """Make the first `count` changes durable."""
        self.states = self.states[count:]

    def lose(self, mode: LossMode, chance: random.Random) -> None:
        kept = 0 if mode == "dropped" else chance.randrange(len(self.states))
        self.names = self.states[kept]
        self.states = [dict(self.names)]


@dataclass(slots=True)
class Platter:
    root: Directory = field(default_factory=Directory)

    def used_bytes(self) -> int:
        return sum(len(file.content) for file in _files(self.root))

    def lose_power(self, mode: LossMode, chance: random.Random) -> None:
        """Drop what is pending, as the mode says."""
        _lose(self.root, mode, chance)


def _files(directory: Directory) -> list[File]:
    found: list[File] = []
    for entry in list(directory.names.values()):
        found += _files(entry) if isinstance(entry, Directory) else [entry]
    return found


def _lose(directory: Directory, mode: LossMode, chance: random.Random) -> None:
    directory.lose(mode, chance)
    for _, entry in sorted(directory.names.items()):
        if isinstance(entry, Directory):
            _lose(entry, mode, chance)
        else:
            entry.lose(mode, chance)
