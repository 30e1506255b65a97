"""The `.idx` file of a segment: where its blocks are and which records have which tag.

    FILE_HEADER  salt 0; msgpack {version, number, salt, data_bytes}: which `.data` file this belongs to
    SECTION      msgpack: the sections with their bounds, totals and where their tag tables are
    BLOCK_TABLE  64 bytes a block (`BLOCK_ENTRY`)
    TAG_TABLE    position = section number; as many as the sections with tags need (topics.storage.tagtable)

Everything here is derived from the `.data` file and rebuilt from it, byte for byte, when it is missing or damaged.
The block table is verified when the index is opened, a tag table when it is first used in a process.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from itertools import accumulate
from typing import overload

import msgspec
import numpy as np
import numpy.typing as npt

from topics.core.block import Block
from topics.storage import frame
from topics.storage.frame import Frame, Kind
from topics.storage.fs import Buffer
from topics.storage.maps import Finder, MapCache
from topics.storage.segmentfile import FORMAT_VERSION, SectionKey, StoredBlock, index_name
from topics.storage.tagtable import TABLE_RECORDS, TagTable, build_tag_table

BLOCK_ENTRY = np.dtype(
    [
        ("offset", "<u8"),
        ("frame_bytes", "<u4"),
        ("flags_from", "<u4"),
        ("first_seq", "<u8"),
        ("last_seq", "<u8"),
        ("first_ts", "<u8"),
        ("last_ts", "<u8"),
        ("count", "<u4"),
        ("section_no", "<u4"),
        ("payload_bytes", "<u8"),
    ]
)
assert BLOCK_ENTRY.itemsize == 64

Entries = npt.NDArray[np.void]

_FLAGS_ENTRY = struct.Struct("<Q4xIQ24xI12x")
"""What of an entry says where the flags of its block are; reading one this way is much quicker than as an array."""
assert _FLAGS_ENTRY.size == BLOCK_ENTRY.itemsize


class IndexDamaged(Exception):
    """An index is missing or not what was written: a reason to rebuild it."""


class IndexHeader(msgspec.Struct, frozen=True):
    version: int
    number: int
    salt: int
    data_bytes: int


class Section(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A stretch of one log in a segment."""

    log_id: int
    topic: str
    partition: int
    epoch: int
    first_seq: int
    last_seq: int
    first_ts: int
    last_ts: int
    count: int
    payload_bytes: int
    first_block: int
    blocks: int
    tags_at: tuple[int, ...]
    """Where its tag tables stand behind the block table, in seq order; none when no record has a tag."""


_header_decoder = msgspec.msgpack.Decoder(IndexHeader)
_section_decoder = msgspec.msgpack.Decoder(Section)
_table_decoder = msgspec.msgpack.Decoder(tuple[msgspec.Raw, ...])


class IndexBuilder:
    """Gathers the index of a segment while its blocks are written or scanned."""

    def __init__(self, number: int, salt: int) -> None:
        self.sections: list[Section] = []
        self._number = number
        self._salt = salt
        self._entries: list[tuple[int, ...]] = []
        self._tag_frames: list[Buffer] = []
        self._tag_bytes = 0
        self._key: SectionKey | None = None
        self._tagged: list[Block] = []
        self._tagged_records = 0
        self._tags_at: list[int] = []

    def add(self, key: SectionKey, stored: StoredBlock) -> None:
        """A block of section `stored.section_no`; sections come one after the other."""
        if stored.section_no != len(self.sections) or self._key is None:
            self._end_section()
            self._key = key
        assert stored.section_no == len(self.sections)
        block = stored.block
        self._entries.append(
            (
                stored.offset,
                stored.frame_bytes,
                stored.flags_at - stored.offset,
                block.first_seq,
                block.last_seq,
                block.first_ts,
                block.last_ts,
                block.count,
                stored.section_no,
                int(block.sizes.sum(dtype=np.uint64)),
            )
        )
        if block.tag_ends is not None:
            self._tagged.append(block)
            self._tagged_records += block.count
            if self._tagged_records >= TABLE_RECORDS:
                self._end_table(self._section_entries()[0][3])

    def _section_entries(self) -> list[tuple[int, ...]]:
        return self._entries[self._first_block() :]

    def _first_block(self) -> int:
        return self.sections[-1].first_block + self.sections[-1].blocks if self.sections else 0

    def _end_section(self) -> None:
        if self._key is None:
            return
        entries = self._section_entries()
        self._end_table(entries[0][3])
        self.sections.append(
            Section(
                self._key.log_id,
                self._key.topic,
                self._key.partition,
                self._key.epoch,
                first_seq=entries[0][3],
                last_seq=entries[-1][4],
                first_ts=entries[0][5],
                last_ts=entries[-1][6],
                count=sum(entry[7] for entry in entries),
                payload_bytes=sum(entry[9] for entry in entries),
                first_block=self._first_block(),
                blocks=len(entries),
                tags_at=tuple(self._tags_at),
            )
        )
        self._key = None
        self._tags_at = []

    def _end_table(self, first_seq: int) -> None:
        """Close the table of the tags gathered; `first_seq` is the section's."""
        assert self._key is not None
        table = build_tag_table(self._tagged, first_seq)
        self._tagged = []
        self._tagged_records = 0
        if table is not None:
            self._tags_at.append(self._tag_bytes)
            buffers = frame.build(Kind.TAG_TABLE, self._key.log_id, len(self.sections), 0, table, self._salt)
            self._tag_frames += buffers
            self._tag_bytes += sum(map(len, buffers))

    def finish(self, data_bytes: int) -> list[Buffer]:
        """The whole file."""
        self._end_section()
        header = msgspec.msgpack.encode(IndexHeader(FORMAT_VERSION, self._number, self._salt, data_bytes))
        sections = msgspec.msgpack.encode(self.sections)
        entries = np.array(self._entries, BLOCK_ENTRY).tobytes()
        return [
            *frame.build(Kind.FILE_HEADER, 0, 0, 0, [header], 0),
            *frame.build(Kind.SECTION, 0, 0, 0, [sections], self._salt),
            *frame.build(Kind.BLOCK_TABLE, 0, 0, 0, [entries], self._salt),
            *self._tag_frames,
        ]


