"""The files of one WAL shard, as their one owner writes them.

Entries are framed and written at the end of the active file, and become durable with `sync`. The order of the steps is
what recovery relies on (see `walscan`), so it is the same everywhere:

- A frame's mark is `synced`, what the last completed sync covered; never more.
- Sealing a file: sync, then FILE_END with its own offset as mark, then sync again. Only then may a successor get its
  name, and it gets it only with a synced header. So a file that has a successor is whole.
- The successor's name is synced before anything is written to it.
- Trimming: a TRIMMED frame (or a new header) with the oldest file still needed is synced before files are deleted.

Space that is only reserved makes a sync slow: the file system notes in its journal that the bytes are in use now. So
while syncs cover little, zeros are written a good piece ahead of the end, where there is nothing but zeros to be read
already; what overwrites them needs no note.

Disk space for the next file is reserved ahead of time under a spare name. If that fails, the shard goes on until the
active file is full; only then is a missing successor an error. After any error the caller must not use this object
any more: what a failed sync did to the operating system's copy of the file is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from topics.clock import Clock
from topics.storage import frame
from topics.storage.commitlog import Covered, Entry, FilePart
from topics.storage.frame import Kind
from topics.storage.fs import Buffer, File, FileSystem
from topics.storage.tier import shred
from topics.storage.walfile import FORMAT_VERSION, FileHeader, erased_path, file_name, header_frame, spare_name
from topics.storage.walmetrics import ShardMetrics
from topics.storage.walscan import CLEAN_STOP, ScannedFile, Trimmed, read_entries
from topics.storage.witness import END, NEXT, SYNCED, begin_file

WRITE_BYTES_MAX = 4 << 20
"""A longer batch is written in several calls, so that memory for it stays bounded."""

BUFFER_BYTES_SMALL = 4096
"""Buffers that are smaller on average are joined before a write."""

RESERVE_BYTES = 1024
"""Room kept at the end of a file for the WAL's own frames, so that sealing it never needs more disk space."""

COPY_BYTES = 1 << 20

SMALL_SYNC_BYTES = 64 << 10
"""A sync of more than this takes its time anyway, and is not worth writing everything twice for."""
ZEROS = bytes(1 << 20)
"""What is written ahead of the end at a time."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A complete file and the last position of each log in it."""

    path: str
    number: int
    salt: int
    end: int
    """Offset behind the last entry, where its FILE_END stands."""
    last: dict[int, int]

    def covered_by(self, covered: Covered) -> bool:
        return all(position <= covered.upto(log_id) for log_id, position in self.last.items())


@dataclass(frozen=True, slots=True)
class Trim:
    """What a durable snapshot covers, so that the files need not hold it; `erase`: and must not."""

    covered: Covered
    snapshot_no: int
    erase: bool = False

    def also(self, waiting: Trim | None) -> Trim:
        return self if waiting is None else replace(self, erase=self.erase or waiting.erase)


@dataclass(slots=True)
class ActiveFile:
    path: str
    number: int
    salt: int
    file: File
    capacity: int
    end: int
    """Where the next frame goes; readers of other threads may read up to here."""
    synced: int
    marked: int = 0
    """The highest mark written so far."""
    zeroed: int = 0
    """Zeros were written up to here."""
    last: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ShardStart:
    """Where a shard goes on: what earlier processes left of it, and the place of its next file."""

    shard: int
    shards: int
    layout: int
    stored: tuple[StoredFile, ...]
    next_number: int
    snapshot_no: int
    after_power_loss: bool


