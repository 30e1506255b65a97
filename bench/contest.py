"""Ours and the peers in turn, round after round, and the figures that come of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from shutil import rmtree
from typing import NamedTuple

from bench.figure import Figure, Unit, best, middle, show
from bench.peers.process import LeftOut, Process
from bench.rig import Step


class Reading(NamedTuple):
    """What one round gave."""

    value: float
    busy: float | None = None
    """Share of its core that the server used: near 1, the processor bounds the figure; far below 1, the disk does, or
    other processes on the machine."""


class Side(NamedTuple):
    name: str
    run: Callable[[Path], Reading]
    """One round in a directory that does not exist yet."""


class Outcome:
    """The rounds of one side, or why there are none."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.readings: list[Reading] = []
        self.left_out = ""

    def value(self, unit: Unit) -> float:
        pick = best if unit is Unit.RECORDS_PER_S else middle
        return pick([reading.value for reading in self.readings])

    def spread(self) -> tuple[float, float]:
        values = [reading.value for reading in self.readings]
        return min(values), max(values)

    def busy(self) -> float:
        """0 when it was not looked at."""
        return middle([reading.busy or 0.0 for reading in self.readings])

    def per_processor_s(self) -> float:
        """The rate for each second of processor time, which other processes on the machine hardly move."""
        return middle([reading.value / reading.busy for reading in self.readings if reading.busy])


def compete(sides: Sequence[Side], rounds: int, directory: Path, step: Step, what: str) -> list[Outcome]:
    """Each side once a round. A peer that cannot take part is left out with its reason; ours has to."""
    outcomes = [Outcome(side.name) for side in sides]
    for number in range(1, rounds + 1):
        for side, outcome in zip(sides, outcomes, strict=True):
            if outcome.left_out:
                continue
            step(f"{what}, {side.name}, round {number}")
            place = directory / "round"
            try:
                outcome.readings.append(side.run(place))
            except LeftOut as reason:
                outcome.left_out = str(reason)
                step(f"left out: {reason}")
            finally:
                rmtree(place, ignore_errors=True)
    return outcomes


def figures(name: str, unit: Unit, outcomes: Sequence[Outcome], factors: Sequence[float | None]) -> list[Figure]:
    """Ours, which come first, against each of the others; a factor for each of these."""
    ours, *others = outcomes
    if not ours.readings:
        raise RuntimeError(f"our own server could not take part in {name}: {ours.left_out}")
    made = []
    for other, factor in zip(others, factors, strict=True):
        took_part = bool(other.readings)
        made.append(
            Figure(
                name=name,
                value=ours.value(unit),
                unit=unit,
                spread=ours.spread(),
                peer_name=other.name,
                peer=other.value(unit) if took_part else None,
                peer_spread=other.spread() if took_part else None,
                factor=factor,
                note=_note(ours, other),
            )
        )
    return made


def _note(ours: Outcome, other: Outcome) -> str:
    if other.left_out:
        return f"left out: {other.left_out}"
    own_busy, other_busy = ours.busy(), other.busy()
    if not own_busy or not other_busy:
        return ""
    own, others = ours.per_processor_s(), other.per_processor_s()
    unit = Unit.RECORDS_PER_S
    return (
        f"cores busy {own_busy:.0%} and {other_busy:.0%}; a second of processor time gives "
        f"{show(own, unit)} and {show(others, unit)}, {show(own / others, Unit.TIMES)}"
    )


class Stopwatch:
    """How busy a server is between two moments: `with Stopwatch(process) as watch: load = …`, then `watch.share`."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._busy_s = 0.0

    def __enter__(self) -> Stopwatch:
        self._began_s = self._process.busy_s()
        return self

    def __exit__(self, *_: object) -> None:
        self._busy_s = self._process.busy_s() - self._began_s

    def reading(self, value: float, seconds: float) -> Reading:
        return Reading(value, self._busy_s / seconds)
