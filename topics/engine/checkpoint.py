"""Checkpoints: what the WAL holds moves into segments and a snapshot, so that the WAL can be trimmed.

    capture   on the loop, a slice of logs at a time: freeze what each dirty log holds in memory, note its numbers and
              the position they cover. Each log is captured by itself; no moment of the whole engine is needed
    write     on another thread, from what was captured: marks, segments, the snapshot (`writing.py`)
    install   on the loop: put the runs over the new segments where the memory was, trim the WAL
    clean     on the thread again: remove the files that nothing needs any more

A crash at any point leaves the old snapshot with the WAL it needs, or the new one. Marks reach a segment before the
snapshot that counts on them, so recovery counts the marks themselves rather than trusting an older count.

The same steps merge small segments into one and rewrite segments from which deleted bytes must vanish: runs of
segments are then among what is replaced.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from topics.core.dedupe import chunk_is_dead
from topics.core.log import Log
from topics.core.machine import Machine
from topics.core.move import stored_form
from topics.core.registry import META_LOG_ID
from topics.core.run import MemoryRun, Run, seq_range
from topics.engine import catalogimages, heapimages, images, routerimages
from topics.engine.images import LogImage, MetaImage, RunImage
from topics.engine.job import Job, LogCapture, SegmentLimits, extend, marked_since
from topics.errors import Damaged
from topics.limits import PACKS_MAX
from topics.storage.commitlog import Covered
from topics.storage.gone import Gone, gone_section
from topics.storage.segmentrun import SegmentRun
from topics.storage.store import Store


@dataclass(slots=True)
class _Chunks:
    """The dedupe chunks of one log: number and head of each, and the bytes of those not yet stored."""

    heads: dict[int, bytes] = field(default_factory=dict)
    unstored: dict[int, bytes] = field(default_factory=dict)
    next_number: int = 1


_NO_CHUNKS = _Chunks()

CHUNK_HEAD_BYTES = 16
TOPICS_SLICE = 256
"""Topics captured before the loop gets a turn."""


class Checkpointer:
    def __init__(self, store: Store, machine: Machine, positions: dict[int, int], limits: SegmentLimits) -> None:
        self._store = store
        self._machine = machine
        self._positions = positions
        self.limits = limits
        self.covered: dict[int, int] = {META_LOG_ID: 0}
        """The position of each existing log that the newest snapshot covers; nothing of the meta log at first."""
        self.dirty: set[int] = set()
        self._chunks: dict[int, _Chunks] = {}
        self._forgotten: list[int] = []
        self._removes: set[bytes] = set()
        """Keys that a failed checkpoint did not get to remove."""
        self._may_merge = True
        self._gone: list[Gone] = []
        """What is gone and not flagged, because its checkpoint failed or was being written."""

    # ---- capture

    def capture(self, now_ms: int, erase: set[int] | None = None) -> Iterator[Job]:
        """Yields the job after each slice of work; the last one yielded is complete.

        `erase` names segments to rewrite so that the bytes of deleted records vanish; those in memory vanish as well.
        """
        job = Job(erase=erase is not None)
        job.rewritten = self._packs_to_merge() if erase is None else set(erase)
        job.gone, self._gone = self._gone, []
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
        while len(self._machine.changed) > TOPICS_SLICE:
            # One that changes again before the last slice is captured again: the last one is of one moment.
            self._capture_topics(job, {self._machine.changed.pop() for _ in range(TOPICS_SLICE)})
            yield job
        self._capture_meta(job, now_ms)
        job.unneeded = self._store.take_unneeded()
        job.relocate = self._cold_segments(job, now_ms)
        yield job

    def _packs_to_merge(self) -> set[int]:
        """The small segments, once there are too many of them."""
        if not self._may_merge:
            return set()
        small = [s.number for s in self._store.open_segments() if s.data_bytes < self.limits.bytes_max // 4]
        return set(small) if len(small) > PACKS_MAX else set()

    def _capture_log(self, job: Job, log: Log, now_ms: int) -> None:
        log.freeze_tail()
        self._release(job, log)
        volatile = log.volatile
        if volatile is not None:
            volatile.forget_below(log.low)
        stored_upto = log.head_seq if volatile is None else volatile.stored_upto(log.head_seq)
        capture = LogCapture(log, self._image(log, stored_upto, now_ms, job), [], [], [])
        for run in log.runs:
            if isinstance(run, MemoryRun) and run.first_seq < log.low:
                run.mark(seq_range(run.first_seq, log.low))
            if isinstance(run, SegmentRun):
                # Taken now, so that the flags that will be in the file are those this image counts.
                pending = self._store.segment(run.segment_no).pending_marks(run.section_no)
                job.marks += [pending] if pending is not None else []
            if isinstance(run, SegmentRun) and run.segment_no not in job.rewritten:
                capture.kept.append((run.first_seq, self._place(job, capture, run)))
            elif isinstance(run, SegmentRun):
                extend(capture.merge, run, self.limits)
                if run.first_seq < log.low:
                    capture.merge[-1].gone_count = run.live_count - _live_from(run, log.low)
            elif volatile is None or run.first_seq not in volatile:
                extend(capture.flush, run, self.limits)
        job.logs.append(capture)
        job.covered[log.log_id] = capture.image.position

    def _place(self, job: Job, capture: LogCapture, run: SegmentRun) -> RunImage:
        """Where a run stays. What the floor has passed in it gets its flags once the snapshot is durable."""
        low, live_count = 0, run.live_count
        if run.first_seq < capture.image.low:
            low = capture.image.low
            live_count = _live_from(run, low)
            if run.flagged_below < low:
                segment = self._store.segment(run.segment_no)
                job.gone.append(gone_section(segment, run.section_no, run.flagged_below, low))
                capture.flagged.append(run)
        return RunImage(
            run.segment_no,
            run.section_no,
            live_count,
            run.live_bytes,
            run.first_seq,
            run.last_seq,
            run.salt,
            low,
        )

    def _image(self, log: Log, stored_upto: int, now_ms: int, job: Job) -> LogImage:
        chunks = self._chunks.get(log.log_id, _NO_CHUNKS)
        if log.remembers:
            log.dedupe.retire(now_ms)
            self._capture_fences(job, log)
        fresh = log.dedupe.take_chunk(log.volatile) if log.remembers else None
        if fresh is not None:
            chunks = self._chunks.setdefault(log.log_id, _Chunks())
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
        if log.has_moves:
            log.transit.forget_sources(self._machine.logs)
        if log.inflow is not None and log.inflow.routes:
            log.inflow.forget_routers({router.number for router in self._machine.routers.into(log.topic)})
        heapimages.capture(job, log)
        leaving = tuple(log.transit.leaving.values()) if log.has_moves else ()
        return images.log_image(
            log,
            self._positions.get(log.log_id, 0),
            stored_upto,
            tuple(chunks.heads),
            tuple(stored_form(self._machine, fact) for fact in leaving),
        )

    def _capture_fences(self, job: Job, log: Log) -> None:
        """The fences that came, before the chunks go that hold the same; and those that went."""
        changed, log.dedupe.changed_fences = log.dedupe.changed_fences, set()
        if changed:
            job.changed_fences[log.log_id] = changed
        for producer_id in sorted(changed):
            fence = log.dedupe.fence(producer_id)
            if fence is not None and log.volatile is not None and fence.first_seq in log.volatile:
                fence = None
            _put(job, images.fence_key(log.log_id, producer_id), fence)

    def _release(self, job: Job, log: Log) -> None:
        released, log.released = log.released, ()
        for run in released:
            if isinstance(run, SegmentRun):
                self._let_go(job.gone, run)

    def _let_go(self, gone: list[Gone], run: SegmentRun) -> None:
        """The next snapshot does not name a run any more."""
        if self._store.is_open(run.segment_no):
            gone.append(gone_section(self._store.segment(run.segment_no), run.section_no))
        self._store.release(run)

    def _capture_gone(self, job: Job) -> None:
        gone, self._machine.dropped_logs = self._machine.dropped_logs, []
        for log in gone:
            log.released = [*log.released, *log.runs]
            log.runs = []
            self._release(job, log)
            job.removes.add(images.log_key(log.log_id))
            chunks = self._chunks.pop(log.log_id, _Chunks())
            job.removes.update(images.chunk_key(log.log_id, number) for number in chunks.heads)
            heapimages.gone(job, log)
            if log.remembers:
                job.removes.update(images.fence_key(log.log_id, name) for name in log.dedupe.fenced())
            self._forgotten.append(log.log_id)
        job.forgotten = list(self._forgotten)

    def _capture_topics(self, job: Job, names: set[str]) -> None:
        job.changed_topics |= names
        for name in sorted(names):
            topic = self._machine.topics.get(name)
            _put(job, images.topic_key(name), images.topic_image(topic) if topic is not None else None)

    def _capture_meta(self, job: Job, now_ms: int) -> None:
        machine = self._machine
        position = self._positions.get(META_LOG_ID, 0)
        changed, machine.changed = machine.changed, set()
        self._capture_topics(job, changed)
        batches = machine.batches
        job.changed_stages, batches.changed_stages = batches.changed_stages, set()
        for stage_id in sorted(job.changed_stages):
            stage = batches.stages.get(stage_id)
            _put(job, images.stage_key(stage_id), images.stage_image(stage) if stage is not None else None)
        job.changed_routers, machine.routers.changed = machine.routers.changed, set()
        for name in sorted(job.changed_routers):
            router = machine.routers.get(name)
            _put(job, routerimages.router_key(name), routerimages.router_image(router) if router is not None else None)
        catalog = machine.catalog
        job.changed_tables, catalog.changed_tables = catalog.changed_tables, set()
        job.changed_pipelines, catalog.changed_pipelines = catalog.changed_pipelines, set()
        for catalog_key, image in catalogimages.changed(catalog, job.changed_tables, job.changed_pipelines):
            _put(job, catalog_key, image)
        job.changed_accounts, machine.accounts.changed = machine.accounts.changed, set()
        for account_key in sorted(job.changed_accounts):
            _put(job, account_key, machine.accounts.image(account_key))
        job.changed_batches, batches.changed_batches = batches.changed_batches, set()
        for key in sorted(job.changed_batches):
            batch = batches.by_producer.get(key)
            _put(job, images.batch_key(*key), images.batch_image(batch) if batch is not None else None)
        job.removes |= self._removes
        job.covered[META_LOG_ID] = position
        job.next_log_id = machine.next_log_id
        for log_id in machine.logs:
            self.covered.setdefault(log_id, 0)
        meta = MetaImage(position, machine.next_log_id, machine.next_epoch, self._store.next_segment, now_ms)
        _put(job, images.META_KEY, meta)

    def _cold_segments(self, job: Job, now_ms: int) -> list[int]:
        if self._store.tiers.cold_dir is None:
            return []
        hot = set(self._store.fs.list(self._store.segment_dir))
        return [
            segment.number
            for segment in self._store.open_segments()
            if segment.created_ms + self.limits.cold_after_ms <= now_ms
            and segment.number not in job.rewritten | job.unneeded
            and segment.name in hot
        ]

    # ---- install

    def install(self, job: Job) -> Covered:
        """Use what was written; what the WAL need not hold any more."""
        for _ in self.install_logs(job):
            pass
        store = self._store
        for number in job.rewritten:
            store.forget(number)
        store.drop_unused(job.new)
        self.covered.update(job.covered)
        for log_id in job.forgotten:
            self.covered.pop(log_id, None)
        self._forgotten = self._forgotten[len(job.forgotten) :]
        self._removes.clear()
        # A log that came later is not known here, and one that went later is still needed: its end may not be durable.
        return Covered(dict(self.covered), job.next_log_id)

    def install_logs(self, job: Job) -> Iterator[None]:
        """The long part of `install`, a log at a time, for a loop that has other work: logs may change in between.

        A new segment may fail to open. Then `failed` takes again what is not installed; what is stays so.
        """
        while job.marks:
            pending = job.marks.pop()
            if pending.number not in job.unneeded:
                self._store.segment(pending.number).marks_durable(pending)
        while job.logs:
            capture = job.logs[-1]
            if self._machine.logs.get(capture.log.log_id) is capture.log:
                self._replace(capture)
            chunks = self._chunks.get(capture.log.log_id)
            if chunks is not None:
                for number in capture.image.chunks:
                    chunks.unstored.pop(number, None)
            heapimages.installed(capture.log, capture.image)
            for run in capture.flagged:
                run.flagged_below = capture.image.low
            job.logs.pop()
            yield

    def _replace(self, capture: LogCapture) -> None:
        log = capture.log
        parts = [*capture.flush, *capture.merge]
        for part in parts:
            assert part.stored_at is not None
            self._store.segment(part.stored_at[0])  # May fail: before anything has changed.
        replaced: dict[int, Run] = {}
        new: list[SegmentRun] = []
        for part in parts:
            assert part.stored_at is not None
            for run in part.runs:
                replaced[id(run)] = run
            run = self._store.run(*part.stored_at, part.stored_live, part.live_bytes)
            for seqs in marked_since(part):
                run.mark(seqs)
            if run.last_seq < log.low or not run.live_count:
                # The snapshot names it: its file goes only after one in which this log does not.
                self._let_go(self._gone, run)
                self.dirty.add(log.log_id)
                continue
            new.append(run)
        kept = [run for run in log.runs if id(run) not in replaced]
        log.runs = sorted([*kept, *new], key=lambda run: run.first_seq)
        if log.released:
            log.released = [run for run in log.released if id(run) not in replaced]

    def cleaned(self, job: Job) -> None:
        """The files are gone; what could not be removed is tried again later."""
        self._store.keep_unneeded((job.unneeded | job.rewritten) - job.removed)
        for number in job.relocated:
            self._store.segment(number).moved()

    def failed(self, job: Job, error: Exception) -> None:
        """Nothing was installed, or some of the logs were: the next checkpoint takes all others again."""
        self.dirty.update(capture.log.log_id for capture in job.logs)
        self._machine.changed |= job.changed_topics
        self._machine.routers.changed |= job.changed_routers
        self._machine.catalog.changed_tables |= job.changed_tables
        self._machine.accounts.changed |= job.changed_accounts
        self._machine.catalog.changed_pipelines |= job.changed_pipelines
        self._machine.batches.changed_stages |= job.changed_stages
        self._machine.batches.changed_batches |= job.changed_batches
        for log_id, producers in job.changed_fences.items():
            if (log := self._machine.logs.get(log_id)) is not None:
                log.dedupe.changed_fences |= producers
                self.dirty.add(log_id)
        self._removes |= job.removes
        self._gone += job.gone
        # A snapshot that names the new segments may be durable: they go when the next one does not.
        self._store.keep_unneeded(job.unneeded)
        self._store.drop_unused(job.new)
        if isinstance(error, Damaged) and job.rewritten and not job.erase:
            # A damaged segment cannot be copied. It stays as it is, and so do the others: that costs files, not data.
            self._may_merge = False

    def restore_chunks(self, log_id: int, heads: dict[int, bytes]) -> None:
        """At recovery: the chunks a log has in the snapshot."""
        if heads:
            self._chunks[log_id] = _Chunks(dict(heads), {}, max(heads) + 1)


def _live_from(run: SegmentRun, seq: int) -> int:
    """Live records of a run from a seq on. All, where a damaged flag does not let them be counted: reads say so."""
    try:
        return run.count_live(seq, run.last_seq)
    except Damaged:
        return run.live_count


def _put(job: Job, key: bytes, image: msgspec.Struct | None) -> None:
    job.images.pop(key, None)
    job.removes.discard(key)
    if image is None:
        job.removes.add(key)
    else:
        job.images[key] = image
