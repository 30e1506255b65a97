"""One file a measure. To add one, write `run(sizes, directory, step)` and list it here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from bench.figure import Figure
from bench.measures import checkpoint, length, reads, recovery, single, writes
from bench.rig import Step
from bench.sizes import Sizes

Measure = Callable[[Sizes, Path, Step], list[Figure]]

MEASURES: dict[str, Measure] = {
    "writes": writes.run,
    "reads": reads.run,
    "recovery": recovery.run,
    "single": single.run,
    "length": length.run,
    "checkpoint": checkpoint.run,
}
