"""Stored bytes: frames, a WAL file, a segment and its index, a snapshot, facts, blocks, a backup archive.

Most changes of such a file are found by a checksum, so the sums are made right again before a trial: what stands behind
them may be anything, as a file of a program that knows more would have it.
"""

from __future__ import annotations

import contextlib
import struct
from typing import Final, cast

import msgspec
from xxhash import xxh3_64_intdigest

from proof.fuzz.target import Target
from topics.core import block as blocks
from topics.core import encoded, facts
from topics.core.facts import Appended
from topics.core.match import Match
from topics.errors import Damaged, NotUnderstood
from topics.model import Reason
from topics.storage import archive, frame, index, segmentfile, snapshot, tagtable, walfile, walrecovery, walscan
from topics.storage.archive import Archive
from topics.storage.commitlog import Covered
from topics.storage.frame import CHECKSUM, HEADER, MAGIC, Kind
from topics.storage.fs import FileSystem
from topics.storage.index import Index, IndexBuilder, IndexDamaged
from topics.storage.maps import MapCache
from topics.storage.segmentfile import SectionKey
from topics.storage.snapshot import SnapshotStore
from topics.storage.wal import WalSettings
from topics.storage.walfile import FileHeader, file_name, header_frame
from topics.storage.walrecovery import WalRecovery
from topics.testing.clock import SimClock

SALT: Final = 7
MAGIC_BYTES: Final = struct.pack("<I", MAGIC)
DIRECTORY: Final = "/d"
PATH: Final = f"{DIRECTORY}/a"
UNREADABLE: Final = (ValueError, struct.error, msgspec.DecodeError)
"""What the parts of a file say of bytes whose checksum is right; whoever reads the file makes `Damaged` of it."""


def mended(data: bytes, end_salt: int = 0) -> bytes:
    """The same with right checksums behind all that looks like a frame; the one at the end may have another salt."""
    out = bytearray(data)
    at = out.find(MAGIC_BYTES)
    while at >= 0 and at + frame.OVERHEAD_BYTES <= len(out):
        _, body_len, _, kind, *_ = HEADER.unpack_from(out, at)
        end = at + frame.HEADER_BYTES + body_len
        if at % frame.ALIGN or end + CHECKSUM.size > len(out):
            at = out.find(MAGIC_BYTES, at + 1)
            continue
        salt = 0 if kind == Kind.FILE_HEADER else end_salt if kind == Kind.FILE_END else SALT
        CHECKSUM.pack_into(out, end, xxh3_64_intdigest(memoryview(out)[at:end], salt))
        at = out.find(MAGIC_BYTES, frame.padded(end + CHECKSUM.size))
    return bytes(out)


def mended_all_salted(data: bytes) -> bytes:
    """The same for files whose end has the file's own salt."""
    return mended(data, SALT)


class OneFile:
    """A directory with one file in it that is only read: as much of a `FileSystem` as a reader asks for."""

    def __init__(self, name: str, data: bytes) -> None:
        self._name = name
        self.view = memoryview(data)

    def list(self, directory: str) -> list[str]:
        return [self._name]

    def map(self, path: str) -> OneFile:
        return self

    def open(self, path: str, mode: str) -> OneFile:
        return self

    def read_at(self, offset: int, length: int) -> bytes:
        return bytes(self.view[offset : offset + length])

    def size(self) -> int:
        return len(self.view)

    def make_dir(self, path: str) -> None:
        """It is there."""

    def exists(self, path: str) -> bool:
        return True

    def boot_id(self) -> str:
        return "boot"

    def recall(self, directory: str) -> tuple[int, ...]:
        """Nobody noted anything about it."""
        return ()

    def close(self) -> None:
        """It is nobody's alone."""

    def release(self) -> None:
        """The same."""


def disk_with(name: str, data: bytes) -> FileSystem:
    return cast(FileSystem, OneFile(name, data))


def framed(
    kind: Kind, body: bytes, salt: int = SALT, log_id: int = 3, position: int = 1, trailing: bytes = b""
) -> bytes:
    return b"".join(frame.build(kind, log_id, position, 0, [body], salt, trailing=trailing))


# ---- frames


