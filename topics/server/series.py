"""Time series of the server, in rings of a fixed size: the last ten minutes by seconds, two hours by ten seconds, a day
by minutes.

Each second one sample is taken of all series. A coarser ring gets the mean of the samples that fall into each of its
steps; of a latency the largest, which a mean would hide. Everything is columns of floats that are made once, so that it
costs the same on the first day as on the hundredth.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from math import nan
from typing import Final


class Unit(Enum):
    PER_SECOND = "per_s"
    BYTES_PER_SECOND = "bytes_per_s"
    MS = "ms"
    COUNT = "count"
    BYTES = "bytes"
    SHARE = "share"


@dataclass(frozen=True, slots=True)
class About:
    unit: Unit
    doc: str


SERIES: Final[dict[str, About]] = {
    "requests": About(Unit.PER_SECOND, "Requests of all kinds."),
    "errors": About(Unit.PER_SECOND, "Answers that were errors."),
    "writes": About(Unit.PER_SECOND, "Requests that write records, jobs or messages."),
    "reads": About(Unit.PER_SECOND, "Requests that read records."),
    "deliveries": About(Unit.PER_SECOND, "Requests that take jobs, messages or records of a group."),
    "records": About(Unit.PER_SECOND, "Records written, however they came."),
    "wal_bytes": About(Unit.BYTES_PER_SECOND, "Bytes written to the write-ahead log."),
    "syncs": About(Unit.PER_SECOND, "Syncs of the write-ahead log."),
    "sync_p50": About(Unit.MS, "Half of the syncs took no longer."),
    "sync_p99": About(Unit.MS, "99 of 100 syncs took no longer."),
    "write_p50": About(Unit.MS, "Half of the writes were answered by then."),
    "write_p99": About(Unit.MS, "99 of 100 writes were answered by then."),
    "read_p50": About(Unit.MS, "Half of the reads were answered by then."),
    "read_p99": About(Unit.MS, "99 of 100 reads were answered by then."),
    "connections": About(Unit.COUNT, "Connections that are open."),
    "streams": About(Unit.COUNT, "Event streams, WebSockets and gRPC streams that are open."),
    "loop_lag": About(Unit.MS, "How late the event loop was."),
    "admitted": About(Unit.SHARE, "Share of the writes that the throttle admits."),
    "records_live": About(Unit.COUNT, "Records that are retained."),
    "bytes_live": About(Unit.BYTES, "Bytes of data and meta that are retained."),
    "wal_disk": About(Unit.BYTES, "Disk space of the write-ahead log."),
    "hot_disk": About(Unit.BYTES, "Disk space of segments in the data directory."),
    "cold_disk": About(Unit.BYTES, "Disk space of segments in the cold directory."),
    "free_disk": About(Unit.BYTES, "Disk space that is left."),
}
_LARGEST: Final = frozenset(name for name, about in SERIES.items() if about.unit is Unit.MS)


@dataclass(frozen=True, slots=True)
class Step:
    name: str
    step_s: int
    count: int


STEPS: Final = (Step("1s", 1, 600), Step("10s", 10, 720), Step("1min", 60, 1440))


class Ring:
    """The last values of all series at one step."""

    def __init__(self, step: Step) -> None:
        self.step = step
        self._times = array("q", bytes(8 * step.count))
        self._columns = {name: array("d", [nan]) * step.count for name in SERIES}
        self._next = 0
        self.length = 0
        self._sums: dict[str, tuple[float, int]] = {}
        self._slot = -1

    def add(self, at_ms: int, values: Mapping[str, float]) -> None:
        """A sample; it is there once a sample of the next step has come, and at once where a step is a sample."""
        slot = at_ms // (1000 * self.step.step_s)
        if self._slot >= 0 and slot != self._slot:
            self._close()
        self._slot = slot
        for name, value in values.items():
            total, count = self._sums.get(name, (0.0, 0))
            self._sums[name] = (max(total, value), 1) if name in _LARGEST else (total + value, count + 1)

    def _close(self) -> None:
        at = self._next
        self._times[at] = self._slot * self.step.step_s * 1000
        for name, column in self._columns.items():
            total, count = self._sums.get(name, (nan, 1))
            column[at] = total / count
        self._sums.clear()
        self._next = (at + 1) % self.step.count
        self.length = min(self.length + 1, self.step.count)

    def since(self, after_ms: int, names: Iterable[str]) -> tuple[list[int], dict[str, list[float | None]]]:
        """The times behind one, and the values of these series at each; None where there is none."""
        first = self._next - self.length
        places = [at % self.step.count for at in range(first, self._next)]
        kept = [at for at in places if self._times[at] > after_ms]
        columns = {name: [_shown(self._columns[name][at]) for at in kept] for name in names}
        return [self._times[at] for at in kept], columns


class Series:
    def __init__(self) -> None:
        self.rings = {step.name: Ring(step) for step in STEPS}
        self.latest: dict[str, float] = {}

    def add(self, at_ms: int, values: Mapping[str, float]) -> None:
        self.latest = dict(values)
        for ring in self.rings.values():
            ring.add(at_ms, values)


def _shown(value: float) -> float | None:
    return None if value != value else round(value, 3)
