"""`python -m proof mutants`: try them, tell which survive, keep what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from proof.mutants import ALL
from proof.mutants.mutant import Mutant
from proof.mutants.trial import CannotTry, Copy, Verdict
from proof.results import RESULTS, Result, load, save
from proof.soak.progress import tell
from proof.tree import tree_hash

NAME = "mutants"
COMMAND = "make mutants"
EXIT_SURVIVOR = 1
EXIT_CANNOT = 2
PIPED_COLUMNS = 180


def mutants(
    *,
    only: Annotated[
        tuple[str, ...], Parameter(consume_multiple=True, help="How the mutants' names begin; all without it.")
    ] = (),
    again: Annotated[bool, Parameter(negative="", help="Also those that this very tree has killed before.")] = False,
    results: Annotated[Path, Parameter(help="Where results are kept.")] = RESULTS,
) -> int:
    """Break the code in a copy, one change at a time, and see that a test fails each time.

    What was killed is not tried again until code or tests change.
    """
    console = Console()
    if not console.is_terminal:
        console = Console(width=PIPED_COLUMNS)
    chosen = [mutant for mutant in ALL if not only or mutant.name.startswith(only)]
    if not chosen:
        console.print(f"no mutant begins with {', '.join(only)}; there are {', '.join(each.name for each in ALL)}")
        return EXIT_CANNOT
    tree = tree_hash()
    known = _known(tree, results)
    left = [mutant for mutant in chosen if again or not known.get(mutant.name, {}).get("killed")]
    try:
        _try_all(console, left, tree, known, results)
    except CannotTry as error:
        console.print(f"[red]cannot try[/red] {escape(str(error))}", highlight=False)
        return EXIT_CANNOT
    console.print(_table(chosen, known))
    survivors = [mutant.name for mutant in chosen if not known[mutant.name]["killed"]]
    console.print(f"{len(chosen) - len(survivors)} of {len(chosen)} killed", highlight=False)
    return EXIT_SURVIVOR if survivors else 0


def _known(tree: str, results: Path) -> dict[str, Result]:
    """What this very tree did to mutants in an earlier run."""
    stored = load(NAME, results)
    return dict(stored["mutants"]) if stored is not None and stored.get("tree") == tree else {}


def _try_all(console: Console, left: Sequence[Mutant], tree: str, known: dict[str, Result], results: Path) -> None:
    if not left:
        return
    columns = (TextColumn("{task.description:<40}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with TemporaryDirectory(prefix="mutants-") as directory, Progress(*columns, console=console) as progress:
        task = progress.add_task("without a mutant", total=len(left))
        copy = Copy(Path(directory))
        copy.check([test for mutant in left for test in mutant.tests])
        for done, mutant in enumerate(left):
            tell(done, len(left))
            progress.update(task, description=mutant.name)
            known[mutant.name] = _told(mutant, copy.try_mutant(mutant))
            progress.advance(task)
            _save(tree, known, results)


def _told(mutant: Mutant, verdict: Verdict) -> Result:
    return {"breaks": mutant.breaks, "file": mutant.file, **asdict(verdict)}


def _save(tree: str, known: dict[str, Result], results: Path) -> None:
    killed = sum(found["killed"] for found in known.values())
    counts = {"tree": tree, "all": len(ALL), "tried": len(known), "killed": killed, "mutants": known}
    save(NAME, COMMAND, counts, results)


def _table(chosen: Sequence[Mutant], known: dict[str, Result]) -> Table:
    table = Table("mutant", "what it breaks", "file", "killed by", "seconds", title="Mutants")
    for mutant in chosen:
        found = known[mutant.name]
        by = escape(found["by"]) if found["killed"] else "[bold red]SURVIVED[/bold red]"
        table.add_row(mutant.name, mutant.breaks, mutant.file, by, f"{found['seconds']:.1f}")
    return table
