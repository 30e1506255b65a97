"""A backup while the engine runs: one consistent moment of it, copied at leisure.

The consistent point is a moment of the loop, when `cut` is called. The backup holds every command that was decided up
to then, so all that was answered before it was asked for, and nothing that was decided later. It is made of

    a snapshot S and its segments   pinned (`storage/pins.py`): the files of the newest checkpoint, older than the cut
    the WAL up to the cut           what was decided since S; ended as by a clean stop, so that a recovery of the copy
                                    neither looks for a torn tail nor skips seqs

A recovery of exactly these files is what gives back the state at the cut, as it does after a clean stop there. A batch
that was decided and not finished by then is finished by that recovery, in all its topics.

    loop     backup = Backup.begin(engine)   no checkpoint may be under way from here until `open` is done
    thread   backup.pin()                    the files of the newest snapshot stay
    loop     backup.cut()                    the moment; the commit log says which bytes of which files it is
    thread   backup.open()                   the WAL's files are held open: unlinking them does not take them away
    thread   for chunk in backup.chunks()    WAL first, then snapshots, then segments, each let go of once it is read
    thread   backup.release()                what had to stay for it goes

One backup runs at a time. Checkpoints, deletes and retention go on meanwhile; an erasure, which has to overwrite files,
interrupts the backup instead of waiting for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec
import numpy as np

from topics import __version__
from topics.core.run import LIVE
from topics.engine.engine import Engine
from topics.errors import Damaged, Throttled, TopicsError
from topics.storage.archive import (
    CHUNK_BYTES,
    FORMAT_VERSION,
    MANIFEST_NAME,
    ArchiveWriter,
    Manifest,
    check_level,
    gathered,
    gzipped,
)
from topics.storage.commitlog import Cut, FilePart
from topics.storage.fs import File, Mapping
from topics.storage.pins import Pins
from topics.storage.segmentfile import data_name, index_name, verify

RETRY_MS = 1000


class Backup:
    """Use `begin`; see the head of this file for the order of the calls."""

    def __init__(self, engine: Engine, pins: Pins) -> None:
        self._engine = engine
        self._store = engine.store
        self._fs = engine.store.fs
        self._pins = pins
        self._created_ms = engine.now_ms()
        self._snapshot_names: list[str] = []
        self._snapshot_no = 0
        self._segments_bytes = 0
        self._cut = Cut((), {})
        self._wal: list[tuple[FilePart, File]] = []
        self._snapshots: list[tuple[str, int]] = []
        self._chunk_bytes = CHUNK_BYTES
        self.total_bytes = 0
        """What `chunks` will give, without headers and compression; known after `open`."""
        self.released = False
        self.problems: list[str] = []
        """What `release` could not clean up, in words."""

    @classmethod
    def begin(cls, engine: Engine) -> Backup:
        """On the loop. `Throttled` when one is running already."""
        if engine.store.pins is not None:
            raise Throttled("a backup is running; one can at a time", limit="backups", retry_after_ms=RETRY_MS)
        engine.store.pins = Pins(engine.limits.backup_held_bytes_max)
        return cls(engine, engine.store.pins)

    # ---- the consistent point

    def pin(self) -> None:
        store = self._store
        numbers = store.tiers.numbers()
        self._pins.hold(numbers)
        self._snapshot_names = store.snapshots.chain()
        self._snapshot_no = store.snapshots.number
        store.snapshots.held = frozenset(self._snapshot_names)
        self._segments_bytes = sum(map(store.tiers.size_bytes, numbers))

    def cut(self, done: Callable[[TopicsError | OSError | None], None]) -> None:
        """On the loop: this moment is the one. `done` is called when it is known which bytes that are."""

        def answered(answer: Cut | Exception) -> None:
            if isinstance(answer, Cut):
                self._cut = answer
                done(None)
            else:
                assert isinstance(answer, TopicsError | OSError)
                done(answer)

        self._engine.flush()
        self._created_ms = self._engine.now_ms()
        self._engine.wal.cut(answered)

    def open(self) -> None:
        for part in self._cut.files:
            self._wal.append((part, self._fs.open(part.path, "read")))
        place = f"{self._store.directory}/snapshots"
        self._snapshots = [(name, self._size(f"{place}/{name}")) for name in self._snapshot_names]
        self.total_bytes = (
            sum(part.length_bytes + len(part.ending) for part in self._cut.files)
            + sum(size_bytes for _, size_bytes in self._snapshots)
            + self._segments_bytes
        )

    def _size(self, path: str) -> int:
        file = self._fs.open(path, "read")
        try:
            return file.size()
        finally:
            file.close()

    # ---- copying

    def chunks(self, gzip_level: int = 0, chunk_bytes: int = CHUNK_BYTES) -> Iterator[bytes]:
        """The archive. On any one thread; raises `BackupInterrupted` when the engine needs its files back."""
        check_level(gzip_level)
        self._chunk_bytes = chunk_bytes
        return gathered(gzipped(self._archive(), gzip_level), chunk_bytes)

    def _archive(self) -> Iterator[bytes]:
        writer = ArchiveWriter(self._created_ms // 1000)
        manifest = msgspec.json.encode(self._manifest())
        yield from writer.member(MANIFEST_NAME, len(manifest), [manifest])
        while self._wal:
            part, file = self._wal[0]
            length_bytes = part.length_bytes + len(part.ending)
            yield from writer.member(f"wal/{part.name}", length_bytes, self._wal_bytes(part, file))
            self._wal.pop(0)
            file.close()
        for name, length_bytes in self._snapshots:
            path = f"{self._store.directory}/snapshots/{name}"
            yield from writer.member(f"snapshots/{name}", length_bytes, self._file_bytes(path))
        for number in self._pins.segments():
            yield from self._segment(writer, number)
        self._pins.check()
        yield from writer.end()
        self._engine.last_backup_ms = self._created_ms

    def _manifest(self) -> Manifest:
        return Manifest(
            format=FORMAT_VERSION,
            program=f"topics {__version__}",
            created_ms=self._created_ms,
            snapshot_no=self._snapshot_no,
            files=len(self._wal) + len(self._snapshots) + 2 * len(self._pins.segments()),
            bytes=self.total_bytes,
            positions={str(log_id): position for log_id, position in sorted(self._cut.positions.items())},
        )

    def _wal_bytes(self, part: FilePart, file: File) -> Iterator[bytes]:
        for at in range(0, part.length_bytes, self._chunk_bytes):
            yield self._read(file, at, min(self._chunk_bytes, part.length_bytes - at))
        yield part.ending

    def _file_bytes(self, path: str) -> Iterator[bytes]:
        file = self._fs.open(path, "read")
        try:
            for at in range(0, file.size(), self._chunk_bytes):
                yield self._read(file, at, self._chunk_bytes)
        finally:
            file.close()

    def _read(self, file: File, at: int, length_bytes: int) -> bytes:
        try:
            return file.read_at(at, length_bytes)
        finally:
            # An interruption is why a file is closed, or shows other bytes.
            self._pins.check()

    def _segment(self, writer: ArchiveWriter, number: int) -> Iterator[bytes]:
        index, data = self._find(index_name(number)), self._find(data_name(number))
        try:
            if data is None:
                self._pins.check()
                path = f"{self._store.segment_dir}/{data_name(number)}"
                raise Damaged(f"{path} is missing: `topics fsck` says more", file=path, offset=0)
            if index is not None:
                # It can be made anew from the data, and so may be missing.
                yield from writer.member(f"segments/{index_name(number)}", len(index.view), self._pieces(index))
            self._verify(data, number)
            as_pinned = self._flags_undone(self._pieces(data), number)
            yield from writer.member(f"segments/{data_name(number)}", len(data.view), as_pinned)
        finally:
            for mapping in (index, data):
                if mapping is not None:
                    mapping.release()
        self._pins.copied(number, self._store.tiers.remove)

    def _find(self, name: str) -> Mapping | None:
        """A segment's file; it may move to the cold directory between looking and opening, once."""
        for _ in range(2):
            try:
                return self._fs.map(self._store.tiers.find(name))
            except FileNotFoundError:
                continue
        return None

    def _pieces(self, mapping: Mapping) -> Iterator[bytes]:
        for at in range(0, len(mapping.view), self._chunk_bytes):
            piece = bytes(mapping.view[at : at + self._chunk_bytes])
            self._pins.check()
            yield piece

    def _flags_undone(self, pieces: Iterable[bytes], number: int) -> Iterator[bytes | bytearray]:
        """A segment as it was when it was pinned: flags that have been set since are taken back."""
        at = 0
        for piece in pieces:
            # Asked after the piece was read: what was noted later had not been written then.
            flags = self._pins.unset_flags(number)
            self._pins.check()
            inside = flags[(flags >= at) & (flags < at + len(piece))] - np.uint64(at)
            at += len(piece)
            if len(inside):
                undone = bytearray(piece)
                np.frombuffer(undone, np.uint8)[inside] = LIVE
                yield undone
            else:
                yield piece

    def _verify(self, data: Mapping, number: int) -> None:
        """A damaged segment is not backed up: better to hear of it today than when the backup is needed."""
        path = f"{self._store.segment_dir}/{data_name(number)}"
        try:
            verify(path, data.view, number)
        except Damaged as damage:
            self._pins.check()
            advice = "Stop, `topics fsck --repair`, and back up again"
            raise Damaged(f"{damage.message}. {advice}", **damage.detail) from damage

    # ---- the end

    def release(self) -> set[int]:
        """On the checkpoint's thread, once. Removes what had to stay; the segments that could not be removed."""
        if self.released:
            return set()
        self.released = True
        self._pins.interrupt("it is over")
        for _, file in list(self._wal):
            file.close()
        store = self._store
        left = set(self._pins.take_deferred())
        store.pins = None
        store.snapshots.held = frozenset()
        for number in sorted(left):
            try:
                store.tiers.remove(number)
                left.discard(number)
            except OSError as error:
                # Nothing reads it any more; the next checkpoint tries again.
                self.problems.append(f"segment {number} could not be removed after a backup: {error}")
        try:
            store.snapshots.sweep()
        except OSError as error:
            self.problems.append(f"snapshots that a backup held could not be removed: {error}")
        return left