def read_frames(data: bytes) -> int:
    """Both ways of looking for frames find the same, and each is built again as it is."""
    view = memoryview(data)
    found = list(walscan.valid_frames(view, 0, SALT))
    at = 0
    for each in found:
        assert frame.next_at(view, at, len(data), SALT) == each.offset
        again = frame.build(
            each.kind, each.log_id, each.position, each.mark, [each.body], SALT, flags=each.flags, trailer=each.trailer
        )
        assert b"".join(again)[: each.end - each.offset] == data[each.offset : each.end]
        at = frame.padded(each.end)
    assert frame.next_at(view, at, len(data), SALT) == len(data)
    return len(found)


FRAMES: Final = Target(
    name="frames",
    run=read_frames,
    errors=(),
    modules=(frame, walscan),
    seeds=(
        framed(Kind.SYNC_MARK, b""),
        framed(Kind.FACT, b"abc") + bytes(24) + framed(Kind.PUT, b"0123456789", position=2, trailing=b"\1\2"),
        framed(Kind.FACT, framed(Kind.FACT, b"one in another")),
        framed(Kind.APPENDED, bytes(64))[:-9],
    ),
    words=(MAGIC_BYTES, bytes(8), framed(Kind.SYNC_MARK, b""), framed(Kind.FACT, b"x", SALT + 1)),
    mend=mended,
    bytes_max=1024,
)

# ---- facts and blocks


def read_fact(data: bytes) -> None:
    """The body of a WAL frame, by its first byte an append, a fact of a log or one of the meta log."""
    kind, body = data[:1], data[1:]
    if kind == b"a":
        appended = Appended.parse(memoryview(body))
        again = Appended.parse(memoryview(b"".join(appended.buffers())))
        assert (again.records.text, again.ceiling, again.waits) == (
            appended.records.text,
            appended.ceiling,
            appended.waits,
        )
        appended.records.as_block().tag_list()
    elif kind == b"l":
        fact = facts.parse_log_fact(body)
        assert facts.parse_log_fact(facts.encode(fact)) == fact
    elif kind == b"m":
        meta = facts.parse_meta_fact(body)
        assert facts.parse_meta_fact(facts.encode(meta)) == meta
    else:
        block = blocks.parse(body)
        again_block = blocks.parse(b"".join(block.encode()))
        assert bytes(again_block.text) == bytes(block.text) and again_block.tag_list() == block.tag_list()


TEXT: Final = b'{"$seq":5,"$ts":9,"data":1},{"$seq":6,"$ts":9,"$node":"n","meta":{"a":2},"data":22}'
BLOCK: Final = blocks.HEADER.pack(
    5, 9, 2, blocks.HAS_META | blocks.HAS_TAGS | blocks.HAS_NODES, 1, 3, 2, len(TEXT), 0
) + (struct.pack("<2I2I2I2I2H", 27, len(TEXT), 1, 2, 0, 7, 0, 2, 0, 1) + b"\1\0n" + b"tt" + TEXT)
PLAIN_TEXT: Final = b'{"$seq":1,"$ts":9,"data":1}'
PLAIN: Final = b"".join(facts.plain_buffers(8, 1, 9, PLAIN_TEXT, 1))
LOG_FACTS: Final = (
    facts.Deleted(5, b"a", True),
    facts.HeadMoved(9),
    facts.SeqsSkipped(1, 4, Reason.RESTART),
    facts.Acked([1, 2]),
)
META_FACTS: Final = (
    facts.StageOpened("s", 4, "a", 0, 99),
    facts.BatchDecided("p", 1, ["s"], 5),
    facts.BatchFinished("p", 1, [("a", 0, 1, 2, 2)], 6),
    facts.TopicDropped("a"),
)
FACT_WORDS: Final = tuple(
    msgspec.msgpack.encode("type") + msgspec.msgpack.encode(name)
    for name in ("deleted", "floors", "head", "claimed", "acked", "nacked", "topic_created", "user_put", "forwarded")
)

FACTS: Final = Target(
    name="facts",
    run=read_fact,
    errors=UNREADABLE,
    modules=(facts, encoded, blocks),
    seeds=(
        b"a" + PLAIN,
        b"a" + facts._PRELUDE.pack(3, 1, 0) + bytes(32) + BLOCK,
        b"b" + BLOCK,
        *(b"l" + facts.encode(fact) for fact in LOG_FACTS),
        *(b"m" + facts.encode(fact) for fact in META_FACTS),
    ),
    words=FACT_WORDS,
)

# ---- a WAL

