"""Reading WAL files back, and telling a torn tail from damage.

Frames are read from the start of a file until one does not check out, at offset x. Either the bytes at x were never
promised to anybody (a torn tail: the machine stopped before they were synced) or they were durable once and have
changed since (damage). Silently dropping the second would lose acked data, so the file itself must tell:

- Every frame carries a *mark*: how many bytes of the file were known to be synced when it was written. A valid frame
  anywhere behind x with a mark above x proves that the bytes at x were durable.
- A file gets a successor only after it was synced whole and ended with a FILE_END frame. So a bad or missing frame in
  a file that has a successor is damage.
- On the same run of the machine the witness says how much was synced (see `witness`): with whole frames behind it, a
  bad spot below that is damage. Without frames behind it the file just ends there, as one that was rolled back does.
- Everything else is a torn tail. There whole frames behind x do not matter: unsynced writes may reach the disk in any
  order.

Damage raises `Damaged`, or in salvage it is noted as a `Loss` and reading goes on at the next valid frame.

Positions are checked as well: each log's entries follow each other without a hole, except where the snapshot covers
what is missing. A file number may be missing only below the `oldest` that a header or a TRIMMED frame names, because
that is made durable before files are deleted.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np
from xxhash import xxh3_64_intdigest

from topics.errors import Damaged, NotUnderstood
from topics.storage import frame
from topics.storage.commitlog import Covered, Entry
from topics.storage.frame import ALIGN, CHECKSUM, HEADER, HEADER_BYTES, MAGIC, OVERHEAD_BYTES, Frame, Kind
from topics.storage.fs import FileSystem
from topics.storage.walfile import HEADER_SALT, FileHeader, file_name, read_header, salt_candidates
from topics.storage.witness import ShardWitness

Replayed = tuple[int, int, int, memoryview]
"""log id, position, kind, body: a tuple, because there are a million of them."""

CLEAN_STOP = 1
"""Flag of the FILE_END that a clean stop writes, as opposed to the one of a rotation."""

FIRST_ENTRY_KIND = Kind.APPENDED
"""Kinds from here on are entries of a log; those below belong to the WAL itself."""

PROGRESS_STEP_BYTES = 1 << 20
SEARCH_STEP_BYTES = 1 << 20


class Trimmed(msgspec.Struct, frozen=True, array_like=True):
    """Body of a TRIMMED frame: files below `oldest` are not needed by anybody who has snapshot `snapshot_no`."""

    oldest: int
    snapshot_no: int


@dataclass(frozen=True, slots=True)
class TornTail:
    """Bytes at the end of a shard that were written but never promised, and are dropped."""

    file: str
    offset: int
    dropped_bytes: int
    dropped_frames: int
    """Whole frames among the dropped bytes: writes that reached the disk ahead of earlier ones."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Damage that a salvage stepped over."""

    file: str
    offset: int
    message: str
    at_risk: tuple[tuple[int, int, int], ...]
    """(log id, first position, last position) known to be missing; other logs may have lost their last entries."""
    end: int = 0
    """Where reading went on, when bytes could not be read: those from `offset` to here."""
    whole_file: bool = False
    """A file is missing, or nothing in it can be read."""


@dataclass(slots=True)
class ScannedFile:
    path: str
    shard: int
    number: int
    size: int
    header: FileHeader | None
    """None only in salvage, when it could not be read."""
    salt: int = 0
    first: int = 0
    """Offset of the first frame behind the header."""
    end: int = 0
    """Offset behind the last good frame, without FILE_END."""
    mark: int = 0
    """Bytes known to be synced, as far as the good frames say."""
    written: int = 0
    """Offset behind the last byte that is not zero."""
    sealed: bool = False
    clean: bool = False
    trimmed: bool = False
    """A later snapshot was finished while this file was written."""
    last: dict[int, int] = field(default_factory=dict)
    """Each log's last position in this file."""


def open_file(fs: FileSystem, path: str, shard: int, number: int, salvage: bool) -> tuple[ScannedFile, Loss | None]:
    """Read a file's header."""
    mapping = fs.map(path)
    view = mapping.view
    try:
        header, first = read_header(view, path, shard, number)
        return ScannedFile(path, shard, number, len(view), header, header.salt, first, first), None
    except Damaged as error:
        if not salvage or isinstance(error, NotUnderstood):
            raise
        file = ScannedFile(path, shard, number, len(view), None, first=len(view))
        for salt in salt_candidates(view):
            for found in valid_frames(view, 0, salt):
                file.salt, file.first = salt, found.offset
                return file, Loss(path, 0, error.message, ())
        message = f"{error.message}; none of its {len(view)} bytes can be read without it"
        return file, Loss(path, 0, message, (), whole_file=True)
    finally:
        mapping.release()


