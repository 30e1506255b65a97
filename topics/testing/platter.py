"""What a power loss leaves of a file and of a directory: the fault model of `FakeDisk`, as plain values.

A `Blob` is a file without a name. It keeps the bytes that readers see, the bytes that are durable, and the
changes between the two in the order they were made: writes, truncations, allocations. A `Folder` keeps names
the same way: creations, renames and unlinks wait until the directory is synced. No change of one file or
directory is ordered against a change of another, so each draws its own fate:

    lost       no waiting change survives.
    kept       every waiting change survives.
    torn       a prefix survives, drawn for each file and directory; if a write comes next it is cut, at any
               byte or, as often, at a sector border of the file.
    zeroed     names and lengths survive, and a prefix of the writes; where a lost write had made the file
               longer there are zeros, where it had replaced bytes the old ones are back.
    reordered  any subset survives: of names, of truncations and allocations, and of the 512-byte sectors of
               every write. A gap below a surviving sector reads as zeros.

Names obey three rules in every mode. A rename is one change: after it a file has its old name or its new
one, and a name that is replaced shows the old file or the new one, never neither. A rename or unlink whose
file never got that name (its creation was lost) does nothing. A name that survives shows whatever survived
of its file's bytes, which may be nothing.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, assert_never, get_args

SECTOR_BYTES = 512

CrashMode = Literal["lost", "kept", "torn", "zeroed", "reordered"]
CRASH_MODES: tuple[CrashMode, ...] = get_args(CrashMode)


@dataclass(frozen=True, slots=True)
class Write:
    offset: int
    data: bytes

    @property
    def end(self) -> int:
        return self.offset + len(self.data)


@dataclass(frozen=True, slots=True)
class Truncate:
    length: int


@dataclass(frozen=True, slots=True)
class Allocate:
    length: int


Change = Write | Truncate | Allocate


def apply(content: bytearray, change: Change) -> None:
    match change:
        case Write(offset, data):
            _grow(content, change.end)
            content[offset : change.end] = data
        case Truncate(length):
            del content[length:]
            _grow(content, length)
        case Allocate(length):
            _grow(content, length)
        case _:
            assert_never(change)


def _grow(content: bytearray, length: int) -> None:
    if len(content) < length:
        content.extend(bytes(length - len(content)))


class Blob:
    """The bytes of one file: `content` is what readers see, `durable` what a power loss cannot take."""

    def __init__(self, content: bytes | bytearray = b"") -> None:
        self.content = bytearray(content)
        self.durable = bytearray(content)
        self.pending: list[Change] = []
        self._outgrown: list[bytearray] = []

    def change(self, change: Change) -> None:
        self.pending.append(change)
        try:
            apply(self.content, change)
        except BufferError:
            self._leave_mapped_content()
            apply(self.content, change)
        if isinstance(change, Write):
            for content in self._outgrown:
                overlap = max(0, len(content) - change.offset)
                content[change.offset : change.end] = change.data[:overlap]

    def _leave_mapped_content(self) -> None:
        """A mapped bytearray cannot change its length: go on in a copy, and keep showing writes to the mapped one."""
        self._outgrown = [content for content in self._outgrown if _is_mapped(content)]
        self._outgrown.append(self.content)
        self.content = bytearray(self.content)

    def sync(self) -> None:
        for change in self.pending:
            apply(self.durable, change)
        self.pending.clear()

    def survivor(self, mode: CrashMode, rng: random.Random) -> Blob:
        """This file as a power loss leaves it: all of it durable, nothing waiting."""
        content = bytearray(self.durable)
        for change in _surviving_changes(self.pending, mode, rng):
            apply(content, change)
        return Blob(content)


def _is_mapped(content: bytearray) -> bool:
    try:
        content.append(0)
    except BufferError:
        return True
    content.pop()
    return False


def _surviving_changes(pending: list[Change], mode: CrashMode, rng: random.Random) -> Iterator[Change]:
    match mode:
        case "lost":
            return
        case "kept":
            yield from pending
        case "torn":
            kept_count = rng.randint(0, len(pending))
            yield from pending[:kept_count]
            if kept_count < len(pending):
                yield from _cut(pending[kept_count], rng)
        case "zeroed":
            kept_count = rng.randint(0, len(pending))
            yield from pending[:kept_count]
            for change in pending[kept_count:]:
                yield Allocate(change.end) if isinstance(change, Write) else change
        case "reordered":
            for change in pending:
                yield from _scatter(change, rng)
        case _:
            assert_never(mode)


def _cut(change: Change, rng: random.Random) -> Iterator[Write]:
    if not isinstance(change, Write):
        return
    end = change.offset + rng.randrange(len(change.data))
    if rng.random() < 0.5:
        end -= end % SECTOR_BYTES
    if end > change.offset:
        yield Write(change.offset, change.data[: end - change.offset])


def _scatter(change: Change, rng: random.Random) -> Iterator[Change]:
    """Whole, not at all, or for a write some of its sectors; each as likely, so that long writes survive too."""
    fate = rng.choice(("all", "none", "some"))
    if fate == "all":
        yield change
    elif fate == "some" and isinstance(change, Write):
        start = change.offset
        while start < change.end:
            end = min(change.end, start - start % SECTOR_BYTES + SECTOR_BYTES)
            if rng.random() < 0.5:
                yield Write(start, change.data[start - change.offset : end - change.offset])
            start = end


@dataclass(frozen=True, slots=True)
class Create:
    name: str
    blob: Blob


@dataclass(frozen=True, slots=True)
class Rename:
    source: str
    target: str
    blob: Blob


@dataclass(frozen=True, slots=True)
class Unlink:
    name: str
    blob: Blob


NameChange = Create | Rename | Unlink


def apply_name(names: dict[str, Blob], change: NameChange) -> None:
    match change:
        case Create(name, blob):
            names[name] = blob
        case Rename(source, target, blob):
            if names.get(source) is blob:
                del names[source]
                names[target] = blob
        case Unlink(name, blob):
            if names.get(name) is blob:
                del names[name]
        case _:
            assert_never(change)


class Folder:
    """The names of one directory: `names` is what callers see, `durable` what a power loss cannot take."""

    def __init__(self, names: dict[str, Blob] | None = None) -> None:
        self.names = dict(names or {})
        self.durable = dict(self.names)
        self.pending: list[NameChange] = []

    def change(self, change: NameChange) -> None:
        self.pending.append(change)
        apply_name(self.names, change)

    def sync(self) -> None:
        self.durable = dict(self.names)
        self.pending.clear()

    def survivor(self, mode: CrashMode, rng: random.Random) -> Folder:
        """This directory, and what is left of each file in it, as a power loss leaves them."""
        names = dict(self.durable)
        for change in _surviving_name_changes(self.pending, mode, rng):
            apply_name(names, change)
        return Folder({name: blob.survivor(mode, rng) for name, blob in sorted(names.items())})


def _surviving_name_changes(pending: list[NameChange], mode: CrashMode, rng: random.Random) -> list[NameChange]:
    match mode:
        case "lost":
            return []
        case "kept" | "zeroed":
            return pending
        case "torn":
            return pending[: rng.randint(0, len(pending))]
        case "reordered":
            return [change for change in pending if rng.random() < 0.5]
        case _:
            assert_never(mode)