WAL_HEADER: Final = b"".join(header_frame(FileHeader(1, 1, 1, 0, 1, 1, 0, False, SALT, "boot", 5)))
WAL_FILE: Final = (
    WAL_HEADER
    + framed(Kind.APPENDED, PLAIN)
    + framed(Kind.SYNC_MARK, b"")
    + framed(Kind.FACT, facts.encode(facts.HeadMoved(9)), position=2)
    + framed(Kind.TRIMMED, msgspec.msgpack.encode((1, 0)))
)


def read_wal(data: bytes) -> tuple[object, ...]:
    """With and without salvage: what a plain reading accepts, a salvage reads without a loss."""
    accepted: list[tuple[int, int, int, bytes]] | None = None
    with contextlib.suppress(Damaged):
        accepted = _replayed(data, salvage=False)[0]
    saved, losses = _replayed(data, salvage=True)
    if accepted is not None:
        assert (saved, losses) == (accepted, 0), "a salvage changes what is in order"
    return accepted is None, len(saved), losses


def _replayed(data: bytes, salvage: bool) -> tuple[list[tuple[int, int, int, bytes]], int]:
    disk = disk_with(file_name(0, 1), data)
    recovery = WalRecovery(disk, DIRECTORY, WalSettings(), SimClock(), lambda: SALT, Covered(), 0, salvage)
    found = [(log_id, position, kind, bytes(body)) for log_id, position, kind, body in recovery.replay()]
    assert recovery.last_stop is not None and recovery.torn is not None
    return found, len(recovery.losses)


WAL: Final = Target(
    name="wal",
    run=read_wal,
    errors=(Damaged,),
    modules=(walscan, walfile, walrecovery, frame),
    seeds=(
        WAL_FILE,
        WAL_FILE + b"".join(frame.build(Kind.FILE_END, 0, 0, 0, [], SALT, flags=1)),
        WAL_FILE + bytes(64),
        WAL_FILE + b"torn",
    ),
    words=(
        MAGIC_BYTES,
        bytes(8),
        framed(Kind.SYNC_MARK, b""),
        bytes([Kind.FILE_END]),
        bytes([Kind.TRIMMED]),
    ),
    mend=mended_all_salted,
    bytes_max=2048,
    memory_factor=2048,
)

# ---- segments

KEY: Final = SectionKey(3, "a", 0, 1)
SEGMENT: Final = (
    framed(Kind.FILE_HEADER, msgspec.msgpack.encode(segmentfile.DataHeader(1, 1, SALT, 5)), 0, 0)
    + framed(Kind.SECTION, msgspec.msgpack.encode(KEY), position=0)
    + framed(Kind.BLOCK, BLOCK, position=5, trailing=b"\0\xd5")
    + framed(Kind.FILE_END, msgspec.msgpack.encode(segmentfile.DataEnd(1, SALT, 1, 1, 2)), 0, 0)
)


def read_segment(data: bytes) -> tuple[object, ...]:
    view = memoryview(data)
    accepted: list[bytes] | None = None
    with contextlib.suppress(Damaged):
        accepted = [bytes(stored.block.text) for stored in segmentfile.scan(PATH, view, 1)]
    damages: list[Damaged] = []
    builder = IndexBuilder(1, SALT)
    saved: list[bytes] = []
    for stored in segmentfile.scan(PATH, view, 1, damages.append):
        saved.append(bytes(stored.block.text))
        if accepted is not None and stored.key is not None and stored.section_no == 0:
            builder.add(stored.key, stored)
    if accepted is not None:
        assert (saved, damages) == (accepted, []), "a salvage changes what is in order"
        builder.finish(len(data))
    return accepted is None, len(saved), len(damages)


SEGMENTS: Final = Target(
    name="segment",
    run=read_segment,
    errors=(),
    modules=(segmentfile, frame, blocks),
    seeds=(SEGMENT,),
    words=(MAGIC_BYTES, bytes([Kind.BLOCK]), bytes([Kind.SECTION]), BLOCK, msgspec.msgpack.encode(KEY)),
    mend=mended,
    bytes_max=2048,
)


def _index_file() -> bytes:
    builder = IndexBuilder(1, SALT)
    for stored in segmentfile.scan(PATH, memoryview(SEGMENT), 1):
        builder.add(KEY, stored)
    return b"".join(builder.finish(len(SEGMENT)))


def read_index(data: bytes) -> None:
    name = segmentfile.index_name(1)
    disk = disk_with(name, data)
    opened = Index(1, SALT, len(SEGMENT), lambda name: f"{DIRECTORY}/{name}", MapCache(disk, 1 << 20))
    for number, section in enumerate(opened.sections):
        opened.entries(section.first_block, section.blocks)
        for table in opened.tags(number):
            table.find(Match(b"tt", prefix=False))
            table.find(Match(b"t", prefix=True))


