"""Checkpoints: what the WAL holds moves into segments and a snapshot, so that the WAL can be trimmed.

    capture   on the loop, a slice of logs at a time: freeze what each dirty log holds in memory, note its numbers and
              the position they cover. Each log is captured by itself; no moment of the whole engine is needed
    write     on another thread, from what was captured: segments, marks, the snapshot; then remove what it freed
    install   on the loop: put the runs over the new segments where the memory was, trim the WAL

A crash at any point leaves the old snapshot with the WAL it needs, or the new one. Marks reach a segment before the
snapshot that counts on them, so recovery counts the marks themselves rather than trusting an older count.

The same three steps merge small segments into one and rewrite segments from which deleted bytes must vanish: runs of
segments are then among what is replaced.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from topics.core.block import Block
from topics.core.dedupe import chunk_is_dead
from topics.core.log import Log
from topics.core.machine import Machine
from topics.core.registry import META_LOG_ID
from topics.core.run import DEAD, U64, Marks, MemoryRun, Run
from topics.engine import images
from topics.engine.images import LogImage, MetaImage, RunImage
from topics.errors import Damaged
from topics.limits import PACKED_TEXT_BYTES_MAX, PACKS_MAX
from topics.model import Durability
from topics.storage.commitlog import Covered
from topics.storage.merge import blank, copy_sections, shred_segment
from topics.storage.segment import PendingMarks, write_marks
from topics.storage.segmentfile import SectionKey, data_name
from topics.storage.segmentrun import SegmentRun
from topics.storage.segmentwriter import write_segment
from topics.storage.store import Store


@dataclass(slots=True)
class Part:
    """A stretch of one log that becomes one section: memory runs, or runs of older segments."""

    runs: list[Run]
    marks: list[Marks | None]
    """The marks of memory runs as they were when captured."""
    live_count: int = 0
    live_bytes: int = 0
    text_bytes: int = 0
    count: int = 0
    stored_at: tuple[int, int] | None = None
    """Segment and section, once written."""

    @property
    def first_seq(self) -> int:
        return self.runs[0].first_seq

    def add(self, run: Run) -> None:
        self.runs.append(run)
        self.live_count += run.live_count
        self.live_bytes += run.live_bytes
        self.count += run.last_seq - run.first_seq + 1
        if isinstance(run, MemoryRun):
            self.marks.append(bytearray(run.marks) if run.marks is not None else None)
            self.text_bytes += len(run.block.text)

    def image(self) -> RunImage:
        assert self.stored_at is not None
        return RunImage(*self.stored_at, self.live_count, self.live_bytes)


@dataclass(slots=True)
class LogCapture:
    log: Log
    image: LogImage
    kept: list[tuple[int, RunImage]]
    """First seq and image of the runs that stay where they are."""
    flush: list[Part]
    merge: list[Part]

    def runs(self) -> list[RunImage]:
        new = [(part.first_seq, part.image()) for part in (*self.flush, *self.merge)]
        return [run for _, run in sorted([*self.kept, *new], key=lambda item: item[0])]


@dataclass(slots=True)
class Job:
    """Everything the writing thread needs, and what it answers."""

    erase: bool
    logs: list[LogCapture] = field(default_factory=list)
    puts: dict[bytes, bytes] = field(default_factory=dict)
    removes: set[bytes] = field(default_factory=set)
    marks: list[PendingMarks] = field(default_factory=list)
    rewritten: set[int] = field(default_factory=set)
    """Segments that are merged or erased: gone once the snapshot is durable."""
    unneeded: set[int] = field(default_factory=set)
    relocate: list[int] = field(default_factory=list)
    covered: dict[int, int] = field(default_factory=dict)
    forgotten: list[int] = field(default_factory=list)
    changed_topics: set[str] = field(default_factory=set)
    changed_stages: set[str] = field(default_factory=set)
    changed_batches: set[tuple[str, int]] = field(default_factory=set)
    new: list[int] = field(default_factory=list)
    """Segments this job made."""
    snapshot_no: int = 0
    relocated: list[int] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """What went wrong without stopping the checkpoint."""


@dataclass(slots=True)
class _Chunks:
    """The dedupe chunks of one log: number and head of each, and the bytes of those not yet stored."""

    heads: dict[int, bytes] = field(default_factory=dict)
    unstored: dict[int, bytes] = field(default_factory=dict)
    next_number: int = 1


CHUNK_HEAD_BYTES = 16


@dataclass(frozen=True, slots=True)
class SegmentLimits:
    bytes_max: int = 64 << 20
    records_max: int = 1_000_000
    cold_after_ms: int = 7 * 24 * 3600 * 1000


class Checkpointer:
    def __init__(self, store: Store, machine: Machine, positions: dict[int, int], limits: SegmentLimits) -> None:
        self._store = store
        self._machine = machine
        self._positions = positions
        self._limits = limits
        self.covered: dict[int, int] = {}
        """The position of each existing log that the newest snapshot covers."""
        self.dirty: set[int] = set()
        self._chunks: dict[int, _Chunks] = {}
        self._forgotten: list[int] = []
        self._removes: set[bytes] = set()
        """Keys that a failed checkpoint did not get to remove."""
        self._may_merge = True

    # ---- capture

    def capture(self, now_ms: int, erase: set[int] | None = None) -> Iterator[Job]:
        """Yields the job after each slice of work; the last one yielded is complete.

        `erase` names segments to rewrite so that the bytes of deleted records vanish; those in memory vanish as well.
        """
        job = Job(erase=erase is not None)
        job.rewritten = self._packs_to_merge() if erase is None else set(erase)
        log_ids = set(self.dirty)
        for number in job.rewritten:
            log_ids.update(section.log_id for section in self._store.segment(number).sections)
        self.dirty -= log_ids
        for log_id in sorted(log_ids):
            log = self._machine.logs.get(log_id)
            if log is not None:
                self._capture_log(job, log, now_ms)
                yield job
        self._capture_gone(job)
        self._capture_meta(job, now_ms)
        for segment in list(self._store.open_segments()):
            pending = segment.pending_marks()
            if pending is not None:
                job.marks.append(pending)
        job.unneeded = self._store.take_unneeded()
        job.relocate = self._cold_segments(job, now_ms)
        yield job

    def _packs_to_merge(self) -> set[int]:
        """The small segments, once there are too many of them."""
        if not self._may_merge:
            return set()
        small = [s.number for s in self._store.open_segments() if s.data_bytes < self._limits.bytes_max // 4]
        return set(small) if len(small) > PACKS_MAX else set()

    def _capture_log(self, job: Job, log: Log, now_ms: int) -> None:
        log.freeze_tail()
        self._release(log)
        stored = self._durability_of(log) is not Durability.EPHEMERAL
        capture = LogCapture(log, self._image(log, stored, now_ms, job), [], [], [])
        for run in log.runs:
            if isinstance(run, SegmentRun) and run.segment_no not in job.rewritten:
                place = RunImage(run.segment_no, run.section_no, run.live_count, run.live_bytes)
                capture.kept.append((run.first_seq, place))
            elif isinstance(run, SegmentRun):
                _extend(capture.merge, run, self._limits)
            elif stored:
                _extend(capture.flush, run, self._limits)
        job.logs.append(capture)
        job.covered[log.log_id] = capture.image.position

    def _durability_of(self, log: Log) -> Durability:
        topic = self._machine.topics.get(log.topic)
        if topic is None or log.log_id not in topic.log_ids():
            return Durability.FSYNC  # a stage
        return topic.config.durability

    def _image(self, log: Log, stored: bool, now_ms: int, job: Job) -> LogImage:
        chunks = self._chunks.setdefault(log.log_id, _Chunks())
        fresh = log.dedupe.take_chunk()
        if fresh is not None and stored:
            chunks.heads[chunks.next_number] = fresh[:CHUNK_HEAD_BYTES]
            chunks.unstored[chunks.next_number] = fresh
            chunks.next_number += 1
        topic = self._machine.topics.get(log.topic)
        window_ms = topic.config.idempotency_window_ms if topic is not None else 0
        for number in [n for n, head in chunks.heads.items() if chunk_is_dead(head, now_ms, window_ms)]:
            del chunks.heads[number]
            chunks.unstored.pop(number, None)
            job.removes.add(images.chunk_key(log.log_id, number))
        for number, chunk in chunks.unstored.items():
            job.puts[images.chunk_key(log.log_id, number)] = chunk
        stored_upto = log.head_seq
        if not stored:
            stored_upto = max((run.last_seq for run in log.runs if isinstance(run, SegmentRun)), default=0)
        return images.log_image(log, self._positions.get(log.log_id, 0), stored_upto, list(chunks.heads))

    def _release(self, log: Log) -> None:
        released, log.released = log.released, []
        for run in released:
            if isinstance(run, SegmentRun):
                self._store.release(run)

    def _capture_gone(self, job: Job) -> None:
        gone, self._machine.dropped_logs = self._machine.dropped_logs, []
        for log in gone:
            log.released += log.runs
            log.runs = []
            self._release(log)
            job.removes.add(images.log_key(log.log_id))
            chunks = self._chunks.pop(log.log_id, _Chunks())
            job.removes.update(images.chunk_key(log.log_id, number) for number in chunks.heads)
            self._forgotten.append(log.log_id)
        job.forgotten = list(self._forgotten)

    def _capture_meta(self, job: Job, now_ms: int) -> None:
        machine = self._machine
        position = self._positions.get(META_LOG_ID, 0)
        job.changed_topics, machine.changed = machine.changed, set()
        for name in job.changed_topics:
            topic = machine.topics.get(name)
            _put(job, images.topic_key(name), images.topic_image(topic) if topic is not None else None)
        batches = machine.batches
        job.changed_stages, batches.changed_stages = batches.changed_stages, set()
        for stage_id in job.changed_stages:
            stage = batches.stages.get(stage_id)
            _put(job, images.stage_key(stage_id), images.stage_image(stage) if stage is not None else None)
        job.changed_batches, batches.changed_batches = batches.changed_batches, set()
        for key in job.changed_batches:
            batch = batches.by_producer.get(key)
            _put(job, images.batch_key(*key), images.batch_image(batch) if batch is not None else None)
        job.removes |= self._removes
        job.covered[META_LOG_ID] = position
        meta = MetaImage(position, machine.next_log_id, machine.next_epoch, self._store.next_segment, now_ms)
        _put(job, images.META_KEY, meta)

    def _cold_segments(self, job: Job, now_ms: int) -> list[int]:
        if self._store.tiers.cold_dir is None:
            return []
        hot = set(self._store.fs.list(self._store.segment_dir))
        return [
            segment.number
            for segment in self._store.open_segments()
            if segment.created_ms + self._limits.cold_after_ms <= now_ms
            and segment.number not in job.rewritten | job.unneeded
            and segment.name in hot
        ]

    # ---- write (on the checkpoint's own thread)

    def write(self, job: Job) -> None:
        """All of it is durable on return. Any error leaves what the old snapshot needs as it was."""
        self._write_marks(job)
        self._write_flushed(job)
        if job.rewritten:
            self._write_merged(job)
        for capture in job.logs:
            # The image gets its runs only now that they have places.
            image = images.with_runs(capture.image, capture.runs())
            job.puts[images.log_key(capture.log.log_id)] = images.encode(image)
        job.removes -= job.puts.keys()
        job.snapshot_no = self._store.snapshots.write(job.puts, job.removes)
        for number in job.rewritten | job.unneeded:
            if job.erase:
                shred_segment(self._store.fs, self._store.tiers, number)
            else:
                self._store.tiers.remove(number)
        for number in job.relocate:
            try:
                self._store.tiers.relocate(number)
                job.relocated.append(number)
            except (OSError, Damaged) as error:
                # The segment stays hot and readable; the next checkpoint tries again.
                job.problems.append(f"segment {number} could not be moved to the cold directory: {error}")

    def _write_marks(self, job: Job) -> None:
        for pending in job.marks:
            if pending.number not in job.unneeded:
                write_marks(self._store.fs, self._store.tiers.find(data_name(pending.number)), pending)

    def _write_flushed(self, job: Job) -> None:
        """Large stretches get segments of their own; all small ones share."""
        small: list[tuple[LogCapture, Part]] = []
        for capture in job.logs:
            for part in capture.flush:
                if part.text_bytes > PACKED_TEXT_BYTES_MAX:
                    self._write_parts(job, [(capture, part)])
                else:
                    small.append((capture, part))
        pack: list[tuple[LogCapture, Part]] = []
        pack_bytes = 0
        for capture, part in small:
            if pack and pack_bytes + part.text_bytes > self._limits.bytes_max:
                self._write_parts(job, pack)
                pack, pack_bytes = [], 0
            pack.append((capture, part))
            pack_bytes += part.text_bytes
        if pack:
            self._write_parts(job, pack)

    def _write_parts(self, job: Job, parts: Sequence[tuple[LogCapture, Part]]) -> None:
        store = self._store
        number = store.new_segment_number()
        job.new.append(number)
        sections = ((_section_key(capture.log), _blocks_of(part, job.erase)) for capture, part in parts)
        write_segment(store.fs, store.segment_dir, number, store.salt_source(), store.clock.now_ms(), sections)
        for section_no, (_, part) in enumerate(parts):
            part.stored_at = number, section_no

    def _write_merged(self, job: Job) -> None:
        """Merge by log, so that a log's stretches come to lie together."""
        pack: list[tuple[LogCapture, Part]] = []
        pack_bytes = 0
        for capture in job.logs:
            for part in capture.merge:
                if pack and pack_bytes + part.live_bytes > self._limits.bytes_max:
                    self._copy(job, pack)
                    pack, pack_bytes = [], 0
                pack.append((capture, part))
                pack_bytes += part.live_bytes
        if pack:
            self._copy(job, pack)

    def _copy(self, job: Job, parts: Sequence[tuple[LogCapture, Part]]) -> None:
        store = self._store
        number = store.new_segment_number()
        job.new.append(number)
        sources = [
            (
                _section_key(capture.log),
                [(run.segment_no, run.section_no) for run in part.runs if isinstance(run, SegmentRun)],
            )
            for capture, part in parts
        ]
        copy_sections(
            store.fs,
            store.tiers.find,
            store.segment_dir,
            number,
            store.salt_source(),
            store.clock.now_ms(),
            sources,
            blank_dead=job.erase,
        )
        for section_no, (_, part) in enumerate(parts):
            part.stored_at = number, section_no

    # ---- install

    def install(self, job: Job) -> Covered:
        """Use what was written; what the WAL need not hold any more."""
        store = self._store
        for pending in job.marks:
            if pending.number not in job.unneeded:
                store.segment(pending.number).marks_durable(pending)
        for capture in job.logs:
            chunks = self._chunks.get(capture.log.log_id)
            if chunks is not None:
                for number in capture.image.chunks:
                    chunks.unstored.pop(number, None)
            if self._machine.logs.get(capture.log.log_id) is capture.log:
                self._replace(capture)
        for number in job.rewritten:
            store.forget(number)
        store.drop_unused(job.new)
        for number in job.relocated:
            store.segment(number).moved()
        self.covered.update(job.covered)
        for log_id in job.forgotten:
            self.covered.pop(log_id, None)
        self._forgotten = self._forgotten[len(job.forgotten) :]
        self._removes -= job.removes
        return Covered(dict(self.covered), self._next_covered())

    def _next_covered(self) -> int:
        """Logs below this number that are not among the covered ones are gone."""
        for log_id in self._machine.logs:
            self.covered.setdefault(log_id, 0)
        return self._machine.next_log_id

    def _replace(self, capture: LogCapture) -> None:
        log = capture.log
        replaced: dict[int, Run] = {}
        new: list[SegmentRun] = []
        for part in (*capture.flush, *capture.merge):
            assert part.stored_at is not None
            for run in part.runs:
                replaced[id(run)] = run
            run = self._store.run(*part.stored_at, part.live_count, part.live_bytes)
            for seqs in _marked_since(part):
                run.mark(seqs)
            if run.last_seq < log.low or not run.live_count:
                self._store.release(run)
                continue
            new.append(run)
        kept = [run for run in log.runs if id(run) not in replaced]
        log.runs = sorted([*kept, *new], key=lambda run: run.first_seq)
        log.released = [run for run in log.released if id(run) not in replaced]

    def failed(self, job: Job, error: Exception) -> None:
        """Nothing was installed: the next checkpoint takes everything again."""
        self.dirty.update(capture.log.log_id for capture in job.logs)
        self._machine.changed |= job.changed_topics
        self._machine.batches.changed_stages |= job.changed_stages
        self._machine.batches.changed_batches |= job.changed_batches
        self._removes |= job.removes
        self._store.keep_unneeded(job.unneeded)
        if isinstance(error, Damaged) and job.rewritten and not job.erase:
            # A damaged segment cannot be copied. It stays as it is, and so do the others: that costs files, not data.
            self._may_merge = False

    def restore_chunks(self, log_id: int, heads: dict[int, bytes]) -> None:
        """At recovery: the chunks a log has in the snapshot."""
        self._chunks[log_id] = _Chunks(dict(heads), {}, max(heads, default=0) + 1)


