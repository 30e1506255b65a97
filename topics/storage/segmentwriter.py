"""Writing a segment: sections of blocks in, a durable pair of `.data` and `.idx` out.

Neighbouring small blocks of a section are joined into one, since a checkpoint hands over one block a write and a read
wants few and long ones. Both files are drafts until both are durable; the index gets its name first, so that a `.data`
file, which is what makes a segment exist, normally finds its index beside it.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType

import msgspec

from topics.core.block import TS_SPAN_MS_MAX, Block, concat
from topics.core.run import Marks
from topics.limits import BLOCK_RECORDS, BLOCK_TEXT_BYTES, U16_MAX
from topics.storage import frame
from topics.storage.draft import Draft
from topics.storage.frame import Kind
from topics.storage.fs import FileSystem
from topics.storage.index import IndexBuilder, Section
from topics.storage.segmentfile import (
    FORMAT_VERSION,
    DataEnd,
    DataHeader,
    SectionKey,
    StoredBlock,
    data_name,
    index_name,
)

_NO_FLAGS = memoryview(b"")


class SegmentWriter:
    """`section`, `add` its blocks, the next `section` …, `finish`. A context manager: an error discards the files."""

    def __init__(self, fs: FileSystem, directory: str, number: int, salt: int, created_ms: int) -> None:
        self._fs = fs
        self._directory = directory
        self._number = number
        self._salt = salt
        self._data = Draft(fs, f"{directory}/{data_name(number)}")
        self._index = IndexBuilder(number, salt)
        self._key: SectionKey | None = None
        self._section_no = -1
        self._section_written = False
        self._last_seq = 0
        self._blocks = 0
        self._records = 0
        self._waiting = _Joined()
        header = msgspec.msgpack.encode(DataHeader(FORMAT_VERSION, number, salt, created_ms, tells_gone=True))
        self._data.append(frame.build(Kind.FILE_HEADER, 0, 0, 0, [header], 0))

    def section(self, key: SectionKey) -> None:
        """Begin a section; one that gets no block is not written at all."""
        self._write_waiting()
        self._key = key
        self._section_no += self._section_written or self._section_no < 0
        self._section_written = False
        self._last_seq = -1

    def add(self, block: Block, marks: Marks | None = None) -> None:
        """The next block of the section; its seqs are all above those of the last one."""
        assert self._key is not None, "a block belongs to a section"
        assert block.first_seq > self._last_seq, "the blocks of a section ascend"
        self._last_seq = block.last_seq
        if not self._waiting.takes(block):
            self._write_waiting()
        self._waiting.add(block, marks)

    def _write_waiting(self) -> None:
        if not self._waiting.blocks:
            return
        block, flags = self._waiting.join()
        self._waiting = _Joined()
        assert self._key is not None
        log_id = self._key.log_id
        if not self._section_written:
            key = msgspec.msgpack.encode(self._key)
            self._data.append(frame.build(Kind.SECTION, log_id, self._section_no, 0, [key], self._salt))
            self._section_written = True
        buffers = frame.build(
            Kind.BLOCK, log_id, block.first_seq, self._section_no, block.encode(), self._salt, trailing=flags
        )
        offset = self._data.append(buffers)
        flags_at = self._data.length_bytes - len(buffers[-1]) + frame.CHECKSUM.size
        self._index.add(
            self._key,
            StoredBlock(
                self._section_no,
                self._key,
                log_id,
                block,
                _NO_FLAGS,
                offset,
                self._data.length_bytes - offset,
                flags_at,
            ),
        )
        self._blocks += 1
        self._records += block.count

    def finish(self) -> tuple[Section, ...]:
        """Make the segment durable under its name; the sections it has."""
        self._write_waiting()
        assert self._blocks, "a segment holds something"
        sections = self._section_no + self._section_written
        end = msgspec.msgpack.encode(DataEnd(self._number, self._salt, sections, self._blocks, self._records))
        self._data.append(frame.build(Kind.FILE_END, 0, 0, 0, [end], 0))
        self._data.seal()
        with Draft(self._fs, f"{self._directory}/{index_name(self._number)}") as index:
            index.append(self._index.finish(self._data.length_bytes))
            index.seal()
            index.publish()
        self._data.publish()
        self._fs.sync_dir(self._directory)
        return tuple(self._index.sections)

    def __enter__(self) -> SegmentWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._data.__exit__(kind, error, trace)


class _Joined:
    """Neighbouring blocks that will be written as one."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._marks: list[Marks | None] = []
        self._count = 0
        self._text_bytes = 0
        self._names = 0

    def takes(self, block: Block) -> bool:
        if not self.blocks:
            return True
        first, last = self.blocks[0], self.blocks[-1]
        return (
            last.last_seq + 1 == block.first_seq
            and self._count + block.count <= BLOCK_RECORDS
            and self._text_bytes + len(block.text) < BLOCK_TEXT_BYTES
            and self._names + len(block.node_names) <= U16_MAX
            and last.last_ts <= block.first_ts
            and block.last_ts - first.first_ts <= TS_SPAN_MS_MAX
        )

    def add(self, block: Block, marks: Marks | None) -> None:
        self.blocks.append(block)
        self._marks.append(marks)
        self._count += block.count
        self._text_bytes += len(block.text) + 1
        self._names += len(block.node_names)

    def join(self) -> tuple[Block, bytes]:
        flags = b"".join(
            bytes(block.count) if marks is None else marks
            for block, marks in zip(self.blocks, self._marks, strict=True)
        )
        return concat(self.blocks), flags


def write_segment(
    fs: FileSystem,
    directory: str,
    number: int,
    salt: int,
    created_ms: int,
    sections: Iterable[tuple[SectionKey, Iterable[tuple[Block, Marks | None]]]],
) -> tuple[Section, ...]:
    """A whole segment at once."""
    with SegmentWriter(fs, directory, number, salt, created_ms) as writer:
        for key, blocks in sections:
            writer.section(key)
            for block, marks in blocks:
                writer.add(block, marks)
        return writer.finish()
