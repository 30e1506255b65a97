"""What a stored file consists of, frame by frame, in words: for people who look, not for recovery.

Any file of a data directory is walked from front to back: WAL files, segments, their indexes, snapshots. A frame that
checks out is a `Part` with what its body says. Between frames there may be zeros (space that was reserved and not
written yet) or bytes that are no frame of this file (a torn tail or damage; which of them, `fsck` can tell). Nothing
is changed and no lock is taken.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec

from topics.core import block as blocks
from topics.core.block import Block
from topics.core.dedupe import IdempotencyKey, ProducerKey
from topics.core.facts import Appended
from topics.core.run import DEAD
from topics.errors import Damaged, InvalidRequest
from topics.storage import frame
from topics.storage.frame import Frame, Kind
from topics.storage.fs import FileSystem
from topics.storage.index import BLOCK_ENTRY
from topics.storage.segmentfile import END_BYTES_MAX, read_end
from topics.storage.walscan import CLEAN_STOP, Trimmed, nonzero_end, valid_frames

GROWING = (".wal", ".spare")
SUFFIXES = (*GROWING, ".data", ".idx", ".base", ".delta")
ZEROS = "ZEROS"
UNREADABLE = "UNREADABLE"
DEDUPE = "d/"
"""Snapshot entries with keys like this are columns, and nothing to read."""

_KEY_LEN = struct.Struct("<I")
_HASHES = frozenset({"password_hash", "secret_hash", "link_hash"})
"""Of passwords and managed keys. A hash is no secret, but a list of them is a start for whoever guesses."""
_HIDDEN = "(hash)"
_TAG_TABLE = struct.Struct("<IIQ")
_OWN_SALT = 0
"""Frames that can be read before a file's salt is known are checked with this one."""

About = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a file: one frame, or what stands where a frame should be."""

    offset: int
    size_bytes: int
    kind: str
    log_id: int = 0
    position: int = 0
    mark: int = 0
    about: About | None = None
    records: list[bytes] | None = None
    """The text of each record, where a frame holds some and they were asked for."""


def dissect(fs: FileSystem, path: str, with_records: bool = False) -> Iterator[Part]:
    """The parts of a file, in order; together they are the whole file."""
    if not path.endswith(SUFFIXES):
        raise InvalidRequest(
            f"{path} is no file of a data directory: expected a name that ends in {', '.join(SUFFIXES)}"
        )
    if path.endswith(GROWING):
        yield from _parts(path, _read(fs, path), with_records)
        return
    mapping = fs.map(path)
    try:
        yield from _parts(path, mapping.view, with_records)
    finally:
        mapping.release()


def _read(fs: FileSystem, path: str) -> memoryview:
    """A copy: a process that has the directory open may cut a WAL file short, and a map of it would then be fatal."""
    file = fs.open(path, "read")
    try:
        return memoryview(file.read_at(0, file.size()))
    finally:
        file.close()


def _parts(path: str, view: memoryview, with_records: bool) -> Iterator[Part]:
    salts = (_salt(path, view), _OWN_SALT)
    at = 0
    while at < len(view):
        found = next((one for salt in salts if (one := frame.parse(view, at, salt)) is not None), None)
        part = _gap(view, at, salts) if found is None else _part(found, view, with_records)
        yield part
        at += part.size_bytes


def _salt(path: str, view: memoryview) -> int:
    """The file's salt: from its header, from a segment's end, or from the copy in the header's numbers."""
    header = frame.parse(view, 0, _OWN_SALT)
    if header is not None:
        said = msgspec.msgpack.decode(header.body)
        return int(said.get("salt", 0)) if isinstance(said, dict) else 0
    if path.endswith(".data"):
        with suppress(Damaged):
            return read_end(path, view[-END_BYTES_MAX:], len(view))[0].salt
    return int(frame.HEADER.unpack_from(view, 0)[6]) if len(view) >= frame.HEADER_BYTES else 0


def _gap(view: memoryview, at: int, salts: tuple[int, ...]) -> Part:
    """Up to the next frame, or to the end: zeros, or bytes that say nothing."""
    behind = (next(valid_frames(view, at + frame.ALIGN, salt), None) for salt in salts)
    end = min((found.offset for found in behind if found is not None), default=len(view))
    if nonzero_end(view[:end], at) == at:
        return Part(at, end - at, ZEROS, about={"what": "reserved, never written"})
    return Part(at, end - at, UNREADABLE, about={"what": "no frame of this file"})


