"""New segments made of old ones: packs merged, deleted records erased.

Both read the files themselves, with a map cache of their own, so they run beside the loop: what is copied is what the
files hold. A mark that is made meanwhile is pending in the old run; whoever puts the new run in its place marks
`old.pending_seqs()` there. The old segment is removed, or shredded, only when it is recorded durably that the new one
has taken its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from topics.core.block import U16, U32, Block, Buffer
from topics.core.run import Marks, alive
from topics.storage.fs import FileSystem
from topics.storage.index import Section
from topics.storage.maps import Finder, MapCache
from topics.storage.segment import Segment
from topics.storage.segmentfile import DEAD_FLAG, SectionKey, data_name, index_name
from topics.storage.segmentwriter import write_segment
from topics.storage.tier import Tiers, shred

MERGE_MAP_BYTES = 256 << 20
"""How much of the sources is mapped at a time."""

Bools = npt.NDArray[np.bool_]


def copy_sections(
    fs: FileSystem,
    find: Finder,
    directory: str,
    new_number: int,
    salt: int,
    created_ms: int,
    sources: Sequence[tuple[SectionKey, Sequence[tuple[int, int]]]],
    blank_dead: bool = False,
    lows: Mapping[int, int] = MappingProxyType({}),
) -> tuple[Section, ...]:
    """Copy sections into a new segment: for each new section its key, and the sections it is made of.

    A source is named by segment and section number; the sources of one new section follow each other without a missing
    seq, and their marks have been written. Records below the seq that `lows` names for their log are copied as deleted.
    With `blank_dead`, nothing of deleted records but their sizes and times is in the new files. Raises `Damaged` when a
    source is.
    """
    maps = MapCache(fs, MERGE_MAP_BYTES)
    try:
        numbers = sorted({number for _, parts in sources for number, _ in parts})
        opened = {number: Segment.open(fs, find, number, maps) for number in numbers}
        contents = (
            (
                key,
                _blocks(
                    [(opened[number], section_no) for number, section_no in parts], blank_dead, lows.get(key.log_id, 0)
                ),
            )
            for key, parts in sources
        )
        return write_segment(fs, directory, new_number, salt, created_ms, contents)
    finally:
        maps.clear()


def shred_segment(fs: FileSystem, tiers: Tiers, number: int) -> None:
    """Overwrite and unlink both files of a segment wherever they are; the names are gone durably on return.

    Views of its mappings show zeros from here on: nobody may be reading it any more.
    """
    for directory in tiers.directories():
        paths = [f"{directory}/{name}" for name in (data_name(number), index_name(number))]
        present = [path for path in paths if fs.exists(path)]
        for path in present:
            shred(fs, path)
        if present:
            fs.sync_dir(directory)


def _blocks(parts: Sequence[tuple[Segment, int]], blank_dead: bool, low: int) -> Iterator[tuple[Block, Marks | None]]:
    for segment, section_no in parts:
        section = segment.sections[section_no]
        run = segment.run(section_no, section.count, section.payload_bytes)
        seq = run.first_seq
        while seq <= run.last_seq:
            block, marks = run.block_at(seq)
            if block.first_seq < low:
                gone = min(block.count, low - block.first_seq)
                marks = bytearray(marks or block.count)
                marks[:gone] = DEAD_FLAG * gone
            yield (blank(block, marks) if blank_dead else block), marks
            seq = block.last_seq + 1


def blank(block: Block, marks: Marks | None) -> Block:
    """The block without text, tags and nodes of its dead records; their columns keep their shape."""
    if marks is None:
        return block
    live = alive(marks)
    text = bytearray(block.text)
    for index in np.nonzero(~live)[0].tolist():
        start, end = block.start(index), int(block.ends[index])
        text[start:end] = b" " * (end - start)
    tag_ends, tags = _blank_tags(block, live)
    node_ids, node_names = _blank_nodes(block, live)
    return Block(
        block.first_seq,
        block.first_ts,
        block.last_ts,
        block.ends,
        block.data_lens,
        bytes(text),
        block.meta_lens,
        block.ts_deltas,
        tag_ends,
        tags,
        node_ids,
        node_names,
    )


def _blank_tags(block: Block, live: Bools) -> tuple[U32 | None, Buffer]:
    if block.tag_ends is None:
        return None, b""
    tags = [tag if alive else b"" for tag, alive in zip(block.tag_list(), live.tolist(), strict=True)]
    if not any(tags):
        return None, b""
    return np.cumsum(np.fromiter(map(len, tags), np.uint32, block.count), dtype=np.uint32), b"".join(tags)


def _blank_nodes(block: Block, live: Bools) -> tuple[U16 | None, tuple[bytes, ...]]:
    if block.node_ids is None:
        return None, ()
    ids = np.where(live, block.node_ids, np.uint16(0))
    used = [number for number in np.unique(ids).tolist() if number]
    if not used:
        return None, ()
    renumbered = np.zeros(len(block.node_names) + 1, np.uint16)
    renumbered[used] = np.arange(1, len(used) + 1, dtype=np.uint16)
    return renumbered[ids], tuple(block.node_names[number - 1] for number in used)
