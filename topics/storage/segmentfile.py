"""The `.data` file of a segment: stretches of logs, written once, walked from front to back.

    FILE_HEADER  salt 0; msgpack {version, number, salt, created_ms}
    SECTION      position = section number; msgpack {log_id, topic, partition, epoch}
    BLOCK        position = first seq, mark = section number; a block (topics.core.block); trailing: one flag a record
    …            further blocks of the section, then further sections
    FILE_END     salt 0; msgpack {number, salt, sections, blocks, records}

A section is a stretch of one log: its blocks ascend, seqs may be missing between two blocks and never inside one.
A large log has segments with one section; the small logs of a checkpoint share one segment, a pack.

A flag is 0xD5 for a deleted record and 0x00 for a live one; any other value is damage, and no single flipped bit turns
one into the other. Flags stand behind the checksum and inside the
padded frame, so that one is set by writing one byte in place. Everything else never changes once the file has its name.

The file explains itself: with nothing else left, `scan` tells whose records it holds. The salt is repeated in the end,
because without it no checksum could be verified any more when the header is damaged.

Changing this format: add a version, read both, write the new one; a field may be added to the msgpack maps without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import msgspec

from topics.core import block as blocks
from topics.core.block import Block
from topics.core.run import DEAD, LIVE
from topics.errors import Damaged, NotUnderstood
from topics.storage import frame
from topics.storage.frame import OTHER_VERSION, Frame, Kind

FORMAT_VERSION = 1
DATA_SUFFIX = ".data"
INDEX_SUFFIX = ".idx"
DEAD_FLAG = bytes([DEAD])
LIVE_FLAG = bytes([LIVE])

END_BYTES_MAX = 256
"""The end frame is looked for in so many last bytes."""


OnDamage = Callable[[Damaged], None]


class SectionKey(msgspec.Struct, frozen=True):
    """Whose records a section holds."""

    log_id: int
    topic: str
    partition: int
    epoch: int


class DataHeader(msgspec.Struct, frozen=True):
    version: int
    number: int
    salt: int
    created_ms: int
    tells_gone: bool = False
    """Whether records that no snapshot names any more have their flags set, too: see `storage/gone.py`."""


class DataEnd(msgspec.Struct, frozen=True):
    number: int
    salt: int
    sections: int
    blocks: int
    records: int


@dataclass(frozen=True, slots=True)
class StoredBlock:
    """A block as it was found in a file, its checksum verified."""

    section_no: int
    key: SectionKey | None
    """None when the section's own frame is damaged; `log_id` is known all the same."""
    log_id: int
    block: Block
    flags: memoryview
    offset: int
    frame_bytes: int
    flags_at: int


_key_decoder = msgspec.msgpack.Decoder(SectionKey)
_header_decoder = msgspec.msgpack.Decoder(DataHeader)
_end_decoder = msgspec.msgpack.Decoder(DataEnd)


def data_name(number: int) -> str:
    return f"{number:012d}{DATA_SUFFIX}"


def index_name(number: int) -> str:
    return f"{number:012d}{INDEX_SUFFIX}"


def number_of(name: str) -> int | None:
    """The number of the segment a file name belongs to; None when it is no segment's file."""
    stem, dot, suffix = name.partition(".")
    return int(stem) if stem.isdecimal() and dot + suffix in (DATA_SUFFIX, INDEX_SUFFIX) else None


def read_header(path: str, start: memoryview, number: int) -> tuple[DataHeader, int]:
    """The header in a file's first bytes, and the offset behind it."""
    found = frame.parse(start, 0, 0)
    if found is None or found.kind != Kind.FILE_HEADER:
        raise Damaged(f"{path} offset 0: the file header of segment {number} is damaged", file=path, offset=0)
    try:
        header = _header_decoder.decode(found.body)
    except frame.UNREADABLE as error:
        raise Damaged(f"{path} is no segment: {error}", file=path, offset=0) from error
    if header.version != FORMAT_VERSION:
        raise NotUnderstood(
            f"{path} is in segment format {header.version}; this program reads format {FORMAT_VERSION}; "
            f"{OTHER_VERSION}",
            file=path,
            offset=0,
        )
    if header.number != number:
        raise Damaged(f"{path} holds segment {header.number}, not {number} as its name says", file=path, offset=0)
    return header, frame.padded(found.end)


def read_end(path: str, tail: memoryview, size_bytes: int) -> tuple[DataEnd, int]:
    """The end in a file's last bytes, and the offset where it begins."""
    tail_at = size_bytes - len(tail)
    last_at = (size_bytes - frame.OVERHEAD_BYTES) // frame.ALIGN * frame.ALIGN
    for offset in range(last_at, tail_at - 1, -frame.ALIGN):
        at = offset - tail_at
        if not frame.is_begun(tail, at):
            continue
        found = frame.parse(tail, at, 0)
        if found is not None and found.kind == Kind.FILE_END and frame.padded(tail_at + found.end) == size_bytes:
            try:
                return _end_decoder.decode(found.body), offset
            except frame.UNREADABLE as error:
                raise Damaged(
                    f"{path} offset {offset}: no end of a segment: {error}", file=path, offset=offset
                ) from error
    raise Damaged(
        f"{path} does not end with an end frame: its last bytes (of {size_bytes}) are cut off or damaged",
        file=path,
        offset=size_bytes,
    )


