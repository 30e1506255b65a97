"""An open segment: its sections, its index and the deletions that are not in its file yet.

The loop's thread owns an open segment. Deletions are marks in memory first (`SegmentRun.mark`) and bytes in the file
later, in four steps so that the loop never waits for the disk:

    loop      pending = segment.pending_marks(section_no)   a value: which bytes of the file to set
    storage   write_marks(fs, path, [pending, …])    sets them in place and syncs
    loop      segment.marks_durable(pending)         from here on the file's own bytes are read again
    loop      a failed write changes nothing: the marks stay in memory and are pending again

Until the third step the commands that caused the marks must stay replayable: nothing here keeps them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from topics.core.run import DEAD, U64
from topics.errors import Damaged
from topics.storage.draft import Draft
from topics.storage.fs import FileSystem
from topics.storage.index import Index, IndexBuilder, IndexDamaged
from topics.storage.maps import Finder, MapCache, Mapped
from topics.storage.segmentfile import (
    DEAD_FLAG,
    END_BYTES_MAX,
    data_name,
    index_name,
    read_end,
    read_header,
    scan,
)
from topics.storage.segmentrun import SegmentRun
from topics.storage.tagtable import TagTable

HEADER_BYTES_MAX = 256
"""The file header is read out of so many first bytes."""


@dataclass(frozen=True, slots=True)
class PendingMarks:
    """Flags to set in a segment's file; a value that another thread may hold."""

    number: int
    section_no: int
    offsets: U64
    batches: dict[int, int]
    """How many batches of marks of which block are included."""