class ShardScan:
    """One pass over the files of a shard. Iterate it to the end, then ask it what it found."""

    def __init__(
        self,
        fs: FileSystem,
        shard: int,
        files: Sequence[ScannedFile],
        covered: Covered,
        snapshot_no: int,
        tails: dict[int, int],
        witness: ShardWitness,
        salvage: bool = False,
    ) -> None:
        self.shard = shard
        self.files = list(files)
        self.torn: TornTail | None = None
        self.losses: list[Loss] = []
        self.oldest = 0
        self.snapshot_no = 0
        self.bytes_total = sum(file.size for file in self.files)
        self.bytes_done = 0
        self.finished = False
        self._fs = fs
        self._covered = covered
        self._floors = dict(covered.positions)
        self._have_snapshot_no = snapshot_no
        self._tails = tails
        self._witness = witness
        self._salvage = salvage

    def __iter__(self) -> Iterator[Replayed]:
        """The entries that the snapshot does not cover, in the order they were written."""
        done = 0
        for file in self.files:
            if file.header is not None:
                self._note_trimmed(file.path, 0, Trimmed(file.header.oldest, file.header.snapshot_no))
            mapping = self._fs.map(file.path)
            try:
                yield from self._read_file(file, mapping.view, done)
            finally:
                mapping.release()
            done += file.size
            self.bytes_done = done
        self._check_numbers()
        self.finished = True

    def _read_file(self, file: ScannedFile, view: memoryview, done: int) -> Iterator[Replayed]:
        offset: int | None = file.first
        while offset is not None:
            file.end = yield from self._read_frames(file, view, offset, done)
            offset = None if file.sealed else self._judge(file, view, file.end)

    def _read_frames(
        self, file: ScannedFile, view: memoryview, offset: int, done: int
    ) -> Generator[Replayed, None, int]:
        """Entries from `offset` on; returns where the good frames stop. The hot loop of a recovery."""
        unpack, unpack_checksum, digest = HEADER.unpack_from, CHECKSUM.unpack_from, xxh3_64_intdigest
        tails, floors, last, salt = self._tails, self._floors, file.last, file.salt
        limit = len(view) - OVERHEAD_BYTES
        report_at = offset + PROGRESS_STEP_BYTES
        while offset <= limit:
            magic, body_len, log_id, kind, flags, _, position, mark = unpack(view, offset)
            if magic != MAGIC or offset + body_len > limit:
                break
            body_at = offset + HEADER_BYTES
            body_end = body_at + body_len
            if digest(view[offset:body_end], salt) != unpack_checksum(view, body_end)[0]:
                break
            file.mark = mark
            if kind >= FIRST_ENTRY_KIND:
                floor = floors.get(log_id)
                if floor is None:
                    floor = floors[log_id] = self._covered.upto(log_id)
                if position != tails.get(log_id, 0) + 1:
                    self._check_jump(file, offset, log_id, position)
                tails[log_id] = last[log_id] = position
                if position > floor:
                    yield log_id, position, kind, view[body_at:body_end]
            elif kind == Kind.FILE_END:
                file.sealed, file.clean = True, bool(flags & CLEAN_STOP)
                break
            elif kind == Kind.TRIMMED:
                file.trimmed = True
                self._take_trimmed(file.path, offset, view[body_at:body_end])
            offset = (body_end + CHECKSUM.size + ALIGN - 1) & -ALIGN
            if offset > report_at:
                self.bytes_done = done + offset
                report_at = offset + PROGRESS_STEP_BYTES
        return offset

    def _judge(self, file: ScannedFile, view: memoryview, offset: int) -> int | None:
        """Torn tail or damage: what stands at `offset` is no frame. Where to read on, None when nowhere."""
        file.written = max(offset, nonzero_end(view, offset))
        behind = list(valid_frames(view, offset + ALIGN, file.salt))
        if file is not self.files[-1]:
            proof = f"file {self.files[self.files.index(file) + 1].number} of the shard was begun after it was complete"
        else:
            witness = next((found for found in behind if found.mark > offset), None)
            if witness is not None:
                proof = f"the frame at {witness.offset} says that the first {witness.mark} bytes were synced"
            elif behind and offset < self._synced_upto(file):
                synced = self._synced_upto(file)
                proof = (
                    f"the process had synced the first {synced} bytes, and whole frames follow at {behind[0].offset}"
                )
            else:
                if file.written > offset:
                    self.torn = TornTail(file.path, offset, file.written - offset, len(behind))
                return None
        end = behind[0].offset if behind else file.written
        self._report(file, offset, f"unreadable bytes, and {proof}", self._at_risk(behind), end)
        return end if behind else None

    def _synced_upto(self, file: ScannedFile) -> int:
        header = file.header
        if header is None or header.boot_id != self._fs.boot_id():
            return 0
        return self._witness.synced_upto(header.salt)

    def _at_risk(self, behind: Sequence[Frame]) -> tuple[tuple[int, int, int], ...]:
        """What the frames behind a bad spot show to be missing."""
        risks: dict[int, tuple[int, int, int]] = {}
        for found in behind:
            if found.kind >= FIRST_ENTRY_KIND and found.log_id not in risks:
                known = max(self._tails.get(found.log_id, 0), self._covered.upto(found.log_id))
                risks[found.log_id] = (found.log_id, known + 1, found.position - 1)
        return tuple(risk for risk in risks.values() if risk[1] <= risk[2])

    def _check_jump(self, file: ScannedFile, offset: int, log_id: int, position: int) -> None:
        tail = self._tails.get(log_id, 0)
        known = max(tail, self._covered.upto(log_id))
        if tail < position <= known + 1:
            return
        if position <= tail:
            self._report(file, offset, f"log {log_id} goes back from position {tail} to {position}", ())
            return
        risk = (log_id, known + 1, position - 1)
        if not any(risk in loss.at_risk for loss in self.losses):
            self._report(file, offset, f"log {log_id} jumps from position {known} to {position}", (risk,))

    def _take_trimmed(self, path: str, offset: int, body: memoryview) -> None:
        try:
            trimmed = msgspec.msgpack.decode(body, type=Trimmed)
        except frame.UNREADABLE as error:
            self._note(path, offset, f"which files are needed cannot be decoded: {error}", ())
        else:
            self._note_trimmed(path, offset, trimmed)

    def _note_trimmed(self, path: str, offset: int, trimmed: Trimmed) -> None:
        self.oldest = max(self.oldest, trimmed.oldest)
        self.snapshot_no = max(self.snapshot_no, trimmed.snapshot_no)
        if trimmed.snapshot_no > self._have_snapshot_no:
            message = f"snapshot {trimmed.snapshot_no} is needed, the newest one found is {self._have_snapshot_no}"
            self._note(path, offset, message, ())

    def _check_numbers(self) -> None:
        """Every file from the oldest needed one to the newest must be there."""
        numbers = {file.number for file in self.files}
        # In a salvage there may be no readable header, and then nothing that says whether there was an older one.
        oldest = self.oldest or min(numbers, default=0)
        for number in range(oldest, max(numbers, default=0)):
            if number not in numbers:
                place, _, last = self.files[-1].path.rpartition("/")
                what = f"file {number} of shard {self.shard} is missing before {last}"
                self._note(f"{place}/{file_name(self.shard, number)}", 0, what, (), whole_file=True)

    def _report(
        self, file: ScannedFile, offset: int, what: str, at_risk: tuple[tuple[int, int, int], ...], end: int = 0
    ) -> None:
        risks = ", ".join(f"log {log_id} positions {first}-{last}" for log_id, first, last in at_risk)
        self._note(file.path, offset, f"{what}; at risk: {risks or 'unknown'}", at_risk, end)

    def _note(
        self,
        path: str,
        offset: int,
        what: str,
        at_risk: tuple[tuple[int, int, int], ...],
        end: int = 0,
        whole_file: bool = False,
    ) -> None:
        message = f"{path} at offset {offset}: {what}"
        if not self._salvage:
            raise Damaged(message, file=path, offset=offset, shard=self.shard, at_risk=at_risk)
        self.losses.append(Loss(path, offset, message, at_risk, end, whole_file))


