"""Keyed, incremental snapshots: what changed is written, never what is merely stored.

A snapshot is a map from keys to values, kept as a chain of files in one directory:

    000000000007.base    the whole map as of snapshot 7
    000000000008.delta   what snapshot 8 changed
    000000000009.delta   …

    FILE_HEADER  salt 0; msgpack {version, number, previous, salt, created_ms}; previous is 0 where a chain begins.
                 The salt stands in position and mark too, so that the rest can be read when this is damaged
    PUT          position = entry number, counted from 0; u32 length of the key, key, value
    REMOVE       position = entry number; key
    FILE_END     msgpack {number, previous, puts, removes}

Each file is a draft until it is durable, so a snapshot exists whole or not at all. When the deltas outweigh the base
they follow, the chain is read back and written as one base, and what it replaces is unlinked once it is durable; since
that happens each time the deltas have doubled what there is to read, its cost is a constant factor of what changed.

Loading takes the newest base and every delta behind it. A number missing between them, a bad frame or an end that does
not count right is `Damaged`; a format of another version is `NotUnderstood`, also for a salvage. That the newest delta
itself is missing cannot be seen here: whoever relies on a snapshot remembers its number.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

import msgspec

from topics.clock import Clock
from topics.errors import Damaged, NotUnderstood
from topics.storage import frame
from topics.storage.draft import TEMP_SUFFIX, Draft
from topics.storage.frame import OTHER_VERSION, Frame, Kind
from topics.storage.fs import FileSystem

FORMAT_VERSION = 1
BASE_SUFFIX = ".base"
DELTA_SUFFIX = ".delta"

BASE_BYTES_MIN = 1 << 20
"""Deltas below this are never merged for their size: reading them back costs next to nothing."""
DELTAS_MAX = 1000
"""So many deltas are merged whatever their size."""

_KEY_LEN = struct.Struct("<I")

OnDamage = Callable[[Damaged], None]


class SnapshotHeader(msgspec.Struct, frozen=True):
    version: int
    number: int
    previous: int
    salt: int
    created_ms: int


class SnapshotEnd(msgspec.Struct, frozen=True):
    number: int
    previous: int
    puts: int
    removes: int


_header_decoder = msgspec.msgpack.Decoder(SnapshotHeader)
_end_decoder = msgspec.msgpack.Decoder(SnapshotEnd)


@dataclass(frozen=True, slots=True, order=True)
class _File:
    number: int
    is_delta: bool
    """A base sorts before the delta of its number, which it includes."""

    @property
    def name(self) -> str:
        return f"{self.number:012d}{DELTA_SUFFIX if self.is_delta else BASE_SUFFIX}"


@dataclass(slots=True)
class _Contents:
    """What one file says."""

    length_bytes: int
    puts: dict[bytes, bytes] = field(default_factory=dict)
    removes: list[bytes] = field(default_factory=list)


class SnapshotStore:
    """`load` (or `salvage`) once, then `write` as often as wanted, from one thread at a time."""

    def __init__(self, fs: FileSystem, directory: str, clock: Clock, salt_source: Callable[[], int]) -> None:
        self.number = 0
        """The newest snapshot; 0 when there is none."""
        self.sure: set[bytes] | None = None
        """After a salvage that found damage: the keys of which the newest entry was read, a removal counting as one.
        None when that is true of all."""
        self.held: frozenset[str] = frozenset()
        """Files that a backup is copying: they are not swept."""
        self._fs = fs
        self._directory = directory
        self._clock = clock
        self._draw_salt = salt_source
        self._base_bytes = 0
        self._delta_bytes = 0
        self._deltas = 0

    @property
    def size_bytes(self) -> int:
        """Of the newest one: its base and what was written on top."""
        return self._base_bytes + self._delta_bytes

    def load(self) -> dict[bytes, bytes]:
        """The newest snapshot. Raises `Damaged` naming file and offset when part of it is missing or damaged."""
        self._fs.make_dir(self._directory)
        return self._load(None)

    def salvage(self) -> tuple[dict[bytes, bytes], list[Damaged]]:
        """Whatever can be read, and what could not be; follow it with `reset`."""
        damages: list[Damaged] = []

        def on_damage(damage: Damaged) -> None:
            damages.append(damage)
            self.sure = set()

        state = self._load(on_damage)
        return state, damages

    def settle(self) -> None:
        """Make what was loaded durable: a process may have died between giving a file its name and syncing that.

        Before anything relies on the number of the snapshot.
        """
        self._fs.sync_dir(self._directory)

    def write(self, puts: Mapping[bytes, bytes], removes: Collection[bytes] = ()) -> int:
        """Make a change of the map durable as one snapshot; its number.

        When merging the chain fails afterwards, that error is raised although `number` has advanced.
        """
        if not puts and not removes:
            return self.number
        number = self.number + 1
        self._delta_bytes += self._write_file(_File(number, is_delta=True), self.number, puts, removes)
        self._deltas += 1
        self.number = number
        outweighed = self._delta_bytes > max(self._base_bytes, BASE_BYTES_MIN)
        if outweighed or self._deltas > DELTAS_MAX:
            self._write_base(number, self._load(None))
        return number

    def reset(self, state: Mapping[bytes, bytes]) -> int:
        """Make `state` the whole map, whatever is stored; the number of the snapshot that says so."""
        newest = max([file.number for file in self._files()], default=0)
        self._write_base(max(newest, self.number) + 1, state)
        return self.number

    def sweep(self) -> list[str]:
        """Unlink drafts and files that a newer base replaces; the names removed."""
        needed = {*self.chain(), *self.held}
        names = [
            name
            for name in self._fs.list(self._directory)
            if name.endswith((TEMP_SUFFIX, BASE_SUFFIX, DELTA_SUFFIX)) and name not in needed
        ]
        for name in names:
            self._fs.unlink(f"{self._directory}/{name}")
        if names:
            self._fs.sync_dir(self._directory)
        return names

    def chain(self) -> list[str]:
        """The names of the files that make up the newest snapshot."""
        return [file.name for file in self._chain()]

    # Writing

    def _write_file(self, file: _File, previous: int, puts: Mapping[bytes, bytes], removes: Collection[bytes]) -> int:
        """Write one file durably; its length."""
        salt = self._draw_salt()
        header = SnapshotHeader(FORMAT_VERSION, file.number, previous, salt, self._clock.now_ms())
        end = SnapshotEnd(file.number, previous, len(puts), len(removes))
        with Draft(self._fs, f"{self._directory}/{file.name}") as draft:
            draft.append(frame.build(Kind.FILE_HEADER, 0, salt, salt, [msgspec.msgpack.encode(header)], 0))
            for entry_no, (kind, body) in enumerate(_entries(puts, removes)):
                draft.append(frame.build(kind, 0, entry_no, 0, body, salt))
            draft.append(frame.build(Kind.FILE_END, 0, 0, 0, [msgspec.msgpack.encode(end)], salt))
            draft.seal()
            draft.publish()
        self._fs.sync_dir(self._directory)
        return draft.length_bytes

    def _write_base(self, number: int, state: Mapping[bytes, bytes]) -> None:
        self._base_bytes = self._write_file(_File(number, is_delta=False), 0, state, ())
        self._delta_bytes = 0
        self._deltas = 0
        self.number = number
        self.sweep()

    # Reading

    def _files(self) -> list[_File]:
        files = []
        for name in self._fs.list(self._directory):
            stem, _, suffix = name.partition(".")
            if stem.isdecimal() and "." + suffix in (BASE_SUFFIX, DELTA_SUFFIX):
                files.append(_File(int(stem), is_delta="." + suffix == DELTA_SUFFIX))
        return sorted(files)

    def _chain(self) -> list[_File]:
        """The newest base and the deltas behind it."""
        files = self._files()
        base = max((file.number for file in files if not file.is_delta), default=0)
        return [file for file in files if file.number > base or (not file.is_delta and file.number == base)]

    def _load(self, on_damage: OnDamage | None) -> dict[bytes, bytes]:
        state: dict[bytes, bytes] = {}
        number = base_bytes = delta_bytes = deltas = 0
        for file in self._chain():
            if file.is_delta and file.number > number + 1:
                message = f"{self._directory}: snapshot {number + 1} is missing between {number} and {file.name}"
                _report(Damaged(message, file=f"{self._directory}/{file.name}", offset=0), on_damage)
            contents = self._read(file, number if file.is_delta else 0, on_damage)
            if file.is_delta:
                delta_bytes += contents.length_bytes
                deltas += 1
            else:
                base_bytes = contents.length_bytes
            state.update(contents.puts)
            for key in contents.removes:
                state.pop(key, None)
            if self.sure is not None:
                # A file has each key once: what can be read of it is newer than what cannot be.
                self.sure.update(contents.puts, contents.removes)
            number = file.number
        self.number, self._base_bytes, self._delta_bytes, self._deltas = number, base_bytes, delta_bytes, deltas
        return state

    def _read(self, file: _File, previous: int, on_damage: OnDamage | None) -> _Contents:
        path = f"{self._directory}/{file.name}"
        mapping = self._fs.map(path)
        try:
            return _read_contents(path, mapping.view, file.number, previous, on_damage)
        finally:
            mapping.release()


def _entries(
    puts: Mapping[bytes, bytes], removes: Collection[bytes]
) -> Iterator[tuple[Kind, list[bytes | bytearray | memoryview]]]:
    assert not any(key in puts for key in removes), "a key is put or removed, not both"
    for key, value in puts.items():
        yield Kind.PUT, [_KEY_LEN.pack(len(key)), key, value]
    for key in sorted(removes):  # A set has no order, and the same change is the same file.
        yield Kind.REMOVE, [key]


def _report(damage: Damaged, on_damage: OnDamage | None) -> None:
    if on_damage is None:
        raise damage
    on_damage(damage)


def _read_contents(path: str, view: memoryview, number: int, previous: int, on_damage: OnDamage | None) -> _Contents:
    """What a file puts and removes; damage is raised, or reported and skipped.

    `detail.lost_keys` of a report names the keys of the entries that cannot be read; None when they cannot be told.
    """
    contents = _Contents(len(view))
    lost = 0

    def report(offset: int, what: str, lost_keys: tuple[bytes, ...] | None = None) -> None:
        message = f"{path} offset {offset}: {what}"
        _report(Damaged(message, file=path, offset=offset, lost_keys=lost_keys), on_damage)

    header, at = _read_header(view)
    salt = header.salt if header is not None else _salvaged_salt(view)
    if header is None:
        report(0, f"the header of snapshot {number} is damaged", None if salt is None else ())
    elif header.version != FORMAT_VERSION:
        raise NotUnderstood(
            f"{path} is in snapshot format {header.version}; this program reads format {FORMAT_VERSION}; "
            f"{OTHER_VERSION}",
            file=path,
            offset=0,
        )
    elif (header.number, header.previous) != (number, previous):
        report(0, f"holds snapshot {header.number} after {header.previous}, expected {number} after {previous}")
    if salt is None:
        return contents
    if header is None:
        at = _next_frame(view, frame.ALIGN, salt)
    found = None
    while at < len(view) and (found is None or found.kind != Kind.FILE_END):
        found = frame.parse(view, at, salt)
        if found is None:
            end_at = _next_frame(view, at + frame.ALIGN, salt)
            key = _lost_key(view, at, end_at)
            report(at, f"a frame of snapshot {number} is damaged", None if key is None else (key,))
            lost += 1
            at = end_at
            continue
        if not _take(found, contents):
            report(at, f"an entry of snapshot {number} is none")
            lost += 1
        at = frame.padded(found.end)
    if found is None or found.kind != Kind.FILE_END or at != len(view) or not _adds_up(found, number, contents, lost):
        report(at, f"snapshot {number} does not end as it was written")
    return contents


def _read_header(view: memoryview) -> tuple[SnapshotHeader | None, int]:
    """The header, when it can be read, and the offset behind it."""
    found = frame.parse(view, 0, 0)
    if found is None or found.kind != Kind.FILE_HEADER:
        return None, 0
    try:
        return _header_decoder.decode(found.body), frame.padded(found.end)
    except frame.UNREADABLE:
        return None, 0


def _salvaged_salt(view: memoryview) -> int | None:
    """The salt that a damaged header meant: that of the frames behind it."""
    if len(view) < frame.HEADER_BYTES:
        return None
    *_, position, mark = frame.HEADER.unpack_from(view, 0)
    return next((salt for salt in (position, mark) if _next_frame(view, frame.ALIGN, salt) < len(view)), None)


def _adds_up(end: Frame, number: int, contents: _Contents, lost: int) -> bool:
    """Whether a file holds as many entries as its end says, `lost` ones included."""
    try:
        said = _end_decoder.decode(end.body)
    except frame.UNREADABLE:
        return False
    puts, removes = len(contents.puts), len(contents.removes)
    whole = (said.puts, said.removes) == (puts, removes)
    return said.number == number and (whole if not lost else said.puts + said.removes == puts + removes + lost)


def _lost_key(view: memoryview, at: int, end_at: int) -> bytes | None:
    """The key of the one damaged entry between two offsets, as its bytes tell it."""
    if at + frame.OVERHEAD_BYTES > len(view):
        return None
    magic, body_len, _, kind, _, _, _, _ = frame.HEADER.unpack_from(view, at)
    body_at = at + frame.HEADER_BYTES
    if magic != frame.MAGIC or frame.padded(body_at + body_len + frame.CHECKSUM.size) != end_at:
        return None
    body = view[body_at : body_at + body_len]
    if kind == Kind.REMOVE:
        return bytes(body)
    if kind != Kind.PUT or body_len < _KEY_LEN.size:
        return None
    (key_bytes,) = _KEY_LEN.unpack_from(body, 0)
    value_at = _KEY_LEN.size + key_bytes
    return bytes(body[_KEY_LEN.size : value_at]) if value_at <= body_len else None


def _take(found: Frame, contents: _Contents) -> bool:
    """Take an entry in; whether it is one."""
    if found.kind == Kind.PUT:
        if len(found.body) < _KEY_LEN.size:
            return False
        (key_bytes,) = _KEY_LEN.unpack_from(found.body, 0)
        value_at = _KEY_LEN.size + key_bytes
        if value_at > len(found.body):
            return False
        contents.puts[bytes(found.body[_KEY_LEN.size : value_at])] = bytes(found.body[value_at:])
    elif found.kind == Kind.REMOVE:
        contents.removes.append(bytes(found.body))
    return True


def _next_frame(view: memoryview, at: int, salt: int) -> int:
    return frame.next_at(view, at, frame.padded(len(view)), salt)
