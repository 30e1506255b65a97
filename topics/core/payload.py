"""Records of one log on their way into others: cut out once, shared by all copies.

A `Stretch` is a piece of the source's log in memory. A `Selection` is some of its records in the shape that a router
gives them. The text of a record begins with its seq and time, which differ from copy to copy; all behind them is the
same. So a copy is made by putting other numbers before the old text, for all records of a selection at once, and
destinations that are equally far share even that.

A large selection is not written into a destination's tail. Its log gets a `CopiedRun`, which shares everything with all
other copies and makes its text only when somebody looks.
"""

from __future__ import annotations

from array import array
from functools import cached_property
from typing import Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from topics.core.block import U16, U32, Block, Buffer
from topics.core.digits import digit_counts
from topics.core.encoded import EncodedRecords
from topics.core.records import FEW
from topics.core.run import MemoryRun
from topics.core.stamp import Stamp
from topics.limits import TAIL_BATCH_BYTES_MAX, TAIL_BATCH_RECORDS_MAX

I64 = npt.NDArray[np.int64]

_SEQ_AT: Final = len('{"$seq":')
_BETWEEN: Final = len(',"$ts":')


class Shape(NamedTuple):
    """What is different in a copy."""

    drops_node: bool = False
    drops_tag: bool = False
    stamp: str = ""
    """What stands before the seq in the stamp; empty for none."""


class Selection:
    """Some records of a block, to be copied. What depends on neither seq nor time is made once, when it is needed."""

    def __init__(self, block: Block, chosen: I64 | None, shape: Shape) -> None:
        """`block` is in memory and does not change; `chosen` are positions in it, None for all."""
        self._block = block
        self._chosen = chosen
        self._shape = shape
        self._stamp = Stamp(block, chosen, shape.stamp) if shape.stamp else None
        self._last: tuple[int, int, EncodedRecords] | None = None
        self._last_columns: Block | None = None
        self.count = block.count if chosen is None else len(chosen)
        self.data_lens = _pick(block.data_lens, chosen)
        self.meta_lens = None if block.meta_lens is None else _pick(block.meta_lens, chosen)
        if self._stamp is not None:
            self.meta_lens = self._stamp.meta_lens
        sizes = self.data_lens if self.meta_lens is None else self.data_lens + self.meta_lens
        self.payload_bytes = int(sizes.sum(dtype=np.uint64))

    @property
    def is_small(self) -> bool:
        """Whether a log takes it into its tail."""
        return self.count <= TAIL_BATCH_RECORDS_MAX and self.text_bytes <= TAIL_BATCH_BYTES_MAX

    @property
    def is_costly(self) -> bool:
        """Whether each of its records was looked at by itself."""
        return self._stamp is not None and not self._stamp.is_usual

    @property
    def text_bytes(self) -> int:
        """About how long the text of a copy is."""
        block = self._block
        return len(block.text) if self._chosen is None else len(block.text) * self.count // block.count

    def encoded(self, first_seq: int, ts: int) -> EncodedRecords:
        """The copies with seqs from `first_seq` on. On any thread."""
        last = self._last
        if last is not None and last[:2] == (first_seq, ts):
            return last[2]
        made = self._encode(first_seq, ts)
        self._last = first_seq, ts, made
        return made

    def columns(self, first_seq: int, ts: int) -> Block:
        """A block of the copies that lacks the text, and where each one ends in it."""
        last = self._last_columns
        if last is not None and last.first_seq == first_seq and last.first_ts == ts:
            return last
        tag_ends, tags = self._tags
        node_ids, names = self._nodes
        self._last_columns = made = Block(
            first_seq,
            ts,
            ts,
            self.data_lens,
            self.data_lens,
            b"",
            self.meta_lens,
            None,
            tag_ends,
            tags,
            node_ids,
            names,
        )
        return made

    def _encode(self, first_seq: int, ts: int) -> EncodedRecords:
        if self.count <= FEW:
            template = b'{"$seq":%%d,"$ts":%d,%%b' % ts
            seqs = range(first_seq, first_seq + self.count)
            texts = [template % pair for pair in zip(seqs, self._rests, strict=True)]
            text = b",".join(texts)
            ends = array("I", np.cumsum([len(part) + 1 for part in texts], dtype=np.uint32).tobytes())
            return self._with_columns(first_seq, ts, text, array("I", [end - 1 for end in ends]))
        text, ends_column = self._renumbered(first_seq, ts) or self._rewritten(first_seq, ts)
        return self._with_columns(first_seq, ts, text, array("I", ends_column.tobytes()))

    def _with_columns(self, first_seq: int, ts: int, text: bytes, ends: array[int]) -> EncodedRecords:
        tag_ends, tags = self._tags
        node_ids, names = self._nodes
        return EncodedRecords(
            first_seq,
            ts,
            text,
            ends,
            array("I", self.data_lens.tobytes()),
            self.payload_bytes,
            None if self.meta_lens is None else array("I", self.meta_lens.tobytes()),
            None if tag_ends is None else array("I", tag_ends.tobytes()),
            tags,
            None if node_ids is None else array("H", node_ids.tobytes()),
            names,
        )

    def _renumbered(self, first_seq: int, ts: int) -> tuple[bytes, U32] | None:
        """The old text with other digits in the same places, when all of it is copied and all numbers are as long."""
        block = self._block
        seq_digits = {len(str(seq)) for seq in (first_seq, first_seq + self.count - 1, block.first_seq, block.last_seq)}
        ts_digits = {len(str(each)) for each in (ts, block.first_ts, block.last_ts)}
        changed = self._chosen is not None or self._shape.drops_node or self._stamp is not None
        if changed or len(seq_digits) + len(ts_digits) > 2:
            return None
        (digits,) = seq_digits
        text = np.frombuffer(block.text, np.uint8).copy()
        starts = _starts(block)
        seqs = np.arange(first_seq, first_seq + self.count, dtype=np.uint64)
        for place in range(digits - 1, -1, -1):
            seqs, digit = np.divmod(seqs, np.uint64(10))
            text[starts + (_SEQ_AT + place)] = digit.astype(np.uint8) + np.uint8(ord("0"))
        for place, character in enumerate(b"%d" % ts):
            text[starts + (_SEQ_AT + digits + _BETWEEN + place)] = character
        return text.tobytes(), block.ends

    def _rewritten(self, first_seq: int, ts: int) -> tuple[bytes, U32]:
        """New numbers before the rest of each record, by one format operation."""
        rests = self._cut_rests()
        template = b',{"$seq":%%d,"$ts":%d,%%b' % ts
        fields: list[object] = [None] * (2 * self.count)
        fields[::2] = range(first_seq, first_seq + self.count)
        fields[1::2] = rests
        text: bytes = (template[1:] + template * (self.count - 1)) % tuple(fields)
        sizes = np.fromiter(map(len, rests), np.uint32, self.count)
        sizes += digit_counts(np.arange(first_seq, first_seq + self.count, dtype=np.uint64))
        sizes += np.uint32(len(template % (0, b"")) - 1)
        return text, np.cumsum(sizes, dtype=np.uint32) - np.uint32(1)

    @cached_property
    def _rests(self) -> list[bytes]:
        return self._cut_rests()

    def _cut_rests(self) -> list[bytes]:
        """The text of each record behind its time, with or without its node, and with its stamp."""
        block = self._block
        begins = _starts(block) + (_SEQ_AT + _BETWEEN + 1)
        begins += digit_counts(np.arange(block.first_seq, block.last_seq + 1, dtype=np.uint64))
        if block.ts_deltas is None:
            begins += len(str(block.first_ts))
        else:
            begins += digit_counts(block.ts_deltas.astype(np.uint64) + np.uint64(block.first_ts))
        if self._shape.drops_node and block.node_ids is not None:
            heads = [0, *(len(_node_head(name)) for name in block.node_names)]
            begins += np.array(heads, np.int64)[block.node_ids]
        ends = block.ends
        if self._chosen is not None:
            begins, ends = begins[self._chosen], ends[self._chosen]
        if self._stamp is not None:
            return self._stamp.rests(begins.tolist())
        text = bytes(block.text)
        return [text[begin:end] for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)]

    @cached_property
    def _tags(self) -> tuple[U32 | None, bytes]:
        block = self._block
        if self._shape.drops_tag or block.tag_ends is None:
            return None, b""
        if self._chosen is None:
            return block.tag_ends, bytes(block.tags)
        tags = block.tag_list()
        picked = [tags[index] for index in self._chosen.tolist()]
        return np.cumsum([len(tag) for tag in picked], dtype=np.uint32), b"".join(picked)

    @cached_property
    def _nodes(self) -> tuple[U16 | None, tuple[bytes, ...]]:
        block = self._block
        if self._shape.drops_node or block.node_ids is None:
            return None, ()
        return (block.node_ids if self._chosen is None else block.node_ids[self._chosen]), block.node_names


