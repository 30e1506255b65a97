"""A checkpoint's job: what was captured on the loop, as values that another thread may work from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import msgspec
import numpy as np

from topics.core.block import Block
from topics.core.log import Log
from topics.core.run import DEAD, U64, Marks, MemoryRun, Run
from topics.engine.images import LogImage, RunImage
from topics.storage.commitlog import Covered
from topics.storage.gone import Gone
from topics.storage.merge import blank
from topics.storage.segment import PendingMarks
from topics.storage.segmentfile import SectionKey
from topics.storage.segmentrun import SegmentRun


@dataclass(frozen=True, slots=True)
class SegmentLimits:
    bytes_max: int = 64 << 20
    records_max: int = 1_000_000
    cold_after_ms: int = 7 * 24 * 3600 * 1000


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
    salt: int = 0
    """Of that segment's file."""
    gone_count: int = 0
    """Of the live ones, those below the log's floor. They are copied as deleted."""

    @property
    def first_seq(self) -> int:
        return self.runs[0].first_seq

    def add(self, run: Run) -> None:
        self.runs.append(run)
        self.live_count += run.live_count
        self.live_bytes += run.live_bytes
        self.count += run.last_seq - run.first_seq + 1
        self.text_bytes += text_bytes_of(run)
        if isinstance(run, MemoryRun):
            self.marks.append(bytearray(run.marks) if run.marks is not None else None)

    def image(self) -> RunImage:
        assert self.stored_at is not None
        first_seq, last_seq = self.runs[0].first_seq, self.runs[-1].last_seq
        return RunImage(*self.stored_at, self.stored_live, self.live_bytes, first_seq, last_seq, self.salt)

    @property
    def stored_live(self) -> int:
        """Live records by the flags of the new file."""
        return self.live_count - self.gone_count


@dataclass(slots=True)
class LogCapture:
    log: Log
    image: LogImage
    kept: list[tuple[int, RunImage]]
    """First seq and image of the runs that stay where they are."""
    flush: list[Part]
    merge: list[Part]
    flagged: list[SegmentRun] = field(default_factory=list)
    """Runs that the floor stands in; their records below it get flags with this job."""

    def runs(self) -> tuple[RunImage, ...]:
        new = [(part.first_seq, part.image()) for part in (*self.flush, *self.merge)]
        return tuple(run for _, run in sorted([*self.kept, *new], key=lambda item: item[0]))


@dataclass(slots=True)
class Job:
    """Everything the writing thread needs, and what it answers."""

    erase: bool
    whole: bool = False
    """The job holds all there is, and its snapshot builds on no other."""
    logs: list[LogCapture] = field(default_factory=list)
    images: dict[bytes, msgspec.Struct] = field(default_factory=dict)
    """What the snapshot gets, not encoded yet."""
    puts: dict[bytes, bytes] = field(default_factory=dict)
    removes: set[bytes] = field(default_factory=set)
    marks: list[PendingMarks] = field(default_factory=list)
    rewritten: set[int] = field(default_factory=set)
    """Segments that are merged or erased: gone once what replaces them is in use."""
    unneeded: set[int] = field(default_factory=set)
    gone: list[Gone] = field(default_factory=list)
    """Records that the snapshot does not name any more, in segments that stay."""
    relocate: list[int] = field(default_factory=list)
    covered: dict[int, int] = field(default_factory=dict)
    next_log_id: int = 0
    """Of all logs below this one, those without a covered position had gone when the job was captured."""
    forgotten: list[int] = field(default_factory=list)
    changed_topics: set[str] = field(default_factory=set)
    changed_routers: set[str] = field(default_factory=set)
    changed_tables: set[str] = field(default_factory=set)
    changed_accounts: set[bytes] = field(default_factory=set)
    changed_pipelines: set[str] = field(default_factory=set)
    changed_stages: set[str] = field(default_factory=set)
    changed_batches: set[tuple[str, int]] = field(default_factory=set)
    changed_fences: dict[int, set[str]] = field(default_factory=dict)
    """Producers, by log, whose fences were captured."""
    new: list[int] = field(default_factory=list)
    """Segments this job made."""
    snapshot_no: int = 0
    removed: set[int] = field(default_factory=set)
    relocated: list[int] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """What went wrong without stopping the checkpoint."""
    replaces: Covered | None = None
    """What the WAL need not hold any more, once it is installed."""


def text_bytes_of(run: Run) -> int:
    """What a run adds to a segment, roughly when it is in one already."""
    return run.text_bytes if isinstance(run, MemoryRun) else run.live_bytes


def extend(parts: list[Part], run: Run, limits: SegmentLimits) -> None:
    """Add a run to the last part, or begin a new one where a seq is missing or a segment would grow too large."""
    last = parts[-1] if parts else None
    if (
        last is None
        or last.runs[-1].last_seq + 1 != run.first_seq
        or last.count + run.last_seq - run.first_seq + 1 > limits.records_max
        or last.text_bytes + text_bytes_of(run) > limits.bytes_max
        or isinstance(last.runs[-1], SegmentRun) is not isinstance(run, SegmentRun)
    ):
        last = Part([], [])
        parts.append(last)
    last.add(run)


def section_key(log: Log) -> SectionKey:
    return SectionKey(log.log_id, log.topic, log.partition, log.epoch)


def blocks_of(part: Part, erase: bool) -> Iterable[tuple[Block, Marks | None]]:
    for run, marks in zip(part.runs, part.marks, strict=True):
        assert isinstance(run, MemoryRun)
        yield (blank(run.block, marks) if erase else run.block), marks


def marked_since(part: Part) -> Iterator[U64]:
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
