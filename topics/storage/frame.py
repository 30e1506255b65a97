"""One frame format for every byte we store: WAL, segments, indexes and snapshots.

    0   magic      u32   0x31465054 ("TPF1"), so that a scan finds the next frame after damage
    4   body_len   u32
    8   log_id     u32   0 is the meta log
    12  kind       u8    what the body is (`Kind`)
    13  flags      u8    free for the kind
    14  trailer    u16   free for the kind
    16  position   u64   WAL: the log's position. Segment: first seq of the block. Snapshot: entry number
    24  mark       u64   WAL: bytes of this file known synced when the frame was written. Else free for the kind
    32  body       body_len bytes
    ..  checksum   u64   XXH3-64 over header and body, seeded with the file's salt
    ..  trailing   bytes outside the checksum (segments: one delete flag per record)
    ..  padding    zeros to a multiple of 8

All numbers are little endian. The salt is drawn when a file is made, so a stale frame in a reused disk block never
passes for one of this file.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import msgspec
from xxhash import xxh3_64, xxh3_64_intdigest

MAGIC = 0x31465054
HEADER = struct.Struct("<IIIBBHQQ")
HEADER_BYTES = HEADER.size
CHECKSUM = struct.Struct("<Q")
OVERHEAD_BYTES = HEADER_BYTES + CHECKSUM.size
ALIGN = 8

JOIN_BYTES_MAX = 32 * 1024
"""Bodies up to this size are copied behind their header: one short copy is cheaper than several buffers."""

_PIECE_BYTES = 64 * 1024
"""So much is searched at once for the next frame behind damage; a multiple of `ALIGN`."""

UNREADABLE = (ValueError, struct.error, msgspec.DecodeError, RecursionError)
"""What reading a body raises that is not what its kind says. Its checksum is right, so its writer knew more than we."""

OTHER_VERSION = "most likely a newer version has written it; open the directory with that one"
"""What to do about bytes that are `NotUnderstood`."""

_MAGIC_BYTES = struct.pack("<I", MAGIC)
_PADDING = tuple(bytes(n) for n in range(ALIGN))


class Kind(IntEnum):
    """What a frame's body is. Numbers are for ever; a retired one is never used again."""

    FILE_HEADER = 1
    FILE_END = 2
    SYNC_MARK = 3
    TRIMMED = 4
    APPENDED = 10
    FACT = 11
    SECTION = 20
    BLOCK = 21
    BLOCK_TABLE = 22
    TAG_TABLE = 23
    PUT = 30
    REMOVE = 31


assert HEADER_BYTES == 32


@dataclass(frozen=True, slots=True)
class Frame:
    """A parsed frame; `body` is a view into the buffer it was parsed from."""

    kind: int
    flags: int
    trailer: int
    log_id: int
    position: int
    mark: int
    body: memoryview
    offset: int
    end: int
    """Offset just behind the checksum, where a trailing part would begin."""


def padded(length: int) -> int:
    return -(-length // ALIGN) * ALIGN


def emit(
    out: list[bytes | bytearray | memoryview],
    kind: int,
    log_id: int,
    position: int,
    mark: int,
    body: Sequence[bytes | bytearray | memoryview],
    salt: int,
    flags: int = 0,
    trailer: int = 0,
    trailing: bytes = b"",
) -> int:
    """Add the buffers of one padded frame to `out`, ready for one `write_at`; the bytes it takes."""
    body_len = 0
    for part in body:
        body_len += len(part)
    header = HEADER.pack(MAGIC, body_len, log_id, kind, flags, trailer, position, mark)
    if body_len <= JOIN_BYTES_MAX:
        joined = b"".join((header, *body))
        out.append(joined)
        tail = CHECKSUM.pack(xxh3_64_intdigest(joined, salt)) + trailing
    else:
        digest = xxh3_64(header, seed=salt)
        for part in body:
            digest.update(part)
        out.append(header)
        out.extend(body)
        tail = CHECKSUM.pack(digest.intdigest()) + trailing
    tail += _PADDING[-(body_len + len(tail)) % ALIGN]
    out.append(tail)
    return HEADER_BYTES + body_len + len(tail)


def build(
    kind: int,
    log_id: int,
    position: int,
    mark: int,
    body: Sequence[bytes | bytearray | memoryview],
    salt: int,
    *,
    flags: int = 0,
    trailer: int = 0,
    trailing: bytes = b"",
) -> list[bytes | bytearray | memoryview]:
    """The buffers of one frame, padded, ready for one `write_at`."""
    out: list[bytes | bytearray | memoryview] = []
    emit(out, kind, log_id, position, mark, body, salt, flags, trailer, trailing)
    return out


def parse(buffer: memoryview, offset: int, salt: int) -> Frame | None:
    """The frame at `offset`, or None when what stands there is not a whole, undamaged frame."""
    body_at = offset + HEADER_BYTES
    if body_at + CHECKSUM.size > len(buffer):
        return None
    magic, body_len, log_id, kind, flags, trailer, position, mark = HEADER.unpack_from(buffer, offset)
    body_end = body_at + body_len
    end = body_end + CHECKSUM.size
    if magic != MAGIC or end > len(buffer):
        return None
    if xxh3_64_intdigest(buffer[offset:body_end], salt) != CHECKSUM.unpack_from(buffer, body_end)[0]:
        return None
    return Frame(kind, flags, trailer, log_id, position, mark, buffer[body_at:body_end], offset, end)


def is_begun(buffer: memoryview, offset: int) -> bool:
    """Whether what stands at `offset` begins as a frame does: cheap to ask, where most of what is asked is none."""
    return buffer[offset : offset + len(_MAGIC_BYTES)] == _MAGIC_BYTES


def next_at(buffer: memoryview, at: int, end_at: int, salt: int) -> int:
    """The first offset from `at` on, in steps of `ALIGN`, where an undamaged frame stands, or `end_at`."""
    for base in range(at, end_at, _PIECE_BYTES):
        piece = bytes(buffer[base : min(base + _PIECE_BYTES, end_at)])
        found = piece.find(_MAGIC_BYTES)
        while found >= 0:
            if found % ALIGN == 0 and parse(buffer, base + found, salt) is not None:
                return base + found
            found = piece.find(_MAGIC_BYTES, found + 1)
    return end_at
