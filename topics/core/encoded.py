"""A batch as a log stores it: the columns of a block in plain arrays.

This is the form records have between the write that brought them and the tail, WAL frame or block that holds them; it
is written and read back without numpy, whose cost a call would be most of the cost of a one-record write.
"""

from __future__ import annotations

from array import array

import numpy as np

from topics.core import block as blocks
from topics.core.block import Block, Buffer

assert array("I").itemsize == 4 and array("H").itemsize == 2
assert np.dtype("<u4").isnative, "columns are stored as they lie in memory, and the format is little endian"


class EncodedRecords:
    """Records with consecutive seqs and one timestamp: the columns of a block, before any numpy array is made."""

    __slots__ = (
        "count",
        "data_lens",
        "ends",
        "first_seq",
        "meta_lens",
        "node_ids",
        "node_names",
        "payload_bytes",
        "tag_ends",
        "tags",
        "text",
        "ts",
    )

    def __init__(
        self,
        first_seq: int,
        ts: int,
        text: bytes,
        ends: array[int],
        data_lens: array[int],
        payload_bytes: int,
        meta_lens: array[int] | None = None,
        tag_ends: array[int] | None = None,
        tags: bytes = b"",
        node_ids: array[int] | None = None,
        node_names: tuple[bytes, ...] = (),
    ) -> None:
        self.first_seq = first_seq
        self.ts = ts
        self.count = len(ends)
        self.text = text
        self.ends = ends
        self.data_lens = data_lens
        self.payload_bytes = payload_bytes
        self.meta_lens = meta_lens
        self.tag_ends = tag_ends
        self.tags = tags
        self.node_ids = node_ids
        self.node_names = node_names

    @classmethod
    def plain(cls, seq: int, ts: int, text: bytes, data_len: int) -> EncodedRecords:
        """One record without tag, node and meta."""
        return cls(seq, ts, text, array("I", (len(text),)), array("I", (data_len,)), data_len)

    @property
    def last_seq(self) -> int:
        return self.first_seq + self.count - 1

    def tag_list(self) -> list[bytes]:
        """All tags in record order, empty where there is none."""
        if self.tag_ends is None:
            return [b""] * self.count
        tags = self.tags
        return [tags[start:end] for start, end in zip([0, *self.tag_ends], self.tag_ends, strict=False)]

    def block_buffers(self) -> list[Buffer]:
        """The stored form of the block, as `Block.encode` would write it."""
        columns = 0
        parts: list[Buffer] = [b"", self.ends.tobytes(), self.data_lens.tobytes()]
        names = b""
        if self.meta_lens is not None:
            columns |= blocks.HAS_META
            parts.append(self.meta_lens.tobytes())
        if self.tag_ends is not None:
            columns |= blocks.HAS_TAGS
            parts.append(self.tag_ends.tobytes())
        if self.node_ids is not None:
            columns |= blocks.HAS_NODES
            names = blocks.encode_names(self.node_names)
            parts += (self.node_ids.tobytes(), names)
        if self.tag_ends is not None:
            parts.append(self.tags)
        parts.append(self.text)
        parts[0] = blocks.HEADER.pack(
            self.first_seq,
            self.ts,
            self.count,
            columns,
            len(self.node_names),
            len(names),
            len(self.tags),
            len(self.text),
            0,
        )
        return parts

    @classmethod
    def parse(cls, body: Buffer) -> EncodedRecords:
        """The batch whose `block_buffers` were stored. The caller has checked the frame's checksum.

        Raises `ValueError` or `struct.error` when that is not what they are.
        """
        first_seq, ts, count, columns, names_count, names_len, tags_len, text_len, _ = blocks.HEADER.unpack_from(body)
        if columns & blocks.HAS_TS:
            raise ValueError("a batch has one timestamp")
        at = blocks.HEADER.size

        def take(length: int) -> bytes:
            # A copy: the batch outlives the file it is read from.
            nonlocal at
            at += length
            return bytes(body[at - length : at])

        ends = array("I", take(4 * count))
        data_lens = array("I", take(4 * count))
        meta_lens = array("I", take(4 * count)) if columns & blocks.HAS_META else None
        tag_ends = array("I", take(4 * count)) if columns & blocks.HAS_TAGS else None
        node_ids = array("H", take(2 * count)) if columns & blocks.HAS_NODES else None
        names = blocks.parse_names(take(names_len), names_count)
        tags = take(tags_len)
        blocks.check_length(body, at + text_len)
        payload_bytes = sum(data_lens) if meta_lens is None else sum(data_lens) + sum(meta_lens)
        return cls(
            first_seq, ts, take(text_len), ends, data_lens, payload_bytes, meta_lens, tag_ends, tags, node_ids, names
        )

    def as_block(self) -> Block:
        """The same as a block; its columns share memory with these."""
        return Block(
            self.first_seq,
            self.ts,
            self.ts,
            np.frombuffer(self.ends, np.uint32),
            np.frombuffer(self.data_lens, np.uint32),
            self.text,
            None if self.meta_lens is None else np.frombuffer(self.meta_lens, np.uint32),
            None,
            None if self.tag_ends is None else np.frombuffer(self.tag_ends, np.uint32),
            self.tags,
            None if self.node_ids is None else np.frombuffer(self.node_ids, np.uint16),
            self.node_names,
        )