def valid_frames(view: memoryview, start: int, salt: int) -> Iterator[Frame]:
    """Every whole frame from `start` on that stands on its own, whatever stands between them."""
    start = frame.padded(start)
    stop = len(view) // ALIGN * ALIGN
    behind_last = start
    for base in range(start, stop, SEARCH_STEP_BYTES):
        words = np.frombuffer(view[base : min(base + SEARCH_STEP_BYTES, stop)], "<u4")[::2]
        for index in np.flatnonzero(words == MAGIC).tolist():
            offset = base + index * ALIGN
            if offset < behind_last:
                continue
            found = frame.parse(view, offset, salt)
            if found is not None:
                behind_last = found.end
                yield found


def nonzero_end(view: memoryview, start: int) -> int:
    """The offset behind the last byte that is not zero; `start` when all from there on are."""
    stop = len(view)
    while stop > start:
        base = max(start, stop - SEARCH_STEP_BYTES)
        found = np.flatnonzero(np.frombuffer(view[base:stop], np.uint8))
        if len(found):
            return base + int(found[-1]) + 1
        stop = base
    return start


def read_entries(fs: FileSystem, path: str, salt: int, end: int, log_id: int, from_position: int) -> Iterator[Entry]:
    """One log's entries in the first `end` bytes of a file that is known to be good so far."""
    mapping = fs.map(path)
    try:
        view = mapping.view[:end]
        first = frame.parse(view, 0, HEADER_SALT)
        offset = 0 if first is None else frame.padded(first.end)
        while offset < end:
            found = frame.parse(view, offset, salt)
            if found is None:
                raise Damaged(f"{path} at offset {offset}: unreadable bytes", file=path, offset=offset)
            if found.kind >= FIRST_ENTRY_KIND and found.log_id == log_id and found.position >= from_position:
                yield Entry(log_id, found.position, found.kind, (found.body,))
            offset = frame.padded(found.end)
    finally:
        mapping.release()
