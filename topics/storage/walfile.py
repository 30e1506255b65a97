"""Names and headers of WAL files.

A file is `<shard>-<number>.wal`, numbers ascending without a gap in each shard. Its first frame is the header, checked
with salt 0 so that it can be read before the file's own salt is known; the salt stands in the frame's `position` and
`mark` too, so that a salvage can go on when the header is damaged.

A file is filled with its header and synced under the name `<shard>.spare` and only then renamed, so a file with a WAL
name always had a good header: a bad one is damage, never a creation cut short. A file that is to be overwritten gets
the name `….wal.erased` first, for the same reason.
"""

from __future__ import annotations

import re

import msgspec

from topics.errors import Damaged, NotUnderstood
from topics.storage import frame
from topics.storage.frame import OTHER_VERSION, Kind
from topics.storage.fs import Buffer

FORMAT_VERSION = 1
HEADER_SALT = 0

_NAME = re.compile(r"(\d+)-(\d{10})\.wal")
_SPARE = re.compile(r"\d+\.spare")
_ERASED_SUFFIX = ".erased"


class FileHeader(msgspec.Struct, frozen=True):
    """What a file says about itself. A change of meaning raises `FORMAT_VERSION`; a reader refuses other versions."""

    version: int
    layout: int
    """Goes up when all earlier files were covered by a snapshot: files of lower layouts are obsolete."""
    shards: int
    shard: int
    number: int
    oldest: int
    """The lowest file number of the shard that was still needed when this file was made."""
    snapshot_no: int
    """The snapshot that replaces what was dropped before this file was made."""
    after_power_loss: bool
    """Made after a power loss whose consequences were in no snapshot yet."""
    salt: int
    boot_id: str
    created_ms: int


def file_name(shard: int, number: int) -> str:
    return f"{shard}-{number:010d}.wal"


def spare_name(shard: int) -> str:
    return f"{shard}.spare"


def parse_name(name: str) -> tuple[int, int] | None:
    """Shard and number of a WAL file's name; None for any other name."""
    match = _NAME.fullmatch(name)
    return (int(match[1]), int(match[2])) if match else None


def is_spare(name: str) -> bool:
    return _SPARE.fullmatch(name) is not None


def erased_path(path: str) -> str:
    """What a WAL file is called while it is overwritten."""
    return path + _ERASED_SUFFIX


def is_erased(name: str) -> bool:
    return parse_name(name.removesuffix(_ERASED_SUFFIX)) is not None and name.endswith(_ERASED_SUFFIX)


def header_frame(header: FileHeader) -> list[Buffer]:
    salt = header.salt
    return frame.build(Kind.FILE_HEADER, 0, salt, salt, [msgspec.msgpack.encode(header)], HEADER_SALT)


def read_header(view: memoryview, path: str, shard: int, number: int) -> tuple[FileHeader, int]:
    """The header of a file and the offset of its first frame, or `Damaged`."""
    found = frame.parse(view, 0, HEADER_SALT)
    if found is None or found.kind != Kind.FILE_HEADER:
        raise Damaged(f"{path} does not begin with a readable WAL file header", file=path, offset=0)
    try:
        header = msgspec.msgpack.decode(found.body, type=FileHeader)
    except frame.UNREADABLE as error:
        raise Damaged(f"the header of {path} cannot be decoded: {error}", file=path, offset=0) from error
    if header.version != FORMAT_VERSION:
        message = (
            f"{path} is in WAL format {header.version}; this program reads format {FORMAT_VERSION}; {OTHER_VERSION}"
        )
        raise NotUnderstood(message, file=path, offset=0)
    if (header.shard, header.number) != (shard, number):
        message = f"{path} says it is file {header.number} of shard {header.shard}: it has been renamed or copied"
        raise Damaged(message, file=path, offset=0)
    return header, frame.padded(found.end)


def salt_candidates(view: memoryview) -> list[int]:
    """Salts that a damaged header may have meant, for salvage."""
    if len(view) < frame.HEADER_BYTES:
        return []
    _, _, _, _, _, _, position, mark = frame.HEADER.unpack_from(view, 0)
    return [position, mark]