class Segment:
    """Use `open`."""

    def __init__(self, fs: FileSystem, find: Finder, number: int, maps: MapCache) -> None:
        self.number = number
        self.maps = maps
        self.name = data_name(number)
        self.index_rebuilt: str | None = None
        """Why the index had to be rebuilt; None when it did not."""
        self._fs = fs
        self.find = find
        self._marked: dict[int, SegmentRun] = {}
        self.salt, self.created_ms, self.data_bytes = self._check_ends()
        try:
            self.index = self._open_index()
        except IndexDamaged as damage:
            self.index = self.rebuild_index(str(damage))
        self.sections = self.index.sections

    @classmethod
    def open(cls, fs: FileSystem, find: Finder, number: int, maps: MapCache) -> Segment:
        """Check both ends of the file and open its index, rebuilding that when it is missing or damaged.

        Raises `Damaged` when the segment is not whole, and `FileNotFoundError` when it is nowhere.
        """
        return cls(fs, find, number, maps)

    def path(self) -> str:
        """Where the `.data` file is at present."""
        return self.find(self.name)

    def mapped(self) -> Mapped:
        return self.maps.use(self.name, self.find)

    def run(self, section_no: int, live_count: int | None = None, live_bytes: int | None = None) -> SegmentRun:
        """The run over a section, made once per section.

        The live count and bytes must be those of the flags in the file, which is so when they were recorded after the
        last `write_marks`; otherwise leave them out, and the flags are counted.
        """
        return SegmentRun(self, section_no, live_count, live_bytes)

    def _check_ends(self) -> tuple[int, int, int]:
        """Salt, time of creation and length, from the first and the last frame of the file."""
        path = self.path()
        file = self._fs.open(path, "read")
        try:
            size_bytes = file.size()
            start = file.read_at(0, HEADER_BYTES_MAX)
            tail = file.read_at(max(0, size_bytes - END_BYTES_MAX), END_BYTES_MAX)
        finally:
            file.close()
        header, _ = read_header(path, memoryview(start), self.number)
        end, end_at = read_end(path, memoryview(tail), size_bytes)
        if (end.number, end.salt) != (header.number, header.salt):
            raise Damaged(f"{path} offset {end_at}: the end frame is of another file", file=path, offset=end_at)
        return header.salt, header.created_ms, size_bytes

    def _open_index(self) -> Index:
        return Index(self.number, self.salt, self.data_bytes, self.find, self.maps)

    def rebuild_index(self, reason: str) -> Index:
        """Make the index anew from the `.data` file; raises `Damaged` when that is damaged itself."""
        path = self.path()
        builder = IndexBuilder(self.number, self.salt)
        mapping = self._fs.map(path)
        try:
            for stored in scan(path, mapping.view, self.number):
                assert stored.key is not None, "a scan that reports no damage knows every section"
                builder.add(stored.key, stored)
            directory = path.removesuffix(self.name)
            with Draft(self._fs, directory + index_name(self.number)) as draft:
                draft.append(builder.finish(self.data_bytes))
                draft.seal()
                draft.publish()
            self._fs.sync_dir(directory.rstrip("/"))
        finally:
            mapping.release()
        self.maps.drop(index_name(self.number))
        self.index_rebuilt = f"the index of segment {self.number} was rebuilt from {path}: {reason}"
        return self._open_index()

    def tags(self, section_no: int) -> list[TagTable]:
        """The tag tables of a section, in seq order."""
        try:
            return self.index.tags(section_no)
        except IndexDamaged as damage:
            self.index = self.rebuild_index(str(damage))
            return self.index.tags(section_no)

    def note_marked(self, section_no: int, run: SegmentRun) -> None:
        """Called by a run that has marks the file does not have."""
        self._marked[section_no] = run

    def pending_marks(self, section_no: int) -> PendingMarks | None:
        """The flags of one section to be set in the file; None when it has them all."""
        run = self._marked.get(section_no)
        if run is None:
            return None
        return PendingMarks(self.number, section_no, run.pending_offsets(), run.pending_batches())

    def marks_durable(self, pending: PendingMarks) -> None:
        """The flags of `pending` are in the file, durably."""
        run = self._marked.get(pending.section_no)
        if run is not None and run.forget_pending(pending.batches):
            del self._marked[pending.section_no]

    def flag_stretches(self, section_no: int, from_seq: int, below: int) -> tuple[tuple[int, int], ...]:
        """Offset and length of the flags of a section's records from one seq on and below another, block by block."""
        section = self.sections[section_no]
        entries = self.index.entries(section.first_block, section.blocks)
        first_seqs, last_seqs = entries["first_seq"].astype(np.int64), entries["last_seq"].astype(np.int64)
        starts = np.maximum(first_seqs, from_seq) - first_seqs
        lengths = np.minimum(last_seqs + 1, below) - first_seqs - starts
        offsets = (entries["offset"] + entries["flags_from"]).astype(np.int64) + starts
        kept = np.flatnonzero(lengths > 0)
        return tuple(zip(offsets[kept].tolist(), lengths[kept].tolist(), strict=True))

    def moved(self) -> None:
        """The files have another place now, or none: map them anew when they are used again."""
        self.maps.drop(self.name)
        self.maps.drop(index_name(self.number))


def write_marks(fs: FileSystem, path: str, marks: Sequence[PendingMarks]) -> None:
    """Set flags in place and make them durable; only the bytes of newly deleted records are touched."""
    file = fs.open(path, "write")
    try:
        for stretch in _stretches(marks):
            file.write_at(int(stretch[0]), [DEAD_FLAG * len(stretch)])
        file.sync()
    finally:
        file.close()


def unset_marks(fs: FileSystem, path: str, marks: Sequence[PendingMarks]) -> U64:
    """The offsets of those flags that the file does not have yet; some may be there from a write that failed later."""
    unset: list[U64] = []
    file = fs.open(path, "read")
    try:
        for stretch in _stretches(marks):
            flags = np.frombuffer(file.read_at(int(stretch[0]), len(stretch)), np.uint8)
            unset.append(stretch[flags != DEAD])
    finally:
        file.close()
    return np.concatenate(unset)


def _stretches(marks: Sequence[PendingMarks]) -> list[U64]:
    """All offsets, ascending, cut where one does not follow the other."""
    offsets = np.sort(np.concatenate([pending.offsets for pending in marks]))
    return np.split(offsets, np.nonzero(np.diff(offsets) != 1)[0] + 1)
