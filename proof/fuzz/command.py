"""`python -m proof fuzz`: go on fuzzing where the last run left off, until each decoder has had its inputs.

Inputs add up over the versions of a decoder. One whose code has changed since it was last searched gets a round more.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Annotated, Final

from cyclopts import Parameter
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from proof.fuzz import corpus
from proof.fuzz.ledger import Ledger
from proof.fuzz.shrinking import covering
from proof.fuzz.targets import TARGETS
from proof.fuzz.worker import Done, inputs_of, search_apart
from proof.results import today
from proof.soak.progress import tell

INPUTS: Final = 10_000_000
ROUND_INPUTS: Final = 2_000_000
ROUND_S: Final = 90.0
"""A round is what is done of one decoder before it is the next one's turn: a search of its own."""
KEPT_MAX: Final = 24
"""Inputs of a decoder that the tests replay, beside its crashes."""


def fuzz(
    *decoders: str,
    inputs: int = INPUTS,
    minutes: Annotated[float, Parameter(help="Stop after so many minutes, wherever it is.")] = 0.0,
    processes: Annotated[int, Parameter(help="How many decoders at a time.")] = os.cpu_count() or 1,
    keep: Annotated[
        bool, Parameter(help="Write a small corpus for the tests out of what was found, and stop.")
    ] = False,
) -> int:
    """Fuzz the decoders (all, or those named) until each has had so many inputs; a run goes on where one left off.

    A decoder that has had them and was changed since gets a round more."""
    console = Console()
    unknown = [name for name in decoders if name not in TARGETS]
    if unknown:
        console.print(f"there is no decoder {', '.join(unknown)}; there are {', '.join(TARGETS)}")
        return 2
    chosen = decoders or tuple(TARGETS)
    if keep:
        keep_corpus(chosen)
        return 0
    ledger = Ledger()
    deadline_s = time.monotonic() + minutes * 60 if minutes else float("inf")
    _rounds(ledger, chosen, inputs, deadline_s, processes, console)
    _print(ledger, chosen, console)
    return 1 if any(ledger.of(name).crashes for name in chosen) else 0


def _rounds(
    ledger: Ledger, chosen: Sequence[str], inputs: int, deadline_s: float, processes: int, console: Console
) -> None:
    """Decoders take turns, a few at a time; one whose round is over goes to the line's end until it had enough."""
    columns = (TextColumn("{task.description:14}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    line = deque(name for name in chosen if _wants_more(ledger, name, inputs))
    with Progress(*columns, console=console) as progress, ThreadPoolExecutor(processes) as pool:
        bars = {name: progress.add_task(name, total=inputs, completed=ledger.of(name).inputs) for name in chosen}
        searching: dict[Future[Done], str] = {}
        while line or searching:
            tell(sum(min(ledger.of(name).inputs, inputs) for name in chosen), inputs * len(chosen))
            while line and len(searching) < processes and (left_s := deadline_s - time.monotonic()) > 0:
                name = line.popleft()
                entry = ledger.of(name)
                entry.seeds += 1
                left = inputs - entry.inputs
                count, seconds = min(ROUND_INPUTS, left) if left > 0 else ROUND_INPUTS, min(ROUND_S, left_s)
                told = partial(progress.advance, bars[name])
                searching[pool.submit(search_apart, name, entry.seeds, count, told, seconds)] = name
            if not searching:
                return
            for over in wait(searching, return_when=FIRST_COMPLETED).done:
                name = searching.pop(over)
                _note(ledger, name, over.result(), console)
                if _wants_more(ledger, name, inputs):
                    line.append(name)


def _wants_more(ledger: Ledger, name: str, inputs: int) -> bool:
    entry = ledger.of(name)
    return entry.inputs < inputs or entry.code != TARGETS[name].code


def _note(ledger: Ledger, name: str, done: Done, console: Console) -> None:
    entry = ledger.of(name)
    entry.inputs += done.inputs
    entry.traced += done.traced
    entry.arcs = max(entry.arcs, done.arcs)
    entry.crashes = len(done.crashes)
    entry.seconds = round(entry.seconds + done.seconds, 1)
    entry.date, entry.code = today(), TARGETS[name].code
    ledger.save()
    for crash in done.crashes:
        console.print(f"{name}: {crash.what} at {crash.where}: {crash.data[:200]!r}", markup=False)


def keep_corpus(chosen: Sequence[str]) -> None:
    for name in chosen:
        target = TARGETS[name]
        corpus.replace(corpus.KEPT / name, covering(target, inputs_of(target), KEPT_MAX))


def _print(ledger: Ledger, chosen: Sequence[str], console: Console) -> None:
    table = Table("decoder", "inputs", "traced", "seeds", "arcs", "crashes", "seconds")
    for name in chosen:
        entry = ledger.of(name)
        numbers = (entry.inputs, entry.traced, entry.seeds, entry.arcs, entry.crashes, round(entry.seconds))
        table.add_row(name, *(f"{number:,}" for number in numbers))
    console.print(table)
