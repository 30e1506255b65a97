"""What one WAL shard counts. Written by the thread that owns the shard, read by anybody."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field

SYNC_BOUNDS_US = (50, 100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000)


@dataclass(slots=True)
class Histogram:
    """Counts per upper bound, the last one for what is above them all."""

    bounds: tuple[int, ...]
    counts: list[int]
    total: int = 0

    @staticmethod
    def of(bounds: tuple[int, ...]) -> Histogram:
        return Histogram(bounds, [0] * (len(bounds) + 1))

    def add(self, value: int) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


@dataclass(slots=True)
class ShardMetrics:
    frames: int = 0
    """Entries written; the WAL's own frames are not counted."""
    batches: int = 0
    bytes_written: int = 0
    fsyncs: int = 0
    rotations: int = 0
    files_trimmed: int = 0
    spare_failures: int = 0
    """How often the next file could not be prepared ahead of time; only a rotation that fails stops the shard."""
    queue_depth: int = 0
    """Groups waiting to be written."""
    queue_depth_peak: int = 0
    queue_bytes: int = 0
    queue_bytes_peak: int = 0
    submit_full: int = 0
    read_only: bool = False
    last_error: str = ""
    sync_us: Histogram = field(default_factory=lambda: Histogram.of(SYNC_BOUNDS_US))