def _put(job: Job, key: bytes, image: object | None) -> None:
    if image is None:
        job.removes.add(key)
    else:
        job.puts[key] = images.encode(image)


def _extend(parts: list[Part], run: Run, limits: SegmentLimits) -> None:
    """Add a run to the last part, or begin a new one where a seq is missing or a segment would grow too large."""
    last = parts[-1] if parts else None
    size = len(run.block.text) if isinstance(run, MemoryRun) else run.live_bytes
    if (
        last is None
        or last.runs[-1].last_seq + 1 != run.first_seq
        or last.count + run.last_seq - run.first_seq + 1 > limits.records_max
        or last.text_bytes + size > limits.bytes_max
        or type(last.runs[-1]) is not type(run)
    ):
        last = Part([], [])
        parts.append(last)
    last.add(run)


def _section_key(log: Log) -> SectionKey:
    return SectionKey(log.log_id, log.topic, log.partition, log.epoch)


def _blocks_of(part: Part, erase: bool) -> Iterable[tuple[Block, Marks | None]]:
    for run, marks in zip(part.runs, part.marks, strict=True):
        assert isinstance(run, MemoryRun)
        yield (blank(run.block, marks) if erase else run.block), marks


def _marked_since(part: Part) -> Iterator[U64]:
    """What was deleted in a part's runs after it was captured."""
    captured = iter(part.marks)
    for run in part.runs:
        if isinstance(run, SegmentRun):
            yield run.pending_seqs()
            continue
        assert isinstance(run, MemoryRun)
        before = next(captured)
        if run.marks is not None:
            now = np.frombuffer(run.marks, np.uint8) == DEAD
            if before is not None:
                now &= np.frombuffer(before, np.uint8) != DEAD
            yield np.flatnonzero(now).astype(np.uint64) + np.uint64(run.first_seq)
