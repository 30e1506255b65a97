"""`python -m topics.testing.sim`: see one seed again, or run many of them.

Many are kept in a tally that grows by a few seeds at a time: whoever ends it, with Ctrl-C or by any other way, goes on
from there by the same command.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from topics.testing.sim.runner import run_many
from topics.testing.sim.tally import COMMAND, Tally, load, replay_command
from topics.testing.sim.verdict import Result, live
from topics.testing.sim.world import LIFE_MS

OUT = Path("build/proof/simulator.json")


EXIT_INTERRUPTED = 130

Told = Callable[[int, int], None]
"""Hears how many seeds are done, and of how many."""


def main(argv: Sequence[str], told: Told = lambda done, wanted: None) -> int:
    parser = argparse.ArgumentParser(prog=COMMAND, description="One seed, one life of the whole server.")
    parser.add_argument("--seed", type=int, help="run this seed again, and say what it shows")
    parser.add_argument("--seeds", type=int, default=300, help="how many seeds to run (default: 300)")
    parser.add_argument("--first", type=int, default=1, help="the first of them (default: 1)")
    parser.add_argument("--life-ms", type=int, default=LIFE_MS, help="with --seed: how long things go wrong")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="how many at a time")
    parser.add_argument("--minutes", type=float, default=0, help="end after so long; the next run goes on from there")
    parser.add_argument("--out", type=Path, default=OUT, help=f"where the tally is kept (default: {OUT})")
    given = parser.parse_args(argv)
    console = Console(stderr=True)
    if given.seed is not None:
        return _one(live(given.seed, given.life_ms), console)
    if given.seeds < 1 or given.processes < 1:
        parser.error("--seeds and --processes are whole numbers from 1")
    try:
        return _many(given, console, told)
    except KeyboardInterrupt:
        console.print(
            f"ended; the same command goes on from the {load(given.out, given.first).seeds} seeds that are done"
        )
        return EXIT_INTERRUPTED


def _one(result: Result, console: Console) -> int:
    console.print(f"seed {result.seed}: {result.events} steps in {result.simulated_ms / 1000:.1f} simulated seconds")
    console.print(f"faults: {dict(sorted(result.faults.items()))}")
    console.print(f"operations: {dict(sorted(result.operations.items()))}")
    console.print(f"history: {result.digest}")
    for violation in result.violations:
        console.print(violation, style="red", markup=False)
    return 1 if result.violations else 0


def _many(given: argparse.Namespace, console: Console, told: Told) -> int:
    columns = (TextColumn("seeds"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    command = f"{COMMAND} --first {given.first} --seeds {given.seeds}"
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("seeds", total=given.seeds)

        def on_done(result: Result) -> None:
            done = result.seed - given.first + 1
            progress.update(task, completed=done)
            told(done, given.seeds)
            if result.violations:
                found = f"{result.violations[0]}\n  {replay_command(result.seed)}"
                progress.console.print(found, style="red", markup=False)

        tally = run_many(
            given.first,
            given.seeds,
            given.out,
            processes=given.processes,
            minutes=given.minutes,
            command=command,
            on_done=on_done,
        )
    return _report(tally, given.seeds, console)


def _report(tally: Tally, wanted: int, console: Console) -> int:
    hours = tally.simulated_ms / 3_600_000
    console.print(f"{tally.seeds} of {wanted} seeds, {hours:.1f} simulated hours, {sum(tally.faults.values())} faults")
    for failure in tally.failures:
        console.print(f"{failure.command}: {failure.violations[0]}", style="red", markup=False)
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