class CopiedRun(MemoryRun):
    """A run of copies; its text is made when it is looked at, and not kept for long."""

    def __init__(self, selection: Selection, first_seq: int, ts: int) -> None:
        super().__init__(selection.columns(first_seq, ts), None, selection.payload_bytes)
        self._selection = selection

    @property
    def block(self) -> Block:
        return self._selection.encoded(self.first_seq, self.first_ts).as_block()

    @property
    def text_bytes(self) -> int:
        return self._selection.text_bytes


def slice_block(block: Block, start: int, end: int, copied: bool) -> Block:
    """The records from `start` to before `end`, as views or, `copied`, in memory of their own."""
    if start == 0 and end == block.count and not copied:
        return block
    text_start = block.start(start)
    ends = block.ends[start:end] - np.uint32(text_start)
    tag_ends, tags = None, memoryview(b"")
    if block.tag_ends is not None:
        tags_start = int(block.tag_ends[start - 1]) if start else 0
        tag_ends = block.tag_ends[start:end] - np.uint32(tags_start)
        tags = memoryview(block.tags)[tags_start : int(block.tag_ends[end - 1])]
    text: Buffer = memoryview(block.text)[text_start : int(block.ends[end - 1])]
    first_ts, last_ts = block.ts(start), block.ts(end - 1)
    return Block(
        block.first_seq + start,
        first_ts,
        last_ts,
        ends,
        _slice(block.data_lens, start, end, copied),
        bytes(text) if copied else text,
        None if block.meta_lens is None else _slice(block.meta_lens, start, end, copied),
        None if block.ts_deltas is None else block.ts_deltas[start:end] - np.uint32(first_ts - block.first_ts),
        tag_ends,
        bytes(tags),
        None if block.node_ids is None else block.node_ids[start:end].copy(),
        block.node_names,
    )


def _slice(column: U32, start: int, end: int, copied: bool) -> U32:
    return column[start:end].copy() if copied else column[start:end]


def _pick(column: U32, chosen: I64 | None) -> U32:
    return column if chosen is None else column[chosen]


def _starts(block: Block) -> I64:
    """Where each record begins in the text."""
    starts = np.zeros(block.count, np.int64)
    starts[1:] = block.ends[:-1]
    starts[1:] += 1
    return starts


def _node_head(name: bytes) -> bytes:
    return b'"$node":%b,' % msgspec.json.encode(name.decode())