def stored_block(found: Frame, view: memoryview, key: SectionKey | None) -> StoredBlock:
    """The block of a frame; one of `frame.UNREADABLE` when that is not what its body holds."""
    block = blocks.parse(found.body)
    flags_end = found.end + block.count
    if flags_end > len(view):
        raise ValueError(f"the flags of {block.count} records end behind the file")
    return StoredBlock(
        found.mark,
        key,
        found.log_id,
        block,
        view[found.end : flags_end],
        found.offset,
        frame.padded(flags_end) - found.offset,
        found.end,
    )


def scan(path: str, view: memoryview, number: int, on_damage: OnDamage | None = None) -> Iterator[StoredBlock]:
    """Every block of a mapped file, verified, in order.

    The first damage is raised; with `on_damage` each one is handed over and the walk goes on behind it.
    """
    try:
        header, at = read_header(path, view, number)
        salt = header.salt
        end, end_at = read_end(path, view[-END_BYTES_MAX:], len(view))
        if end.salt != salt or end.number != number:
            raise Damaged(f"{path} offset {end_at}: the end frame is of another file", file=path, offset=end_at)
    except Damaged as damage:
        if on_damage is None:
            raise
        on_damage(damage)
        known_salt = salvaged_salt(path, view, number)
        if known_salt is None:
            return
        salt, at, end, end_at = known_salt, 0, None, len(view)
        at = frame.next_at(view, frame.ALIGN, end_at, salt)
    yield from _walk(path, view, at, end_at, salt, end, on_damage)


def _walk(
    path: str, view: memoryview, at: int, end_at: int, salt: int, end: DataEnd | None, on_damage: OnDamage | None
) -> Iterator[StoredBlock]:
    keys: dict[int, SectionKey] = {}
    block_count = record_count = 0
    previous: StoredBlock | None = None
    while at < end_at:
        found = frame.parse(view, at, salt)
        stored: StoredBlock | None = None
        readable = found is not None and found.kind in (Kind.SECTION, Kind.BLOCK)
        if found is not None and readable:
            try:
                if found.kind == Kind.SECTION:
                    keys[found.position] = _key_decoder.decode(found.body)
                else:
                    stored = stored_block(found, view, keys.get(found.mark))
            except frame.UNREADABLE:
                readable = False
        if found is None or not readable:
            resume_at = frame.next_at(view, at + frame.ALIGN, end_at, salt)
            _report(_gap(path, view, at, resume_at, salt, previous, keys), on_damage)
            at = resume_at
            end = None
            continue
        if stored is None:
            at = frame.padded(found.end)
            continue
        previous = stored
        at = previous.offset + previous.frame_bytes
        block_count += 1
        record_count += previous.block.count
        yield previous
    if end is not None and (end.sections, end.blocks, end.records) != (len(keys), block_count, record_count):
        message = (
            f"{path} ends with {end.blocks} blocks of {end.records} records in {end.sections} sections, "
            f"but holds {block_count} of {record_count} in {len(keys)}"
        )
        _report(Damaged(message, file=path, offset=end_at), on_damage)


def _report(damage: Damaged, on_damage: OnDamage | None) -> None:
    if on_damage is None:
        raise damage
    on_damage(damage)


def _gap(
    path: str,
    view: memoryview,
    at: int,
    resume_at: int,
    salt: int,
    previous: StoredBlock | None,
    keys: Mapping[int, SectionKey],
) -> Damaged:
    """What is lost between two offsets, as far as the undamaged neighbours tell, and else the frame's own header."""
    following = frame.parse(view, resume_at, salt)
    first_seq = last_seq = None
    key = previous.key if previous is not None else None
    if previous is not None:
        first_seq = previous.block.last_seq + 1
        if following is not None and following.kind == Kind.BLOCK and following.mark == previous.section_no:
            last_seq = following.position - 1
    elif (claim := _claim(view, at, keys)) is not None:
        key, first_seq, last_seq = claim
    topic = key.topic if key is not None else None
    seqs = f"seqs {'?' if first_seq is None else first_seq}..{'?' if last_seq is None else last_seq}"
    return Damaged(
        f"{path} offset {at}: {resume_at - at} bytes are damaged, at risk: {seqs} of topic {topic or '?'}",
        file=path,
        offset=at,
        first_seq=first_seq,
        last_seq=last_seq,
        topic=topic,
    )


def _claim(view: memoryview, at: int, keys: Mapping[int, SectionKey]) -> tuple[SectionKey, int, int] | None:
    """Whose records a damaged block says it holds: worth telling, not worth relying on."""
    body_at = at + frame.HEADER_BYTES
    if body_at + blocks.HEADER.size > len(view):
        return None
    magic, _, log_id, kind, _, _, first_seq, section_no = frame.HEADER.unpack_from(view, at)
    key = keys.get(section_no)
    if magic != frame.MAGIC or kind != Kind.BLOCK or key is None or key.log_id != log_id:
        return None
    _, _, count, *_ = blocks.HEADER.unpack_from(view, body_at)
    return key, first_seq, first_seq + count - 1


def salvaged_salt(path: str, view: memoryview, number: int) -> int | None:
    """The file's salt from whichever of header and end is undamaged."""
    try:
        return read_header(path, view, number)[0].salt
    except Damaged:
        pass
    try:
        end, _ = read_end(path, view[-END_BYTES_MAX:], len(view))
    except Damaged:
        return None
    return end.salt if end.number == number else None


def verify(path: str, view: memoryview, number: int) -> None:
    """Raise `Damaged` unless every frame of the file is what was written."""
    for _ in scan(path, view, number):
        pass
