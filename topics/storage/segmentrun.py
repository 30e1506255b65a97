"""A run over one section of a segment: reads from the mapped file, marks in memory.

Blocks are parsed from the mapped file when they are asked for and kept with the mapping. Whether a block has dead
records is found out once, from its flags in the file:

    UNKNOWN --first look--> CLEAN (no flag is dead: reads get None) or DEAD (reads get the flags in the mapped file)
    any     --mark--------> DEAD, and reads get an overlay: a copy of the flags with the new marks
    overlay --durable-----> the mapped flags again, when the file holds every mark of it

A marked record stays marked, so a block never goes back to CLEAN. Live counts and bytes per block are made on first
need and then kept up to date by `mark`; whole blocks are skipped by them, and only the block at a boundary is read.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from topics.core import block as blocks
from topics.core import run as runs
from topics.core.block import Block
from topics.core.match import Match
from topics.core.run import DEAD, LIVE, U64, Marks, mark_few
from topics.errors import Damaged
from topics.storage import frame
from topics.storage.frame import Kind
from topics.storage.index import Entries
from topics.storage.segmentfile import DEAD_FLAG, LIVE_FLAG

if TYPE_CHECKING:
    from topics.storage.segment import Segment

I64 = npt.NDArray[np.int64]

_UNKNOWN = 0
_CLEAN = 1
_HAS_DEAD = 2


# Of runs without marks in memory, which nearly all are: `_own_marks` gives a run its own.
_NO_OVERLAYS: Final[dict[int, bytearray]] = {}
_NO_FRESH: Final[dict[int, list[I64]]] = {}


class SegmentRun:
    """A `topics.core.run.Run`. Numbers of blocks are counted from the section's first one."""

    __slots__ = (
        "_blocks",
        "_count",
        "_first_block",
        "_first_seqs",
        "_fresh",
        "_last_seqs",
        "_live_counts",
        "_live_sizes",
        "_overlays",
        "_section_no",
        "_segment",
        "_states",
        "first_seq",
        "first_ts",
        "flagged_below",
        "last_seq",
        "last_ts",
        "live_bytes",
        "live_count",
    )

    def __init__(self, segment: Segment, section_no: int, live_count: int | None, live_bytes: int | None) -> None:
        section = segment.sections[section_no]
        self._segment = segment
        self._section_no = section_no
        self._first_block = section.first_block
        self._blocks = section.blocks
        self._count = section.count
        self.first_seq = section.first_seq
        self.last_seq = section.last_seq
        self.first_ts = section.first_ts
        self.last_ts = self.first_ts if section.last_ts == section.first_ts else section.last_ts
        self._states = bytes(section.blocks)
        """Of each block. Most runs have one, and one byte is the same object for all."""
        self._first_seqs: array[int] | None = None
        self._last_seqs: array[int] | None = None
        self._live_counts: I64 | None = None
        self._live_sizes: I64 | None = None
        self._overlays = _NO_OVERLAYS
        self._fresh = _NO_FRESH
        """Positions marked in memory and not known to be durable in the file, by block."""
        self.flagged_below = 0
        """The flags of all records below this seq are known to be set in the file, for the floor has passed them."""
        self.live_count = self.live_bytes = 0
        if live_count is None or live_bytes is None:
            self.recount()
        else:
            self.live_count, self.live_bytes = live_count, live_bytes

    @property
    def segment_no(self) -> int:
        return self._segment.number

    @property
    def salt(self) -> int:
        """Of the segment's file."""
        return self._segment.salt

    @property
    def section_no(self) -> int:
        return self._section_no

    @property
    def log_id(self) -> int:
        return self._segment.sections[self._section_no].log_id

    @property
    def _topic(self) -> str:
        return self._segment.sections[self._section_no].topic

    def flags_offset(self) -> int:
        """Where the flags of the first block stand in the file."""
        entry = self._entries()[0]
        return int(entry["offset"]) + int(entry["flags_from"])

    # Reading

    def block_at(self, seq: int) -> tuple[Block, Marks | None]:
        number = bisect_left(self._last_seqs or self._load_last_seqs(), seq)
        block = self._segment.mapped().blocks.get(self._first_block + number) or self._load(number)
        return block, None if self._states[number] == _CLEAN else self._marks(number)

    def seq_after_ts(self, ts: int) -> int:
        if ts < self.first_ts:
            return self.first_seq
        if ts >= self.last_ts:
            return self.last_seq + 1
        entries = self._entries()
        number = int(np.searchsorted(entries["last_ts"], np.uint64(ts), side="right"))
        if entries["first_ts"][number] > ts:
            return int(entries["first_seq"][number])
        block = self._block(number)
        return block.first_seq + block.first_index_after(ts)

    def _load_last_seqs(self) -> array[int]:
        self._last_seqs = array("Q", self._entries()["last_seq"].tobytes())
        return self._last_seqs

    def _entries(self) -> Entries:
        return self._segment.index.entries(self._first_block, self._blocks)

    def _block(self, number: int) -> Block:
        return self._segment.mapped().blocks.get(self._first_block + number) or self._load(number)

    def _load(self, number: int) -> Block:
        """Verify a block in the mapped file, parse it and keep it with the mapping."""
        entry = self._entries()[number]
        mapped = self._segment.mapped()
        offset = int(entry["offset"])
        found = frame.parse(mapped.view, offset, self._segment.salt)
        if (
            found is None
            or (found.kind, found.position, found.mark) != (Kind.BLOCK, entry["first_seq"], self._section_no)
            or found.end - offset != entry["flags_from"]
        ):
            raise self._damaged(offset, int(entry["first_seq"]), int(entry["last_seq"]))
        block = blocks.parse(found.body)
        self._segment.maps.keep(mapped, self._first_block + number, block)
        return block

    def _damaged(self, offset: int, first_seq: int, last_seq: int) -> Damaged:
        path, topic = self._segment.path(), self._topic
        return Damaged(
            f"{path} offset {offset}: the block with seqs {first_seq}..{last_seq} of topic {topic} is damaged",
            file=path,
            offset=offset,
            first_seq=first_seq,
            last_seq=last_seq,
            topic=topic,
        )

    # Counting what is alive

    def live_from(self, seq: int) -> tuple[int, int]:
        if seq <= self.first_seq:
            return self.live_count, self.live_bytes
        if seq > self.last_seq or not self.live_count:
            return 0, 0
        counts, sizes = self._live()
        number = bisect_left(self._last_seqs or self._load_last_seqs(), seq)
        count, size = self._live_in_block(number, seq)
        return count + int(counts[number + 1 :].sum()), size + int(sizes[number + 1 :].sum())

    def seq_at_live(self, skip_count: int, skip_bytes: int, seq: int) -> tuple[int, int, int]:
        seq = max(seq, self.first_seq)
        if skip_count <= 0 and skip_bytes <= 0:
            return seq, 0, 0
        if seq > self.last_seq:
            return self.last_seq + 1, 0, 0
        live_counts, live_sizes = self._live()
        number = bisect_left(self._last_seqs or self._load_last_seqs(), seq)
        counts, sizes = live_counts[number:].copy(), live_sizes[number:].copy()
        counts[0], sizes[0] = self._live_in_block(number, seq)
        counts, sizes = np.cumsum(counts), np.cumsum(sizes)
        whole = max(
            int(np.searchsorted(counts, skip_count)) if skip_count > 0 else 0,
            int(np.searchsorted(sizes, skip_bytes)) if skip_bytes > 0 else 0,
        )
        if whole == len(counts):
            return self.last_seq + 1, int(counts[-1]), int(sizes[-1])
        count, size = (int(counts[whole - 1]), int(sizes[whole - 1])) if whole else (0, 0)
        block, marks = self._block(number + whole), self._marks(number + whole)
        end, more_count, more_bytes = runs.seq_at_live(block, marks, skip_count - count, skip_bytes - size, seq)
        return end, count + more_count, size + more_bytes

    def _live_in_block(self, number: int, seq: int) -> tuple[int, int]:
        block = self._block(number)
        return runs.live_from(block, self._marks(number), max(0, seq - block.first_seq))

    def first_live(self, seq: int) -> int | None:
        entries = self._entries()
        for number in range(bisect_left(self._last_seqs or self._load_last_seqs(), seq), self._blocks):
            first_seq, last_seq = int(entries["first_seq"][number]), int(entries["last_seq"][number])
            found = runs.first_live(self._marks(number), first_seq, last_seq, max(seq, first_seq))
            if found is not None:
                return found
        return None

    def is_live(self, seq: int) -> bool:
        number = bisect_left(self._last_seqs or self._load_last_seqs(), seq)
        # Asked of every message of a heap before it is taken, so that nothing is mapped for it.
        if self._first_seqs is None:
            self._first_seqs = array("Q", self._entries()["first_seq"].tobytes())
        place = seq - self._first_seqs[number]
        marks = self._marks(number)
        # There may be seqs between blocks that were never stored.
        return place >= 0 and (marks is None or marks[place] != DEAD)

    def count_live(self, first_seq: int, last_seq: int) -> int:
        last_seqs = self._last_seqs or self._load_last_seqs()
        first, last = bisect_left(last_seqs, first_seq), bisect_left(last_seqs, last_seq)
        count = self._count_in_block(first, first_seq, last_seq)
        if first < last:
            count += int(self._counts()[first + 1 : last].sum()) + self._count_in_block(last, first_seq, last_seq)
        return count

    def _count_in_block(self, number: int, first_seq: int, last_seq: int) -> int:
        entry = self._entries()[number]
        # There may be seqs between blocks that were never stored.
        start, end = max(first_seq, int(entry["first_seq"])), min(last_seq, int(entry["last_seq"]))
        return runs.count_live(self._marks(number), int(entry["first_seq"]), start, end) if start <= end else 0

    def _counts(self) -> I64:
        """Live records of each block, from the flags alone."""
        if self._live_counts is None:
            counts = self._entries()["count"].astype(np.int64)
            for number in range(self._blocks):
                if (marks := self._marks(number)) is not None:
                    counts[number] -= bytes(marks).count(DEAD_FLAG)
            self._live_counts = counts
        return self._live_counts

    def flagged_live(self, from_seq: int = 0) -> int:
        """Records from a seq on that are not flagged as deleted in the file; no block is looked at."""
        if from_seq > self.first_seq:
            return self.count_live(from_seq, self.last_seq) if from_seq <= self.last_seq else 0
        marks = [marks for number in range(self._blocks) if (marks := self._marks(number)) is not None]
        return self._count - sum(bytes(flags).count(DEAD_FLAG) for flags in marks)

    def recount(self) -> None:
        """Take the live count and bytes from the flags, and the blocks they belong to."""
        counts, sizes = self._live()
        self.live_count, self.live_bytes = int(counts.sum()), int(sizes.sum())

    def _live(self) -> tuple[I64, I64]:
        """Live records and their payload bytes of each block."""
        if self._live_counts is None or self._live_sizes is None:
            entries = self._entries()
            counts, sizes = entries["count"].astype(np.int64), entries["payload_bytes"].astype(np.int64)
            for number in range(self._blocks):
                marks = self._marks(number)
                if marks is not None and bytes(marks).count(DEAD_FLAG) == len(marks):
                    counts[number] = sizes[number] = 0
                elif marks is not None:
                    counts[number], sizes[number] = runs.live_from(self._block(number), marks, 0)
            self._live_counts, self._live_sizes = counts, sizes
        return self._live_counts, self._live_sizes

    # Finding and marking

    def find(self, match: Match, below: int) -> U64:
        found = [table.find(match) for table in self._segment.tags(self._section_no)]
        seqs: U64 = np.concatenate(found) if found else np.empty(0, np.uint64)
        seqs = seqs[: int(np.searchsorted(seqs, np.uint64(max(0, below))))]
        keep = np.ones(len(seqs), np.bool_)
        for number, start, positions in self._by_block(seqs):
            marks = self._marks(number)
            if marks is not None:
                keep[start : start + len(positions)] = runs.alive(marks)[positions]
        return seqs[keep]

    def _by_block(self, seqs: U64) -> list[tuple[int, int, I64]]:
        """Ascending stored seqs by block: its number, where its first one is in `seqs`, their places in the block."""
        if not len(seqs):
            return []
        entries = self._entries()
        numbers = np.searchsorted(entries["last_seq"], seqs)
        places = (seqs - entries["first_seq"][numbers]).astype(np.int64)
        starts = [0, *(np.nonzero(np.diff(numbers))[0] + 1).tolist()]
        ends = [*starts[1:], len(seqs)]
        return [(int(numbers[start]), start, places[start:end]) for start, end in zip(starts, ends, strict=True)]

    def mark(self, seqs: U64 | list[int], sizes: Mapping[int, int] | None = None) -> tuple[int, int]:
        if isinstance(seqs, list):
            return self._mark_few(seqs) if sizes is None else self._mark_sized(seqs, sizes)
        seqs = self._stored(seqs)
        self._live()
        # Whatever may turn out to be damaged is read before the first mark is set.
        parts = [(number, places, self._block(number)) for number, _, places in self._by_block(seqs)]
        count = size = 0
        for number, places, block in parts:
            marked_count, marked_size = self._mark_block(number, places, block)
            count += marked_count
            size += marked_size
        self.live_count -= count
        self.live_bytes -= size
        return count, size

    def _mark_few(self, seqs: list[int]) -> tuple[int, int]:
        self._live()
        last_seqs = self._last_seqs or self._load_last_seqs()
        parts: list[tuple[int, list[int], Block]] = []
        at = 0
        while at < len(seqs):
            number = bisect_left(last_seqs, seqs[at])
            end = bisect_right(seqs, last_seqs[number], at)
            block = self._block(number)
            first_seq = block.first_seq
            # There may be seqs between blocks that were never stored.
            parts.append((number, [seq - first_seq for seq in seqs[at:end] if seq >= first_seq], block))
            at = end
        count = size = 0
        for number, places, block in parts:
            overlay = self._overlay(number, block.count)
            fresh, marked_size = mark_few(block, overlay, places)
            if fresh:
                self._note_marked(number, np.array(fresh, np.int64), marked_size, overlay)
                count += len(fresh)
                size += marked_size
        self.live_count -= count
        self.live_bytes -= size
        return count, size

    def _mark_sized(self, seqs: list[int], sizes: Mapping[int, int]) -> tuple[int, int]:
        """`_mark_few` without a look at the blocks."""
        self._live()
        last_seqs = self._last_seqs or self._load_last_seqs()
        entries = self._entries()
        count = size = 0
        at = 0
        while at < len(seqs):
            number = bisect_left(last_seqs, seqs[at])
            end = bisect_right(seqs, last_seqs[number], at)
            first_seq = int(entries["first_seq"][number])
            overlay = self._overlay(number, int(entries["count"][number]))
            fresh = [seq for seq in seqs[at:end] if seq >= first_seq and overlay[seq - first_seq] != DEAD]
            if fresh:
                places = [seq - first_seq for seq in fresh]
                for place in places:
                    overlay[place] = DEAD
                marked_size = sum(sizes[seq] for seq in fresh)
                self._note_marked(number, np.array(places, np.int64), marked_size, overlay)
                count += len(fresh)
                size += marked_size
            at = end
        self.live_count -= count
        self.live_bytes -= size
        return count, size

    def _overlay(self, number: int, count: int) -> bytearray:
        overlay = self._overlays.get(number)
        return bytearray(self._marks(number) or count) if overlay is None else overlay

    def _own_marks(self) -> None:
        if self._overlays is _NO_OVERLAYS:
            self._overlays, self._fresh = {}, {}

    def _set_state(self, number: int, state: int) -> None:
        states = self._states
        if states[number] != state:
            self._states = b"%b%c%b" % (states[:number], state, states[number + 1 :])

    def _note_marked(self, number: int, fresh: I64, size: int, overlay: bytearray) -> None:
        self._own_marks()
        self._overlays[number] = overlay
        self._set_state(number, _HAS_DEAD)
        self._fresh.setdefault(number, []).append(fresh)
        self._segment.note_marked(self._section_no, self)
        live_counts, live_sizes = self._live()
        live_counts[number] -= len(fresh)
        live_sizes[number] -= size

    def _stored(self, seqs: U64) -> U64:
        """Those of the seqs that this run holds, ascending, each once."""
        seqs = np.unique(seqs)
        seqs = seqs[(seqs >= self.first_seq) & (seqs <= self.last_seq)]
        entries = self._entries()
        return seqs[entries["first_seq"][np.searchsorted(entries["last_seq"], seqs)] <= seqs]

    def _mark_block(self, number: int, places: I64, block: Block) -> tuple[int, int]:
        overlay = self._overlay(number, block.count)
        view = np.frombuffer(overlay, np.uint8)
        fresh = places[view[places] != DEAD]
        if not len(fresh):
            return 0, 0
        view[fresh] = DEAD
        size = int(block.sizes[fresh].sum(dtype=np.uint64))
        self._note_marked(number, fresh, size, overlay)
        return len(fresh), size

    def _marks(self, number: int) -> Marks | None:
        state = self._states[number]
        if state == _CLEAN:
            return None
        if number in self._overlays:
            return self._overlays[number]
        start, first_seq, count = self._segment.index.flags_at(self._first_block + number)
        flags = self._segment.mapped().view[start : start + count]
        if state == _UNKNOWN:
            self._set_state(number, self._look(bytes(flags), start, first_seq))
        return flags if self._states[number] == _HAS_DEAD else None

    def _look(self, flags: bytes, offset: int, first_seq: int) -> int:
        """The state of a block by its flags. Nobody ever writes a flag that is neither live nor dead."""
        dead = flags.count(DEAD_FLAG)
        if dead + flags.count(LIVE_FLAG) == len(flags):
            return _HAS_DEAD if dead else _CLEAN
        place = next(at for at, flag in enumerate(flags) if flag not in (LIVE, DEAD))
        path, seq = self._segment.path(), first_seq + place
        raise Damaged(
            f"{path} offset {offset + place}: whether seq {seq} of topic {self._topic} was deleted cannot be "
            f"told: its flag is 0x{flags[place]:02X}, neither 0x00 nor 0xD5",
            file=path,
            offset=offset + place,
            first_seq=seq,
            last_seq=seq,
            topic=self._topic,
        )

    # Marks on their way into the file

    def doubt_flags(self) -> None:
        """The file shows flags that were perhaps never synced: all of them are pending again."""
        for number in range(self._blocks):
            marks = self._marks(number)
            if marks is not None:
                self._own_marks()
                self._overlays[number] = bytearray(marks)
                self._fresh[number] = [np.flatnonzero(~runs.alive(self._overlays[number]))]
        if self._fresh:
            self._segment.note_marked(self._section_no, self)

    def pending_offsets(self) -> U64:
        """The offsets in the file of the flags that it does not have yet."""
        entries = self._entries()
        flags_at = entries["offset"] + entries["flags_from"]
        return np.concatenate(
            [flags_at[number] + np.concatenate(fresh).astype(np.uint64) for number, fresh in self._fresh.items()]
        )

    def pending_batches(self) -> dict[int, int]:
        """How many batches of marks each block has that are not in the file."""
        return {number: len(fresh) for number, fresh in self._fresh.items()}

    def pending_seqs(self) -> U64:
        """The seqs marked in memory only, for a run that replaces this one and was copied from the file."""
        first_seqs = self._entries()["first_seq"]
        parts = [first_seqs[number] + np.concatenate(fresh).astype(np.uint64) for number, fresh in self._fresh.items()]
        return np.sort(np.concatenate(parts)) if parts else np.empty(0, np.uint64)

    def forget_pending(self, batches: dict[int, int]) -> bool:
        """So many batches of each block are in the file; whether that is all there were."""
        for number, count in batches.items():
            fresh = self._fresh[number]
            del fresh[:count]
            if not fresh:
                del self._fresh[number], self._overlays[number]
        return not self._fresh