class ShardFiles:
    def __init__(
        self,
        fs: FileSystem,
        directory: str,
        clock: Clock,
        salt_source: Callable[[], int],
        file_bytes: int,
        start: ShardStart,
        notes: memoryview,
    ) -> None:
        """`notes` are the shard's numbers of the witness, see `witness`."""
        self.shard = start.shard
        self.metrics = ShardMetrics()
        self.stored = start.stored
        """Replaced, never changed, so that readers of other threads see a whole list."""
        self._fs = fs
        self._directory = directory
        self._clock = clock
        self._salt_source = salt_source
        self._file_bytes = file_bytes
        self._start = start
        self._notes = notes
        self._snapshot_no = start.snapshot_no
        self._after_power_loss = start.after_power_loss
        self._spare_path = f"{directory}/{spare_name(start.shard)}"
        self._spare: File | None = None
        self._spare_wanted = True
        self.active = self._create(start.next_number, 0)

    def write(self, groups: Sequence[Sequence[Entry]]) -> None:
        """Hand all entries to the operating system, in order."""
        metrics = self.metrics
        buffers: list[Buffer] = []
        pending = 0
        active = self.active
        for entries in groups:
            metrics.frames += len(entries)
            for entry in entries:
                before = len(buffers)
                kind, log_id, position, body = entry.kind, entry.log_id, entry.position, entry.body
                size = frame.emit(buffers, kind, log_id, position, active.synced, body, active.salt)
                if active.end + pending + size > active.capacity:
                    del buffers[before:]
                    self._write_out(buffers, pending)
                    buffers, pending = [], 0
                    active = self._make_room(size)
                    frame.emit(buffers, kind, log_id, position, active.synced, body, active.salt)
                active.last[log_id] = position
                pending += size
                if pending >= WRITE_BYTES_MAX:
                    self._write_out(buffers, pending)
                    buffers, pending = [], 0
        self._write_out(buffers, pending)
        metrics.batches += 1

    def has_room(self, size_bytes: int, count: int) -> bool:
        """Whether so many entries with bodies of so many bytes fit into the active file."""
        active = self.active
        return active.end + size_bytes + count * (frame.OVERHEAD_BYTES + frame.ALIGN) <= active.capacity

    def sync(self) -> None:
        active = self.active
        if 0 < active.end - active.synced <= SMALL_SYNC_BYTES:
            self._zero_ahead()
        self._sync()

    def _sync(self) -> None:
        active = self.active
        if active.end == active.synced:
            return
        began_ns = self._clock.ticks_ns()
        active.file.sync()
        active.synced = self._notes[SYNCED] = active.end
        self.metrics.fsyncs += 1
        self.metrics.sync_us.add((self._clock.ticks_ns() - began_ns) // 1000)

    def _zero_ahead(self) -> None:
        """Before a sync, which covers the zeros as well: see that the next ones find some."""
        active = self.active
        if active.zeroed < active.end + SMALL_SYNC_BYTES and active.zeroed < active.capacity:
            start = max(active.zeroed, active.end)
            zeros = memoryview(ZEROS)[: active.capacity - start]
            active.file.write_at(start, [zeros])
            active.zeroed = start + len(zeros)

    def settle(self) -> None:
        """What is done when nothing is waiting: tell the disk how much of it is synced, and prepare the next file."""
        active = self.active
        if active.synced > active.marked and active.end + frame.OVERHEAD_BYTES <= active.capacity:
            self._write_own(Kind.SYNC_MARK)
        if self._spare_wanted and active.end * 2 > active.capacity:
            self._prepare_spare()

    def trim(self, trim: Trim) -> None:
        """Note the durable snapshot, and delete the oldest files as far as it covers them."""
        if trim.erase and self.active.last:
            self._make_room(0)
        keep = 0
        while keep < len(self.stored) and self.stored[keep].covered_by(trim.covered):
            keep += 1
        dropped, self.stored = self.stored[:keep], self.stored[keep:]
        self._snapshot_no = trim.snapshot_no
        self._after_power_loss = False
        body = msgspec.msgpack.encode(Trimmed(self._oldest(), trim.snapshot_no))
        if self.active.end + frame.padded(frame.OVERHEAD_BYTES + len(body)) <= self.active.capacity:
            self._write_own(Kind.TRIMMED, [body])
            self.sync()
        else:
            self._make_room(0)
        self._drop([file.path for file in dropped], trim.erase)

    def read(self, log_id: int, from_position: int) -> Iterator[Entry]:
        """One log's entries as far as they are written. Any thread may call this."""
        # In this order, a rotation in between shows a file twice rather than not at all.
        active = self.active
        active_end = active.end
        for stored in self.stored:
            if stored.number < active.number and stored.last.get(log_id, 0) >= from_position:
                try:
                    yield from read_entries(self._fs, stored.path, stored.salt, stored.end, log_id, from_position)
                except FileNotFoundError:
                    if stored in self.stored:
                        raise
        yield from read_entries(self._fs, active.path, active.salt, active_end, log_id, from_position)

    def parts(self) -> list[FilePart]:
        """What is written so far, as a clean stop at this moment would leave it."""
        active = self.active
        return [
            *(_part(self.shard, file.number, file.path, file.end, file.salt, 0) for file in self.stored),
            _part(self.shard, active.number, active.path, active.end, active.salt, CLEAN_STOP),
        ]

    def close(self) -> None:
        """A clean stop."""
        self._seal(CLEAN_STOP)
        self.abandon()

    def abandon(self) -> None:
        """Let go of the files as they are."""
        self.active.file.close()
        if self._spare is not None:
            self._spare.close()

    def _oldest(self) -> int:
        return self.stored[0].number if self.stored else self.active.number

    def _drop(self, paths: Sequence[str], erase: bool) -> None:
        if not paths:
            return
        if erase:
            for path in paths:
                self._fs.rename(path, erased_path(path))
            # A WAL file that is half zeros would be damage; under another name it is rubbish.
            self._fs.sync_dir(self._directory)
        for path in paths:
            if erase:
                shred(self._fs, erased_path(path))
            else:
                self._fs.unlink(path)
        self._fs.sync_dir(self._directory)
        self.metrics.files_trimmed += len(paths)

    def _write_out(self, buffers: Sequence[Buffer], size: int) -> None:
        if not size:
            return
        active = self.active
        if size < len(buffers) * BUFFER_BYTES_SMALL:
            buffers = [b"".join(buffers)]
        active.file.write_at(active.end, buffers)
        active.marked = active.synced
        active.end = self._notes[END] = active.end + size
        self.metrics.bytes_written += size

    def _write_own(self, kind: Kind, body: Sequence[Buffer] = (), flags: int = 0) -> None:
        buffers: list[Buffer] = []
        active = self.active
        self._write_out(buffers, frame.emit(buffers, kind, 0, 0, active.synced, body, active.salt, flags))

    def _make_room(self, size: int) -> ActiveFile:
        """Go on to a file in which a frame of this size fits."""
        full, end = self.active, self.active.end
        self._seal(0)
        full.file.close()
        self.stored = (*self.stored, StoredFile(full.path, full.number, full.salt, end, full.last))
        self.active = self._create(full.number + 1, size)
        self.metrics.rotations += 1
        return self.active

    def _seal(self, flags: int) -> None:
        self._sync()
        self._write_own(Kind.FILE_END, flags=flags)
        self.active.file.truncate(self.active.end)
        self._sync()

    def _create(self, number: int, frame_bytes: int) -> ActiveFile:
        salt = self._salt_source()
        oldest = self.stored[0].number if self.stored else number
        header = header_frame(
            FileHeader(
                version=FORMAT_VERSION,
                layout=self._start.layout,
                shards=self._start.shards,
                shard=self.shard,
                number=number,
                oldest=oldest,
                snapshot_no=self._snapshot_no,
                after_power_loss=self._after_power_loss,
                salt=salt,
                boot_id=self._fs.boot_id(),
                created_ms=self._clock.now_ms(),
            )
        )
        first = sum(len(part) for part in header)
        allocated = max(self._file_bytes, first + frame_bytes + RESERVE_BYTES)
        spare = self._take_spare()
        try:
            spare.allocate(allocated)
            spare.write_at(0, header)
            spare.sync()
        finally:
            spare.close()
        path = f"{self._directory}/{file_name(self.shard, number)}"
        self._notes[NEXT] = salt
        self._fs.rename(self._spare_path, path)
        self._fs.sync_dir(self._directory)
        begin_file(self._notes, salt, first)
        self._spare_wanted = True
        # Opened again, so that its errors name the file as it is called from now on.
        file = self._fs.open(path, "write")
        return ActiveFile(path, number, salt, file, allocated - RESERVE_BYTES, first, first)

    def _take_spare(self) -> File:
        spare, self._spare = self._spare, None
        return spare or self._create_spare()

    def _create_spare(self) -> File:
        if self._fs.exists(self._spare_path):
            self._fs.unlink(self._spare_path)  # Half prepared when space ran out, or left by a process that died.
        return self._fs.open(self._spare_path, "create")

    def _prepare_spare(self) -> None:
        """Reserve the next file's space. Failing is allowed here: it counts when the active file is full."""
        self._spare_wanted = False
        try:
            spare = self._create_spare()
            try:
                spare.allocate(self._file_bytes)
            except OSError:
                spare.close()
                raise
        except OSError as error:
            self.metrics.spare_failures += 1
            self.metrics.last_error = f"cannot prepare the next file: {error}"
            return
        self._spare = spare


def seal_recovered(fs: FileSystem, scanned: ScannedFile) -> StoredFile:
    """Close off the last file of a stopped process: drop its torn tail, make the rest durable, and mark its end.

    What was written but not known to be synced is written once more, an end mark that is there already included: a
    sync that failed before the process stopped may have left the operating system with bytes it believes to be on disk.
    """
    file = fs.open(scanned.path, "write")
    try:
        if not scanned.sealed:
            for offset in range(scanned.mark, scanned.end, COPY_BYTES):
                file.write_at(offset, [file.read_at(offset, min(COPY_BYTES, scanned.end - offset))])
            for offset in range(scanned.end, scanned.written, COPY_BYTES):
                file.write_at(offset, [bytes(min(COPY_BYTES, scanned.written - offset))])
            file.sync()
        flags = CLEAN_STOP if scanned.clean else 0
        file.write_at(scanned.end, frame.build(Kind.FILE_END, 0, 0, scanned.end, (), scanned.salt, flags=flags))
        file.sync()
    finally:
        file.close()
    return stored_file(scanned)


def _part(shard: int, number: int, path: str, end: int, salt: int, flags: int) -> FilePart:
    ending = b"".join(frame.build(Kind.FILE_END, 0, 0, end, (), salt, flags=flags))
    return FilePart(file_name(shard, number), path, end, ending)


def stored_file(scanned: ScannedFile) -> StoredFile:
    """A file that has a successor, and so is whole and durable."""
    return StoredFile(scanned.path, scanned.number, scanned.salt, scanned.end, scanned.last)
