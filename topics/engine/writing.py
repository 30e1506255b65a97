"""The part of a checkpoint that runs beside the loop: files written from a job, and files removed after it.

`write` makes everything durable in an order that leaves either the old snapshot with all it needs, or the new one.
`clean` runs when the loop uses what was written: only then may the files go that it was reading from.
"""

from __future__ import annotations

from collections.abc import Sequence

from topics.engine import images
from topics.engine.job import Job, LogCapture, Part, SegmentLimits, blocks_of, section_key
from topics.errors import Damaged
from topics.limits import PACKED_TEXT_BYTES_MAX
from topics.storage.gone import flag_gone
from topics.storage.merge import copy_sections, shred_segment
from topics.storage.segment import PendingMarks, unset_marks, write_marks
from topics.storage.segmentfile import data_name
from topics.storage.segmentrun import SegmentRun
from topics.storage.segmentwriter import write_segment
from topics.storage.store import Store


def write(store: Store, limits: SegmentLimits, job: Job) -> None:
    """All of it is durable on return. Any error leaves what the old snapshot needs as it was.

    Flags of what this snapshot is the first not to name come last: see `storage/gone.py`.
    """
    _write_marks(store, job)
    _write_flushed(store, limits, job)
    _write_merged(store, limits, job)
    gone = set(job.forgotten)
    for capture in job.logs:
        if capture.log.log_id in gone:
            continue  # dropped while other logs were captured
        # The image gets its runs only now that they have places.
        job.images[images.log_key(capture.log.log_id)] = images.with_runs(capture.image, capture.runs())
    job.puts |= {key: images.encode(image) for key, image in job.images.items()}
    job.removes -= job.puts.keys()
    snapshots = store.snapshots
    job.snapshot_no = snapshots.reset(job.puts) if job.whole else snapshots.write(job.puts, job.removes)
    going = job.rewritten | job.unneeded
    flag_gone(store.fs, store.tiers, store.pins, [gone for gone in job.gone if gone.number not in going])


def clean(store: Store, job: Job) -> None:
    """Remove what nobody needs since the job was installed, and move what has grown old."""
    pins = store.pins
    if pins is not None:
        job.unneeded.update(pins.take_deferred())
    for number in sorted(job.rewritten | job.unneeded):
        try:
            if job.erase:
                shred_segment(store.fs, store.tiers, number)
            elif pins is None or not pins.defer(number, store.tiers.size_bytes(number)):
                store.tiers.remove(number)
            job.removed.add(number)
        except OSError as error:
            # Nothing reads it any more; the next checkpoint tries again.
            job.problems.append(f"segment {number} could not be removed: {error}")
    for number in job.relocate:
        try:
            store.tiers.relocate(number)
            job.relocated.append(number)
        except (OSError, Damaged) as error:
            # The segment stays hot and readable; the next checkpoint tries again.
            job.problems.append(f"segment {number} could not be moved to the cold directory: {error}")


def _write_marks(store: Store, job: Job) -> None:
    """Set the flags of each segment in one go; flags of segments that go are not worth it."""
    by_segment: dict[int, list[PendingMarks]] = {}
    for pending in job.marks:
        if pending.number not in job.unneeded:
            by_segment.setdefault(pending.number, []).append(pending)
    for number, marks in by_segment.items():
        path = store.tiers.find(data_name(number))
        if store.pins is not None and store.pins.holds(number):
            store.pins.note_flags(number, unset_marks(store.fs, path, marks))
        write_marks(store.fs, path, marks)


def _write_flushed(store: Store, limits: SegmentLimits, job: Job) -> None:
    """Large stretches get segments of their own; all small ones share."""
    small: list[tuple[LogCapture, Part]] = []
    for capture in job.logs:
        for part in capture.flush:
            if part.text_bytes > PACKED_TEXT_BYTES_MAX:
                _write_parts(store, job, [(capture, part)])
            else:
                small.append((capture, part))
    for pack in _packs(small, limits.bytes_max):
        _write_parts(store, job, pack)


def _write_merged(store: Store, limits: SegmentLimits, job: Job) -> None:
    """Merge by log, so that a log's stretches come to lie together."""
    parts = [(capture, part) for capture in job.logs for part in capture.merge]
    for pack in _packs(parts, limits.bytes_max):
        _copy_parts(store, job, pack)


def _packs(parts: Sequence[tuple[LogCapture, Part]], bytes_max: int) -> list[list[tuple[LogCapture, Part]]]:
    """The parts in order, as many together as a segment may hold."""
    packs: list[list[tuple[LogCapture, Part]]] = []
    size_bytes = 0
    for capture, part in parts:
        part_bytes = part.text_bytes or part.live_bytes
        if not packs or size_bytes + part_bytes > bytes_max:
            packs.append([])
            size_bytes = 0
        packs[-1].append((capture, part))
        size_bytes += part_bytes
    return packs


def _write_parts(store: Store, job: Job, parts: Sequence[tuple[LogCapture, Part]]) -> None:
    number, salt = _begun(store, job)
    sections = ((section_key(capture.log), blocks_of(part, job.erase)) for capture, part in parts)
    write_segment(store.fs, store.segment_dir, number, salt, store.clock.now_ms(), sections)
    _note_places(parts, number, salt)


def _copy_parts(store: Store, job: Job, parts: Sequence[tuple[LogCapture, Part]]) -> None:
    number, salt = _begun(store, job)
    sources = [
        (
            section_key(capture.log),
            [(run.segment_no, run.section_no) for run in part.runs if isinstance(run, SegmentRun)],
        )
        for capture, part in parts
    ]
    copy_sections(
        store.fs,
        store.tiers.find,
        store.segment_dir,
        number,
        salt,
        store.clock.now_ms(),
        sources,
        blank_dead=job.erase,
        lows={capture.log.log_id: capture.image.low for capture, _ in parts},
    )
    _note_places(parts, number, salt)


def _begun(store: Store, job: Job) -> tuple[int, int]:
    """Number and salt of a new segment."""
    number = store.new_segment_number()
    job.new.append(number)
    return number, store.salt_source()


def _note_places(parts: Sequence[tuple[LogCapture, Part]], number: int, salt: int) -> None:
    for section_no, (_, part) in enumerate(parts):
        part.stored_at, part.salt = (number, section_no), salt
