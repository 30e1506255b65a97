"""The growing end of a log: the columns of a block while records are still being added.

A tail is a `Run` whose blocks are cut on demand: a reader near the head pays for what it reads, not for what
the tail holds. When the tail is full it is frozen into an immutable block and the log starts a new one.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping

import numpy as np

from topics.core.block import TS_SPAN_MS_MAX, Block, Buffer
from topics.core.encoded import EncodedRecords
from topics.core.match import Match
from topics.core.run import DEAD, U64, Marks, MemoryRun, count_live, first_live
from topics.limits import BLOCK_RECORDS, BLOCK_TEXT_BYTES

NO_NODE = 0


class Tail:
    __slots__ = (
        "_data_lens",
        "_ends",
        "_indexed",
        "_meta_lens",
        "_node_ids",
        "_node_index",
        "_tag_index",
        "_tags",
        "_text",
        "_ts",
        "first_seq",
        "first_ts",
        "last_seq",
        "last_ts",
        "live_bytes",
        "live_count",
        "marks",
    )

    def __init__(self, first_seq: int, first_ts: int) -> None:
        self.first_seq = first_seq
        self.last_seq = first_seq - 1
        self.first_ts = first_ts
        self.last_ts = first_ts
        self.live_count = 0
        self.live_bytes = 0
        self.marks: bytearray | None = None
        self._text = bytearray()
        self._ends = array("I")
        self._data_lens = array("I")
        self._meta_lens: array[int] | None = None
        self._ts: array[int] | None = None
        self._tags: list[bytes] | None = None
        self._node_ids: array[int] | None = None
        self._node_index: dict[bytes, int] = {}
        self._tag_index: dict[bytes, list[int]] = {}
        self._indexed = 0

    @property
    def count(self) -> int:
        return len(self._ends)

    @property
    def text_bytes(self) -> int:
        return len(self._text)

    def takes(self, first_seq: int, ts: int, count: int, text_bytes: int) -> bool:
        """Whether a batch fits: it follows on, and the tail stays a block of ordinary size."""
        held = len(self._ends)
        return (
            first_seq == self.last_seq + 1
            and held + count <= BLOCK_RECORDS
            and (not held or len(self._text) + text_bytes < BLOCK_TEXT_BYTES)
            and ts - self.first_ts <= TS_SPAN_MS_MAX
        )

    def add(self, seq: int, ts: int, text: Buffer, data_len: int) -> bool:
        """Add one record without tag, node and meta if it fits, as `takes` and `extend` would; whether it did.

        A log of one-record writes, and its recovery, spend much of their time here.
        """
        ends, held_text, delta_ms = self._ends, self._text, ts - self.first_ts
        if seq != self.last_seq + 1 or len(ends) >= BLOCK_RECORDS or delta_ms > TS_SPAN_MS_MAX:
            return False
        if ends:
            if len(held_text) + len(text) >= BLOCK_TEXT_BYTES:
                return False
            held_text += b","
        held_text += text
        if self._ts is not None:
            self._ts.append(delta_ms)
        elif delta_ms:
            self._ts = array("I", bytes(4 * len(ends)))
            self._ts.append(delta_ms)
        ends.append(len(held_text))
        self._data_lens.append(data_len)
        if self._meta_lens is not None:
            self._meta_lens.append(0)
        if self._tags is not None:
            self._tags.append(b"")
        if self._node_ids is not None:
            self._node_ids.append(NO_NODE)
        if self.marks is not None:
            self.marks.append(0)
        self.last_seq = seq
        self.last_ts = ts
        self.live_count += 1
        self.live_bytes += data_len
        return True

    def extend(self, batch: EncodedRecords) -> None:
        """Add a batch that `takes` allowed."""
        held = len(self._ends)
        count = batch.count
        if held:
            self._text += b","
        base = len(self._text)
        self._text += batch.text
        self._ends.extend([end + base for end in batch.ends])
        self._data_lens.extend(batch.data_lens)
        if self._meta_lens is not None or batch.meta_lens is not None:
            if self._meta_lens is None:
                self._meta_lens = array("I", bytes(4 * held))
            self._meta_lens.extend(batch.meta_lens if batch.meta_lens is not None else [0] * count)
        if self._ts is not None or batch.ts != self.first_ts:
            if self._ts is None:
                self._ts = array("I", bytes(4 * held))
            self._ts.extend([batch.ts - self.first_ts] * count)
        if self._tags is not None or batch.tag_ends is not None:
            if self._tags is None:
                self._tags = [b""] * held
            self._tags.extend(batch.tag_list())
        if self._node_ids is not None or batch.node_ids is not None:
            self._add_nodes(batch, held)
        if self.marks is not None:
            self.marks.extend(bytes(count))
        self.last_seq += count
        self.last_ts = batch.ts
        self.live_count += count
        self.live_bytes += batch.payload_bytes

    def _add_nodes(self, batch: EncodedRecords, held: int) -> None:
        if self._node_ids is None:
            self._node_ids = array("H", bytes(2 * held))
        if batch.node_ids is None:
            self._node_ids.extend([NO_NODE] * batch.count)
            return
        index = self._node_index
        local = [NO_NODE, *(index.setdefault(name, len(index) + 1) for name in batch.node_names)]
        self._node_ids.extend([local[node] for node in batch.node_ids])

    @property
    def text(self) -> bytearray:
        """The texts of all records, with commas between them. A view that is kept would keep it from growing."""
        return self._text

    def ends_between(self, seq: int, last_seq: int) -> list[int]:
        """Where the texts of these records end, and before them where the one before the first does; -1 for none."""
        index, end = seq - self.first_seq, last_seq - self.first_seq + 1
        return self._ends[index - 1 : end].tolist() if index else [-1, *self._ends[:end]]

    @property
    def has_tags(self) -> bool:
        return self._tags is not None

    def text_between(self, seq: int, last_seq: int, bytes_max: int) -> bytes | None:
        """The text of all records from `seq` to `last_seq`; None unless they are here, none deleted, and no longer."""
        first_seq, ends = self.first_seq, self._ends
        if self.marks is not None or not first_seq <= seq <= last_seq <= self.last_seq:
            return None
        start = ends[seq - first_seq - 1] + 1 if seq > first_seq else 0
        end = ends[last_seq - first_seq]
        return bytes(memoryview(self._text)[start:end]) if end - start <= bytes_max else None

    def tag_of(self, seq: int) -> bytes:
        """The tag of one record, empty when it has none."""
        return b"" if self._tags is None else self._tags[seq - self.first_seq]

    def meta_of(self, seq: int) -> bytes:
        """The meta of one record, empty when it has none."""
        if self._meta_lens is None:
            return b""
        index = seq - self.first_seq
        end = self._ends[index] - self._data_lens[index] - len('},"data":')
        return bytes(self._text[end - self._meta_lens[index] : end])

    def ts_of(self, seq: int) -> int:
        return self.first_ts + (self._ts[seq - self.first_seq] if self._ts is not None else 0)

    def record_of(self, seq: int) -> tuple[int, bytes, bytes]:
        """Timestamp, meta (empty when there is none) and data of one record."""
        index = seq - self.first_seq
        end = self._ends[index] - 1
        data_at = end - self._data_lens[index]
        meta_len = self._meta_lens[index] if self._meta_lens is not None else 0
        meta_end = data_at - len(',"data":')
        return self.ts_of(seq), bytes(self._text[meta_end - meta_len : meta_end]), bytes(self._text[data_at:end])

    def freeze(self) -> MemoryRun:
        """What the tail holds as an immutable run. The tail is not used any more after this."""
        return MemoryRun(self._cut(0, self.count), self.marks)

    def block_at(self, seq: int) -> tuple[Block, Marks | None]:
        return self.block_of(seq, self.count)

    def block_of(self, seq: int, limit: int) -> tuple[Block, Marks | None]:
        """A block of at most `limit` records from `seq` on, and their marks."""
        index = max(0, seq - self.first_seq)
        end = min(self.count, index + limit)
        marks = None
        if self.marks is not None and DEAD in (part := self.marks[index:end]):
            marks = part
        return self._cut(index, end), marks

    def _cut(self, index: int, end: int) -> Block:
        start = self._ends[index - 1] + 1 if index else 0
        stop = self._ends[end - 1] if end else 0
        ends = np.array(self._ends[index:end], np.uint32)
        ts_deltas = None
        first_ts = self.first_ts
        last_ts = self.last_ts if end == self.count else first_ts
        if self._ts is not None and end > index:
            first_ts += self._ts[index]
            last_ts = self.first_ts + self._ts[end - 1]
            if last_ts != first_ts:
                ts_deltas = np.array(self._ts[index:end], np.uint32) - np.uint32(self._ts[index])
        tag_ends, tags = self._cut_tags(index, end)
        return Block(
            self.first_seq + index,
            first_ts,
            last_ts,
            ends - np.uint32(start) if start else ends,
            np.array(self._data_lens[index:end], np.uint32),
            bytes(memoryview(self._text)[start:stop]),
            np.array(self._meta_lens[index:end], np.uint32) if self._meta_lens is not None else None,
            ts_deltas,
            tag_ends,
            tags,
            np.array(self._node_ids[index:end], np.uint16) if self._node_ids is not None else None,
            tuple(self._node_index) if self._node_ids is not None else (),
        )

    def _cut_tags(self, index: int, end: int) -> tuple[np.ndarray[tuple[int], np.dtype[np.uint32]] | None, bytes]:
        if self._tags is None:
            return None, b""
        chosen = self._tags[index:end]
        lengths = np.fromiter(map(len, chosen), np.uint32, len(chosen))
        return np.cumsum(lengths, dtype=np.uint32), b"".join(chosen)

    def seq_after_ts(self, ts: int) -> int:
        if ts < self.first_ts:
            return self.first_seq
        if ts >= self.last_ts or self._ts is None:
            return self.last_seq + 1
        return self.first_seq + int(np.searchsorted(np.array(self._ts, np.uint32), ts - self.first_ts, side="right"))

    def _size(self, index: int) -> int:
        meta = self._meta_lens[index] if self._meta_lens is not None else 0
        return self._data_lens[index] + meta

    def live_from(self, seq: int) -> tuple[int, int]:
        if seq <= self.first_seq:
            return self.live_count, self.live_bytes
        count = size = 0
        for index in range(seq - self.first_seq, self.count):
            if self.marks is None or self.marks[index] != DEAD:
                count += 1
                size += self._size(index)
        return count, size

    def seq_at_live(self, skip_count: int, skip_bytes: int, seq: int) -> tuple[int, int, int]:
        # The loop runs over the records it passes, so its cost is that of what is evicted.
        index = max(0, seq - self.first_seq)
        passed_count = passed_bytes = 0
        while index < self.count and (passed_count < skip_count or passed_bytes < skip_bytes):
            if self.marks is None or self.marks[index] != DEAD:
                passed_count += 1
                passed_bytes += self._size(index)
            index += 1
        return self.first_seq + index, passed_count, passed_bytes

    def first_live(self, seq: int) -> int | None:
        # A copy: a view of the marks would keep them from growing.
        marks = None if self.marks is None else bytearray(self.marks)
        return first_live(marks, self.first_seq, self.last_seq, seq)

    def is_live(self, seq: int) -> bool:
        return self.marks is None or self.marks[seq - self.first_seq] != DEAD

    def count_live(self, first_seq: int, last_seq: int) -> int:
        return count_live(self.marks, self.first_seq, first_seq, last_seq)

    def find(self, match: Match, below: int) -> U64:
        if self._tags is None:
            return np.empty(0, np.uint64)
        # Indexing what came since the last look keeps the cost at one visit a record, however often we look.
        for position in range(self._indexed, self.count):
            if self._tags[position]:
                self._tag_index.setdefault(self._tags[position], []).append(position)
        self._indexed = self.count
        found = sorted(
            position
            for position in match.positions(self._tag_index)
            if self.first_seq + position < below and (self.marks is None or self.marks[position] != DEAD)
        )
        return np.array(found, np.uint64) + np.uint64(self.first_seq)

    def mark(self, seqs: U64 | list[int], sizes: Mapping[int, int] | None = None) -> tuple[int, int]:
        if self.marks is None:
            self.marks = bytearray(self.count)
        count = size = 0
        for seq in seqs if isinstance(seqs, list) else seqs.tolist():
            index = seq - self.first_seq
            if self.marks[index] != DEAD:
                self.marks[index] = DEAD
                count += 1
                size += self._size(index)
                self._forget_tag(index)
        self.live_count -= count
        self.live_bytes -= size
        return count, size

    def _forget_tag(self, index: int) -> None:
        if self._tags is not None and index < self._indexed and (places := self._tag_index.get(self._tags[index])):
            places.remove(index)
