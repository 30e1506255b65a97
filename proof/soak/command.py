"""`python -m proof soak`: the long runs one after the other, without those that have passed already."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from proof.results import RESULTS
from proof.soak.part import parts
from proof.soak.running import run
from proof.soak.state import State
from proof.tree import tree_hash

EXIT_FAILED = 1
EXIT_UNKNOWN = 2


def soak(
    *,
    only: Annotated[tuple[str, ...], Parameter(consume_multiple=True, help="Which parts; all without it.")] = (),
    minutes: Annotated[
        float, Parameter(help="For how long load, simulator and fuzz go on; to their full size without it.")
    ] = 0,
    again: Annotated[bool, Parameter(negative="", help="Also what this very tree has passed before.")] = False,
    results: Annotated[Path, Parameter(help="Where results and logs are kept.")] = RESULTS,
) -> int:
    """Run the parts of the soak. One that was interrupted or has failed is run by the next soak; one that has passed is
    not, until code or tests change."""
    console = Console()
    known = parts(minutes)
    unknown = [name for name in only if name not in {part.name for part in known}]
    if unknown:
        console.print(f"there is no part {unknown[0]}; there are {', '.join(part.name for part in known)}")
        return EXIT_UNKNOWN
    chosen = [part for part in known if not only or part.name in only]
    state = State(tree_hash(), minutes, results)
    failed = []
    columns = (SpinnerColumn(), TextColumn("{task.description:<52}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        task = progress.add_task("all parts", total=len(chosen))
        for part in chosen:
            if again or not state.passed(part.name):
                own = progress.add_task(f"{part.name}: {part.about}", total=None)
                ran = run(part, results / "logs", partial(_show, progress, own))
                progress.remove_task(own)
                state.note(part.name, not ran.why, ran.seconds, ran.why)
                if ran.why:
                    failed.append(part.name)
                    console.print(f"[red]{part.name}[/red] {ran.why}:\n{escape(ran.last_words)}", highlight=False)
                else:
                    console.print(f"[green]{part.name}[/green] {ran.seconds:.0f} s", highlight=False)
            else:
                console.print(f"[green]{part.name}[/green] has passed with this tree already", highlight=False)
            progress.advance(task)
    return EXIT_FAILED if failed else 0


def _show(progress: Progress, task: TaskID, done: float, total: float) -> None:
    progress.update(task, completed=round(done), total=round(total))
