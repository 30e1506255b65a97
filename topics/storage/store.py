"""One data directory: its lock, its snapshots, its segments, and who still needs which of them.

    lock         held while a process has the directory open
    wal/         the commit log (`wal.py`)
    snapshots/   keyed, incremental (`snapshot.py`)
    segments/    sealed records (`segment.py`), older ones perhaps in the cold directory (`tier.py`)

The loop's thread owns this object. A segment lives as long as a run of it is in some log; when the last one is
released it is removed, after a snapshot that does not name it any more is durable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from topics.clock import Clock
from topics.errors import Damaged
from topics.storage.fs import DirectoryLock, FileSystem
from topics.storage.maps import MapCache
from topics.storage.pins import Pins
from topics.storage.segment import Segment
from topics.storage.segmentfile import data_name
from topics.storage.segmentrun import SegmentRun
from topics.storage.snapshot import SnapshotStore
from topics.storage.tier import Tiers

LOCK_FILE = "lock"


class Store:
    def __init__(
        self,
        fs: FileSystem,
        directory: str,
        clock: Clock,
        salt_source: Callable[[], int],
        hot_bytes: int,
        cold_dir: str | None = None,
    ) -> None:
        self.fs = fs
        self.directory = directory
        self.wal_dir = f"{directory}/wal"
        self.segment_dir = f"{directory}/segments"
        self.clock = clock
        self.salt_source = salt_source
        for path in (directory, self.wal_dir, self.segment_dir, f"{directory}/snapshots"):
            fs.make_dir(path)
        self._lock: DirectoryLock | None = fs.lock(f"{directory}/{LOCK_FILE}")
        self.tiers = Tiers(fs, self.segment_dir, cold_dir)
        self.maps = MapCache(fs, hot_bytes)
        self.snapshots = SnapshotStore(fs, f"{directory}/snapshots", clock, salt_source)
        self.pins: Pins | None = None
        """What a running backup holds; None while there is none."""
        self.next_segment = 1
        self._segments: dict[int, Segment] = {}
        self._runs_in = Counter[int]()
        self._unneeded: set[int] = set()

    def segment(self, number: int) -> Segment:
        """An open segment, opened when first asked for."""
        found = self._segments.get(number)
        if found is None:
            try:
                found = Segment.open(self.fs, self.tiers.find, number, self.maps)
            except FileNotFoundError as error:
                path = f"{self.segment_dir}/{data_name(number)}"
                raise Damaged(f"{path} is missing: {error}", file=path, offset=0) from None
            self._segments[number] = found
            self.next_segment = max(self.next_segment, number + 1)
        return found

    def is_open(self, number: int) -> bool:
        """Whether runs of a segment are in use, or were when the last checkpoint began."""
        return number in self._segments

    def open_segments(self) -> Iterable[Segment]:
        return self._segments.values()

    def run(
        self, number: int, section_no: int, live_count: int | None = None, live_bytes: int | None = None
    ) -> SegmentRun:
        """A run over a section, to be put into a log; it holds its segment until it is released."""
        run = self.segment(number).run(section_no, live_count, live_bytes)
        self._runs_in[number] += 1
        self._unneeded.discard(number)
        return run

    def release(self, run: SegmentRun) -> None:
        """A run has left its log."""
        number = run.segment_no
        if number not in self._runs_in:
            return  # the segment was rewritten, and is gone
        self._runs_in[number] -= 1
        self.drop_unused([number])

    def drop_unused(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            if not self._runs_in[number]:
                del self._runs_in[number]
                self._unneeded.add(number)

    def keep_unneeded(self, numbers: set[int]) -> None:
        """They were not removed after all: try again later."""
        self._unneeded |= numbers

    def forget(self, number: int) -> None:
        """A segment was rewritten: its runs have been replaced, its files are gone."""
        del self._runs_in[number]
        self._unneeded.discard(number)
        self.close_segment(number)

    def take_unneeded(self) -> set[int]:
        """Segments without a run, to be removed once the next snapshot is durable."""
        taken, self._unneeded = self._unneeded, set()
        for number in taken:
            self.close_segment(number)
        return taken

    def close_segment(self, number: int) -> None:
        segment = self._segments.pop(number, None)
        if segment is not None:
            segment.moved()

    def new_segment_number(self) -> int:
        number = self.next_segment
        self.next_segment += 1
        return number

    def sweep(self) -> list[str]:
        """At the start: remove what a crash left behind."""
        return [*self.tiers.sweep(self._runs_in), *self.snapshots.sweep()]

    def file_count(self) -> int:
        places = [*self.tiers.directories(), self.wal_dir, f"{self.directory}/snapshots"]
        return sum(len(self.fs.list(place)) for place in places)

    def close(self) -> None:
        self._segments.clear()
        self.maps.clear()
        if self._lock is not None:
            self._lock.release()
            self._lock = None
