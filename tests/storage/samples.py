"""Blocks and segments to test with, and a plain reading of them to compare with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from topics.core.block import Block
from topics.core.run import DEAD, Marks, Run
from topics.storage import frame
from topics.storage.fs import FileSystem
from topics.storage.index import Section
from topics.storage.maps import MapCache
from topics.storage.segment import Segment
from topics.storage.segmentfile import SectionKey, data_name, index_name
from topics.storage.segmentwriter import write_segment
from topics.storage.tier import Tiers

HOT = "/data/segments"
COLD = "/cold"
SALT = 0x1122334455667788
DATA = f"{HOT}/{data_name(1)}"
INDEX = f"{HOT}/{index_name(1)}"


@dataclass(frozen=True)
class Row:
    seq: int
    ts: int
    data: bytes
    meta: bytes | None = None
    tag: bytes = b""
    node: bytes | None = None

    @property
    def text(self) -> bytes:
        node = b'"$node":"%b",' % self.node if self.node else b""
        meta = b'"meta":%b,' % self.meta if self.meta else b""
        return b'{"$seq":%d,"$ts":%d,%b%b"data":%b}' % (self.seq, self.ts, node, meta, self.data)

    @property
    def size(self) -> int:
        return len(self.data) + len(self.meta or b"")


def block_of(rows: Sequence[Row]) -> Block:
    """A block as a write makes it: a column is there only when a record needs it."""
    names = sorted({row.node for row in rows if row.node})
    first_ts = rows[0].ts
    tags = [row.tag for row in rows]

    def column(values: Iterable[int]) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
        return np.array(list(values), np.uint32)

    return Block(
        rows[0].seq,
        first_ts,
        rows[-1].ts,
        (np.cumsum([len(row.text) + 1 for row in rows]) - 1).astype(np.uint32),
        column(len(row.data) for row in rows),
        b",".join(row.text for row in rows),
        column(len(row.meta or b"") for row in rows) if any(row.meta for row in rows) else None,
        column(row.ts - first_ts for row in rows) if rows[-1].ts != first_ts else None,
        column(np.cumsum([len(tag) for tag in tags])) if any(tags) else None,
        b"".join(tags),
        np.array([names.index(row.node) + 1 if row.node else 0 for row in rows], np.uint16) if names else None,
        tuple(names),
    )


def rows_of(block: Block, marks: Marks | None = None) -> list[Row]:
    """The live records of a block; that their text says the same as their columns is asserted."""
    rows = []
    for index in range(block.count):
        if marks is not None and marks[index] == DEAD:
            continue
        row = Row(
            block.first_seq + index,
            block.ts(index),
            block.data(index),
            block.meta(index),
            block.tag(index),
            block.node(index),
        )
        assert bytes(block.text[block.start(index) : int(block.ends[index])]) == row.text
        rows.append(row)
    return rows


def simple_rows(first_seq: int, count: int, ts: int = 1000, tag: bytes = b"") -> list[Row]:
    return [Row(seq, ts + seq, b'{"x":%d}' % seq, tag=tag) for seq in range(first_seq, first_seq + count)]


def live_rows(run: Run) -> list[Row]:
    """Every live record of a run, read block by block."""
    rows: list[Row] = []
    seq = run.first_seq
    while seq <= run.last_seq:
        block, marks = run.block_at(seq)
        assert block.last_seq >= seq
        rows += rows_of(block, marks)
        seq = block.last_seq + 1
    return rows


def key(log_id: int, topic: str = "orders") -> SectionKey:
    return SectionKey(log_id, topic, 0, 1)


def write(
    fs: FileSystem, number: int, sections: Sequence[tuple[SectionKey, Sequence[Sequence[Row]]]]
) -> tuple[Section, ...]:
    """A segment of sections of blocks of rows."""
    fs.make_dir(HOT)
    contents = ((key, ((block_of(rows), None) for rows in stretch)) for key, stretch in sections)
    return write_segment(fs, HOT, number, SALT + number, 1_700_000_000_000, contents)


def sample(fs: FileSystem) -> dict[int, list[Row]]:
    """Segment 1: one section with every column, one with none; its rows by log."""
    sections = {
        7: [Row(seq, 10 + seq, b'{"n":%d}' % seq, b'{"k":"v"}', b"tag-%d" % (seq % 3), b"n1") for seq in range(1, 5)],
        8: [Row(seq, 20, b"%d" % seq) for seq in range(5, 8)],
    }
    write(fs, 1, [(key(log_id, f"t{log_id}"), [rows]) for log_id, rows in sections.items()])
    return sections


def reopen(fs: FileSystem, number: int, budget_bytes: int = 1 << 30, *, cold: bool = False) -> Segment:
    tiers = Tiers(fs, HOT, COLD if cold else None)
    return Segment.open(fs, tiers.find, number, MapCache(fs, budget_bytes))


def read_bytes(fs: FileSystem, path: str) -> bytes:
    file = fs.open(path, "read")
    try:
        return file.read_at(0, file.size())
    finally:
        file.close()


def replace_bytes(fs: FileSystem, path: str, content: bytes) -> None:
    """Make `content` the whole file."""
    fs.unlink(path)
    file = fs.open(path, "create")
    file.write_at(0, [content])
    file.close()


def flip(fs: FileSystem, path: str, offset: int, mask: int = 0xFF) -> None:
    file = fs.open(path, "write")
    (byte,) = file.read_at(offset, 1)
    file.write_at(offset, [bytes([byte ^ mask])])
    file.close()


def reword(fs: FileSystem, path: str, kind: frame.Kind, body: bytes, salt: int = SALT + 1) -> None:
    """Give the first frame of a kind another body, and the checksum of that."""
    content = read_bytes(fs, path)
    places = [(at, seed) for at in range(0, len(content), frame.ALIGN) for seed in (0, salt)]
    found = ((frame.parse(memoryview(content), at, seed), seed) for at, seed in places)
    old, seed = next((old, seed) for old, seed in found if old is not None and old.kind == kind)
    new = frame.build(kind, old.log_id, old.position, old.mark, [body], seed, flags=old.flags, trailer=old.trailer)
    replace_bytes(fs, path, b"".join([content[: old.offset], *new, content[frame.padded(old.end) :]]))


_data = st.sampled_from([b"1", b"null", b'"caf\xc3\xa9"', b'{"a":[1,2]}', b'"' + b"y" * 300 + b'"'])
_tag = st.sampled_from([b"", b"", b"a", b"ab", b"ab:1", b"b", b"\x00", b"a\x00", b"\xc3\xa9"])
_fields = st.tuples(
    st.integers(0, 3),
    _data,
    st.sampled_from([None, None, b'{"k":"v"}', b"{}"]),
    _tag,
    st.sampled_from([None, None, b"n1", b"node-2"]),
)


@st.composite
def stretches(draw: st.DrawFn) -> list[list[Row]]:
    """The blocks of one section, with seqs missing between some of them and now and then a leap in time."""
    seq = draw(st.integers(1, 5))
    ts = draw(st.integers(0, 10**12))
    result = []
    for rows in draw(st.lists(st.lists(_fields, min_size=1, max_size=6), min_size=1, max_size=6)):
        made = []
        for step_ms, data, meta, tag, node in rows:
            ts += step_ms
            made.append(Row(seq, ts, data, meta, tag, node))
            seq += 1
        result.append(made)
        seq += draw(st.sampled_from([0, 0, 0, 1, 50]))
        ts += draw(st.sampled_from([0, 0, 1, 2**32 + 5]))
    return result