INDEX: Final = Target(
    name="segment-index",
    run=read_index,
    errors=(IndexDamaged,),
    modules=(index, tagtable, frame),
    seeds=(_index_file(),),
    words=(MAGIC_BYTES, bytes([Kind.TAG_TABLE]), bytes([Kind.BLOCK_TABLE])),
    mend=mended,
    bytes_max=2048,
    memory_factor=2048,
)

# ---- snapshots

SNAPSHOT: Final = (
    b"".join(
        frame.build(
            Kind.FILE_HEADER, 0, SALT, SALT, [msgspec.msgpack.encode(snapshot.SnapshotHeader(1, 1, 0, SALT, 5))], 0
        )
    )
    + framed(Kind.PUT, struct.pack("<I", 3) + b"t/a" + b"value", log_id=0, position=0)
    + framed(Kind.PUT, struct.pack("<I", 1) + b"m" + b"v", log_id=0, position=1)
    + framed(Kind.REMOVE, b"l/3", log_id=0, position=2)
    + framed(Kind.FILE_END, msgspec.msgpack.encode(snapshot.SnapshotEnd(1, 0, 2, 1)), log_id=0, position=0)
)


def read_snapshot(data: bytes) -> tuple[object, ...]:
    disk = disk_with("000000000001.base", data)
    accepted: dict[bytes, bytes] | None = None
    with contextlib.suppress(Damaged):
        accepted = SnapshotStore(disk, DIRECTORY, SimClock(), lambda: SALT).load()
    saved, damages = SnapshotStore(disk, DIRECTORY, SimClock(), lambda: SALT).salvage()
    if accepted is not None:
        assert (saved, damages) == (accepted, []), "a salvage changes what is in order"
    return accepted is None, len(saved), len(damages)


SNAPSHOTS: Final = Target(
    name="snapshot",
    run=read_snapshot,
    errors=(NotUnderstood,),
    modules=(snapshot, frame),
    seeds=(SNAPSHOT,),
    words=(MAGIC_BYTES, bytes([Kind.PUT]), bytes([Kind.REMOVE]), framed(Kind.PUT, b"", log_id=0)),
    mend=mended_all_salted,
    bytes_max=2048,
    memory_factor=2048,
)

# ---- a backup


def _backup() -> bytes:
    writer = archive.ArchiveWriter(5)
    manifest = archive.Manifest(
        format=1, program="topics", created_ms=5, snapshot_no=0, files=1, bytes=3, positions={"0": 1}
    )
    body = msgspec.json.encode(manifest)
    chunks = [*writer.member(archive.MANIFEST_NAME, len(body), [body])]
    chunks += [*writer.member("wal/0-0000000001.wal", 3, [b"abc"]), *writer.end()]
    return b"".join(chunks)


def mended_tar(data: bytes) -> bytes:
    """The same with right sums in all headers."""
    out = bytearray(data)
    for at in range(0, len(out) - archive.BLOCK_BYTES + 1, archive.BLOCK_BYTES):
        header = out[at : at + archive.BLOCK_BYTES]
        if header[257:262] == b"ustar":
            out[at + 148 : at + 156] = b"%06o\0 " % (sum(header[:148]) + 8 * 32 + sum(header[156:]))
    return bytes(out)


def read_backup(data: bytes) -> None:
    opened = Archive(disk_with("a", data), PATH)
    try:
        opened.manifest()
        for _, length, chunks in opened.members():
            assert sum(map(len, chunks)) == length
    finally:
        opened.close()


BACKUP_FILE: Final = _backup()
BACKUP: Final = Target(
    name="backup",
    run=read_backup,
    errors=(Damaged,),
    modules=(archive,),
    seeds=(BACKUP_FILE, b"".join(archive.gzipped([BACKUP_FILE], 6))),
    words=(b"../", b"wal/", b"/etc/passwd", bytes(512), b"77777777777\0", b'"format":2', archive.SUMS_NAME.encode()),
    mend=mended_tar,
    bytes_max=8192,
    # A short gzip stream of zeros is a chunk of them, whatever is made of it.
    memory_factor=4096,
)

TARGETS: Final = (FRAMES, FACTS, WAL, SEGMENTS, INDEX, SNAPSHOTS, BACKUP)
