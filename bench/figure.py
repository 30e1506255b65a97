"""One measured number, what it has to be, and what a peer reached in the same run."""

from __future__ import annotations

from enum import StrEnum
from statistics import median

import msgspec


class Unit(StrEnum):
    RECORDS_PER_S = "records/s"
    MS = "ms"
    US = "µs"
    BYTES = "bytes"
    FILES = "files"
    BYTES_PER_RECORD = "bytes/record"
    TIMES = "times"


class Figure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`bar` is a floor for rates and a ceiling for everything else; so is the comparison with the peer.

    A bar that is a multiple of what the peer reached is given as `factor`.
    """

    name: str
    value: float
    unit: Unit
    bar: float | None = None
    peer: float | None = None
    note: str = ""
    peer_name: str = ""
    factor: float | None = None
    spread: tuple[float, float] | None = None
    """The least and the most of the rounds that `value` stands for."""
    peer_spread: tuple[float, float] | None = None

    @property
    def more_is_better(self) -> bool:
        return self.unit is Unit.RECORDS_PER_S

    def _against(self, other: float) -> float:
        high, low = (self.value, other) if self.more_is_better else (other, self.value)
        return high / low if low else float("inf")

    @property
    def bar_ratio(self) -> float | None:
        """1 or more when the bar is reached."""
        bar = self.bar
        if bar is None and self.factor is not None and self.peer is not None:
            bar = self.factor * self.peer
        return None if bar is None else self._against(bar)

    @property
    def is_missed(self) -> bool:
        return self.bar_ratio is not None and self.bar_ratio < 1

    @property
    def peer_ratio(self) -> float | None:
        """How many times better than the peer."""
        return None if self.peer is None else self._against(self.peer)


def show(value: float | None, unit: Unit) -> str:
    """A value as a person reads it."""
    if value is None:
        return ""
    match unit:
        case Unit.RECORDS_PER_S:
            return f"{value / 1e6:.2f} M/s" if value >= 1e6 else f"{value / 1e3:.1f} k/s"
        case Unit.MS | Unit.US:
            return f"{value:.1f} {unit.value}"
        case Unit.BYTES:
            return f"{value / 2**20:.1f} MiB"
        case Unit.BYTES_PER_RECORD:
            return f"{value:.0f} B"
        case Unit.FILES:
            return f"{value:.0f}"
        case Unit.TIMES:
            return f"{value:.2f} ×"


def best(rates: list[float]) -> float:
    """What stands for several rounds of a rate: whatever else the machine does makes a round slower, never faster."""
    return max(rates)


def middle(values: list[float]) -> float:
    """What stands for several rounds of a worst case: their median, which one bad moment does not move."""
    return float(median(values))
