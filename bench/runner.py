"""Runs measures, each in a process of its own: none inherits another's memory, caches or threads."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from shutil import rmtree

from bench import machine
from bench.figure import Figure
from bench.measures import ENGINE, MEASURES
from bench.peers.process import LeftOut
from bench.report import Report
from bench.rig import use_one_core
from bench.sizes import Sizes


def measure(name: str, sizes: Sizes, directory: Path) -> list[Figure]:
    # The servers and their clients get a core each, see `peers/process.py`.
    if name in ENGINE:
        use_one_core()
    place = directory / name
    place.mkdir()
    try:
        return MEASURES[name](sizes, place, lambda doing: print(f"  {doing}", file=sys.stderr, flush=True))
    finally:
        rmtree(place)


def measure_all(names: Sequence[str], sizes: Sizes, directory: Path, begin: Callable[[str], None]) -> Report:
    """`begin` is called with the name of each measure before it starts."""
    facts = machine.facts()
    figures, left_out = {}, {}
    context = multiprocessing.get_context("spawn")
    for name in names:
        begin(name)
        with ProcessPoolExecutor(1, context) as process:
            try:
                figures[name] = process.submit(measure, name, sizes, directory).result()
            except LeftOut as reason:
                left_out[name] = str(reason)
    return Report(facts, figures, left_out)