def _part(found: Frame, view: memoryview, with_records: bool) -> Part:
    end = found.end
    kind, block, flags = f"KIND {found.kind}", None, b""
    try:
        kind = Kind(found.kind).name
        about, block = _describe(found)
        if found.kind == Kind.BLOCK and block is not None:
            flags = bytes(view[end : end + block.count])
            end += block.count
            about["deleted"] = flags.count(DEAD)
    except (*frame.UNREADABLE, KeyError, IndexError) as error:
        # The checksum is right, so this was written by a program that knows more.
        about = {"what": f"not understood: {error}"}
    size_bytes = min(frame.padded(end), len(view)) - found.offset
    records = _records(block, flags) if with_records and block is not None else None
    return Part(found.offset, size_bytes, kind, found.log_id, found.position, found.mark, about, records)


# ---- what a body says


def _describe(found: Frame) -> tuple[About, Block | None]:
    """The fields of a frame's body, and the records it holds."""
    match found.kind:
        case Kind.APPENDED:
            return _appended(Appended.parse(found.body))
        case Kind.BLOCK:
            block = blocks.parse(found.body)
            return _block(block), block
        case Kind.BLOCK_TABLE:
            return {"blocks": len(found.body) // BLOCK_ENTRY.itemsize}, None
        case Kind.TAG_TABLE:
            tags, _, postings = _TAG_TABLE.unpack_from(found.body, 0)
            return {"tags": tags, "records": postings}, None
        case Kind.PUT:
            return _put(bytes(found.body)), None
        case Kind.REMOVE:
            return {"key": bytes(found.body).decode("utf-8", "backslashreplace")}, None
        case Kind.SYNC_MARK:
            return {"synced_bytes": found.mark}, None
        case Kind.FILE_END if not len(found.body):
            return {"clean_stop": bool(found.flags & CLEAN_STOP)}, None
        case Kind.TRIMMED:
            trimmed = msgspec.msgpack.decode(found.body, type=Trimmed)
            return {"oldest": trimmed.oldest, "snapshot_no": trimmed.snapshot_no}, None
        case _:
            return _mapping(msgspec.msgpack.decode(found.body)), None


def _appended(fact: Appended) -> tuple[About, Block]:
    block = fact.records.as_block()
    about = _block(block) | {"ceiling": fact.ceiling}
    if fact.floors is not None:
        about |= {"low": fact.floors.low, "evict_floor": fact.floors.evict_floor}
    match fact.dedupe_key:
        case IdempotencyKey(key=key):
            about["idempotency_key"] = key
        case ProducerKey(producer_id=producer, epoch=epoch, sequence=sequence):
            about["producer"] = [producer, epoch, sequence]
    if fact.stage_log_id:
        about["stage_log_id"] = fact.stage_log_id
    if fact.waits:
        about["waits"] = fact.waits.hex(" ", 8)
    return about, block


def _block(block: Block) -> About:
    about: About = {"first_seq": block.first_seq, "last_seq": block.last_seq, "count": block.count}
    return about | {"first_ts": block.first_ts, "last_ts": block.last_ts, "text_bytes": len(block.text)}


def _put(body: bytes) -> About:
    (key_bytes,) = _KEY_LEN.unpack_from(body, 0)
    key = body[_KEY_LEN.size : _KEY_LEN.size + key_bytes].decode("utf-8", "backslashreplace")
    value = body[_KEY_LEN.size + key_bytes :]
    if key.startswith(DEDUPE):
        return {"key": key, "value_bytes": len(value)}
    return {"key": key, "value": _plain(msgspec.msgpack.decode(value))}


def _mapping(said: object) -> About:
    plain = _plain(said)
    return plain if isinstance(plain, dict) else {"sections": plain}


def _plain(value: Any) -> Any:
    """The same without bytes and without keys that are no text, as JSON has neither."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, dict):
        return {str(_plain(name)): _HIDDEN if name in _HASHES else _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def _records(block: Block, flags: bytes) -> list[bytes]:
    """Each record as it is stored, with its tag, which is not in its text, and whether it is deleted."""
    texts = []
    for index in range(block.count):
        front = b""
        if tag := block.tag(index):
            front += b'"$tag":%b,' % msgspec.json.encode(tag.decode("utf-8", "backslashreplace"))
        if flags[index : index + 1] == bytes([DEAD]):
            front += b'"deleted":true,'
        texts.append(b"{" + front + bytes(block.text[block.start(index) + 1 : int(block.ends[index])]))
    return texts
