"""A block: records with consecutive seqs as columns beside their wire-ready text.

The text of a block is the JSON a read returns, records joined by commas, so that a page is cut out of it:

    {"$seq":7,"$ts":1748470000123,"$node":"n1","meta":{"k":"v"},"data":{"x":1}},{"$seq":8,…

`$tag` is not in the text: reads leave it out unless asked, so it is spliced in when they do. From its end a
record reads backwards as `}`, data, `"data":`, and, with meta, a comma, meta, `"meta":`; with the lengths of data
and meta known, every part of every record can be cut out without parsing.

A block is the body of a WAL append and of a segment's frame alike (see docs/FORMAT.md):

    0   first_seq  u64
    8   first_ts   u64
    16  count      u32
    20  columns    u16   which optional columns follow (bits of `HAS_*`)
    22  names      u16   how many node names
    24  names_len  u32   bytes of the node-name table
    28  tags_len   u32   bytes of all tags
    32  text_len   u32
    36  last_delta u32   last record's ts minus first_ts
    40  ends       u32[count]  end of each record's text
        data_lens  u32[count]
        meta_lens  u32[count]  if HAS_META; 0 is no meta
        ts_deltas  u32[count]  if HAS_TS; else every record has first_ts
        tag_ends   u32[count]  if HAS_TAGS; an empty tag is no tag
        node_ids   u16[count]  if HAS_NODES; 0 is no node, n is the n-th name
        names      u16 length and UTF-8 bytes, each
        tags       UTF-8 bytes
        text
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from topics.limits import U64_MAX

U32 = npt.NDArray[np.uint32]
U16 = npt.NDArray[np.uint16]
Buffer = bytes | bytearray | memoryview

HEADER = struct.Struct("<QQIHHIIII")
HAS_META = 1
HAS_TS = 2
HAS_TAGS = 4
HAS_NODES = 8

TS_SPAN_MS_MAX = 2**32 - 1
"""Records further apart in time than this go into separate blocks."""

_NAME_LEN = struct.Struct("<H")

assert HEADER.size == 40


class Block:
    """Immutable. Columns are numpy arrays, possibly views of a mapped file."""

    def __init__(
        self,
        first_seq: int,
        first_ts: int,
        last_ts: int,
        ends: U32,
        data_lens: U32,
        text: Buffer,
        meta_lens: U32 | None = None,
        ts_deltas: U32 | None = None,
        tag_ends: U32 | None = None,
        tags: Buffer = b"",
        node_ids: U16 | None = None,
        node_names: tuple[bytes, ...] = (),
    ) -> None:
        self.first_seq = first_seq
        self.first_ts = first_ts
        self.last_ts = last_ts
        self.count = len(ends)
        self.last_seq = first_seq + self.count - 1
        self.ends = ends
        self.data_lens = data_lens
        self.text = text
        self.meta_lens = meta_lens
        self.ts_deltas = ts_deltas
        self.tag_ends = tag_ends
        self.tags = tags
        self.node_ids = node_ids
        self.node_names = node_names

    @cached_property
    def sizes(self) -> U32:
        """Payload bytes of each record: its data and meta as received."""
        return self.data_lens if self.meta_lens is None else self.data_lens + self.meta_lens

    def start(self, index: int) -> int:
        """Where record `index` begins in the text."""
        return int(self.ends[index - 1]) + 1 if index else 0

    def ends_between(self, seq: int, last_seq: int) -> list[int]:
        """Where the texts of these records end, and before them where the one before the first does; -1 for none."""
        index, end = seq - self.first_seq, last_seq - self.first_seq + 1
        return self.ends[index - 1 : end].tolist() if index else [-1, *self.ends[:end].tolist()]

    @property
    def has_tags(self) -> bool:
        return self.tag_ends is not None

    def tag_of(self, seq: int) -> bytes:
        return self.tag(seq - self.first_seq)

    def ts(self, index: int) -> int:
        return self.first_ts + (int(self.ts_deltas[index]) if self.ts_deltas is not None else 0)

    def node(self, index: int) -> bytes | None:
        if self.node_ids is None or not self.node_ids[index]:
            return None
        return self.node_names[int(self.node_ids[index]) - 1]

    def tag(self, index: int) -> bytes:
        """The tag of a record, empty when it has none."""
        if self.tag_ends is None:
            return b""
        start = int(self.tag_ends[index - 1]) if index else 0
        return bytes(self.tags[start : int(self.tag_ends[index])])

    def tag_list(self) -> list[bytes]:
        """All tags in record order, empty where there is none."""
        if self.tag_ends is None:
            return [b""] * self.count
        tags = bytes(self.tags)
        ends = self.tag_ends.tolist()
        return [tags[start:end] for start, end in zip([0, *ends], ends, strict=False)]

    def data(self, index: int) -> bytes:
        end = int(self.ends[index]) - 1
        return bytes(self.text[end - int(self.data_lens[index]) : end])

    def meta(self, index: int) -> bytes | None:
        if self.meta_lens is None or not self.meta_lens[index]:
            return None
        end = int(self.ends[index]) - 1 - int(self.data_lens[index]) - len(',"data":')
        return bytes(self.text[end - int(self.meta_lens[index]) : end])

    def ts_of(self, seq: int) -> int:
        return self.ts(seq - self.first_seq)

    def record_of(self, seq: int) -> tuple[int, bytes, bytes]:
        """Timestamp, meta (empty when there is none) and data of one record."""
        index = seq - self.first_seq
        return self.ts(index), self.meta(index) or b"", self.data(index)

    def first_index_after(self, ts: int) -> int:
        """How many leading records have a timestamp of at most `ts`."""
        if ts < self.first_ts:
            return 0
        if self.ts_deltas is None or ts >= self.last_ts:
            return self.count
        return int(np.searchsorted(self.ts_deltas, ts - self.first_ts, side="right"))

    def encode(self) -> list[Buffer]:
        """The buffers of the stored form, to be written one after the other."""
        columns = 0
        parts: list[Buffer] = [_bytes_of(self.ends), _bytes_of(self.data_lens)]
        if self.meta_lens is not None:
            columns |= HAS_META
            parts.append(_bytes_of(self.meta_lens))
        if self.ts_deltas is not None:
            columns |= HAS_TS
            parts.append(_bytes_of(self.ts_deltas))
        if self.tag_ends is not None:
            columns |= HAS_TAGS
            parts.append(_bytes_of(self.tag_ends))
        names = b""
        if self.node_ids is not None:
            columns |= HAS_NODES
            parts.append(_bytes_of(self.node_ids))
            names = encode_names(self.node_names)
            parts.append(names)
        if self.tag_ends is not None:
            parts.append(self.tags)
        parts.append(self.text)
        header = HEADER.pack(
            self.first_seq,
            self.first_ts,
            self.count,
            columns,
            len(self.node_names),
            len(names),
            len(self.tags),
            len(self.text),
            self.last_ts - self.first_ts,
        )
        return [header, *parts]


def encode_names(names: Iterable[bytes]) -> bytes:
    return b"".join(_NAME_LEN.pack(len(name)) + name for name in names)


def parse(body: Buffer) -> Block:
    """The block stored in `body`, its columns views of it. The caller has checked the frame's checksum.

    Raises `ValueError` or `struct.error` when the lengths do not add up to the body's own, or its seqs have no end.
    """
    first_seq, first_ts, count, columns, names_count, names_len, tags_len, text_len, last_delta = HEADER.unpack_from(
        body, 0
    )
    if first_seq + count - 1 > U64_MAX:
        raise ValueError(f"a block of {count} records from seq {first_seq}, and no seq is above {U64_MAX}")
    at = HEADER.size

    def column(present: int) -> U32 | None:
        nonlocal at
        if not present:
            return None
        at += 4 * count
        return np.frombuffer(body, "<u4", count, at - 4 * count)

    ends = column(1)
    data_lens = column(1)
    meta_lens = column(columns & HAS_META)
    ts_deltas = column(columns & HAS_TS)
    tag_ends = column(columns & HAS_TAGS)
    assert ends is not None and data_lens is not None
    node_ids: U16 | None = None
    names: tuple[bytes, ...] = ()
    if columns & HAS_NODES:
        node_ids = np.frombuffer(body, "<u2", count, at)
        at += 2 * count
        names = parse_names(bytes(body[at : at + names_len]), names_count)
        at += names_len
    tags = body[at : at + tags_len]
    at += tags_len
    check_length(body, at + text_len)
    return Block(
        first_seq,
        first_ts,
        first_ts + last_delta,
        ends,
        data_lens,
        body[at : at + text_len],
        meta_lens,
        ts_deltas,
        tag_ends,
        tags,
        node_ids,
        names,
    )


def check_length(body: Buffer, length: int) -> None:
    """Refuse a body that ends elsewhere than its columns and text do."""
    if len(body) != length:
        raise ValueError(f"a block of {len(body)} bytes, whose columns and text have {length}")


def parse_names(table: bytes, count: int) -> tuple[bytes, ...]:
    names = []
    at = 0
    for _ in range(count):
        (length,) = _NAME_LEN.unpack_from(table, at)
        at += _NAME_LEN.size
        names.append(table[at : at + length])
        at += length
    return tuple(names)


def concat(blocks: Sequence[Block]) -> Block:
    """One block of several whose seqs follow each other."""
    if len(blocks) == 1:
        return blocks[0]
    first = blocks[0]
    assert all(a.last_seq + 1 == b.first_seq for a, b in pairwise(blocks))
    last_ts = blocks[-1].last_ts
    text_starts = _starts([len(b.text) + 1 for b in blocks])
    return Block(
        first.first_seq,
        first.first_ts,
        last_ts,
        np.concatenate([b.ends + start for b, start in zip(blocks, text_starts, strict=True)]),
        np.concatenate([b.data_lens for b in blocks]),
        b",".join([b.text for b in blocks]),
        _concat_optional([b.meta_lens for b in blocks], [b.count for b in blocks]),
        None if last_ts == first.first_ts else _concat_ts(blocks),
        *_concat_tags(blocks),
        *_concat_nodes(blocks),
    )


def _starts(lengths: list[int]) -> list[np.uint32]:
    total = 0
    starts = []
    for length in lengths:
        starts.append(np.uint32(total))
        total += length
    return starts


def _concat_optional(columns: list[U32 | None], counts: list[int]) -> U32 | None:
    if all(column is None for column in columns):
        return None
    return np.concatenate([np.zeros(n, np.uint32) if c is None else c for c, n in zip(columns, counts, strict=True)])


def _concat_ts(blocks: Sequence[Block]) -> U32:
    base = blocks[0].first_ts
    parts = []
    for block in blocks:
        shift = np.uint32(block.first_ts - base)
        parts.append(np.full(block.count, shift, np.uint32) if block.ts_deltas is None else block.ts_deltas + shift)
    return np.concatenate(parts)


def _concat_tags(blocks: Sequence[Block]) -> tuple[U32 | None, Buffer]:
    if all(block.tag_ends is None for block in blocks):
        return None, b""
    starts = _starts([len(block.tags) for block in blocks])
    ends = [
        np.full(b.count, start, np.uint32) if b.tag_ends is None else b.tag_ends + start
        for b, start in zip(blocks, starts, strict=True)
    ]
    return np.concatenate(ends), b"".join([b.tags for b in blocks])


def _concat_nodes(blocks: Sequence[Block]) -> tuple[U16 | None, tuple[bytes, ...]]:
    if all(block.node_ids is None for block in blocks):
        return None, ()
    ids: dict[bytes, int] = {}
    parts = []
    for block in blocks:
        if block.node_ids is None:
            parts.append(np.zeros(block.count, np.uint16))
            continue
        mapping = np.array([0, *(ids.setdefault(name, len(ids) + 1) for name in block.node_names)], np.uint16)
        parts.append(mapping[block.node_ids])
    return np.concatenate(parts), tuple(ids)


def _bytes_of(column: U32 | U16) -> memoryview:
    return np.ascontiguousarray(column).data.cast("B")