def _fits(section: Section, block_count: int) -> bool:
    """Whether a section's numbers are some, and its blocks among those that there are."""
    return min(section.first_seq, section.first_block, section.blocks) >= 0 and (
        section.first_block + section.blocks <= block_count
    )


class Sections(Sequence[Section]):
    """The section table, of which only the places are held in memory: there is a section for each log in a pack."""

    def __init__(self, index: Index, table: Frame) -> None:
        """Raises `UNREADABLE` when it is another table."""
        self._index = index
        self._at = table.end - frame.CHECKSUM.size - len(table.body)
        rows = [bytes(row) for row in _table_decoder.decode(table.body)]
        # The rows are at the end of the table, behind how many they are.
        ends = accumulate(map(len, rows), initial=len(table.body) - sum(map(len, rows)))
        self._bounds = array("Q", ends)
        for row in rows:
            _section_decoder.decode(row)

        self._count = len(rows)

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int) -> Section: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[Section]: ...

    def __getitem__(self, at: int | slice) -> Section | Sequence[Section]:
        if isinstance(at, slice):
            return [self[each] for each in range(*at.indices(len(self)))]
        if not 0 <= at < self._count:
            raise IndexError(f"there is no section {at} of {self._count}")
        start, end = self._at + self._bounds[at], self._at + self._bounds[at + 1]
        return _section_decoder.decode(self._index.view()[start:end])


class Index:
    """An open index. Where sections are is held in memory; they, the block table and tag tables stay mapped."""

    def __init__(self, number: int, salt: int, data_bytes: int, find: Finder, maps: MapCache) -> None:
        """Raises `IndexDamaged` when the file is not the index of that `.data` file."""
        self._name = index_name(number)
        self._salt = salt
        self._find = find
        self._maps = maps
        self._verified_tags: set[int] = set()
        try:
            view = self.view()
        except FileNotFoundError:
            raise IndexDamaged("it is missing") from None
        found = frame.parse(view, 0, 0)
        if found is None or found.kind != Kind.FILE_HEADER:
            raise IndexDamaged("its header is damaged")
        try:
            header = _header_decoder.decode(found.body)
        except frame.UNREADABLE:
            raise IndexDamaged("it is no index") from None
        if header != IndexHeader(FORMAT_VERSION, number, salt, data_bytes):
            raise IndexDamaged("it belongs to another file")
        sections = self._frame(view, frame.padded(found.end), Kind.SECTION, "section table")
        try:
            self.sections: Sequence[Section] = Sections(self, sections)
        except frame.UNREADABLE:
            raise IndexDamaged("its section table is of another kind") from None
        table = self._frame(view, frame.padded(sections.end), Kind.BLOCK_TABLE, "block table")
        self.block_count = len(table.body) // BLOCK_ENTRY.itemsize
        if any(not _fits(each, self.block_count) for each in self.sections):
            raise IndexDamaged("its section table names blocks that are not there")
        self._table_at = table.end - frame.CHECKSUM.size - len(table.body)
        self._tags_at = frame.padded(table.end)

    def view(self) -> memoryview:
        return self._maps.use(self._name, self._find).view

    def _frame(self, view: memoryview, at: int, kind: Kind, what: str) -> Frame:
        found = frame.parse(view, at, self._salt)
        if found is None or found.kind != kind:
            raise IndexDamaged(f"its {what} is damaged")
        return found

    def entries(self, first_block: int, count: int) -> Entries:
        """The table rows of so many blocks, a view of the mapped file."""
        return np.frombuffer(self.view(), BLOCK_ENTRY, count, self._table_at + first_block * BLOCK_ENTRY.itemsize)

    def flags_at(self, block_no: int) -> tuple[int, int, int]:
        """Where the flags of a block begin in the `.data` file, its first seq, and how many records it has."""
        place = self._table_at + block_no * BLOCK_ENTRY.itemsize
        offset, flags_from, first_seq, count = _FLAGS_ENTRY.unpack_from(self.view(), place)
        return offset + flags_from, first_seq, count

    def tags(self, section_no: int) -> list[TagTable]:
        """The tag tables of a section, in seq order. Raises `IndexDamaged`."""
        section = self.sections[section_no]
        view = self.view()
        return [self._tag_table(view, self._tags_at + at, section) for at in section.tags_at]

    def _tag_table(self, view: memoryview, at: int, section: Section) -> TagTable:
        if at not in self._verified_tags:
            self._frame(view, at, Kind.TAG_TABLE, f"tag table of topic {section.topic}")
            self._verified_tags.add(at)
        body_at = at + frame.HEADER_BYTES
        body_bytes = frame.HEADER.unpack_from(view, at)[1]
        try:
            return TagTable(view[body_at : body_at + body_bytes], section.first_seq)
        except frame.UNREADABLE:
            raise IndexDamaged(f"its tag table of topic {section.topic} is of another kind") from None
