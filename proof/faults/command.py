"""`python -m proof faults`: count the catalogue, and see that each fault has a test."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from proof.faults.catalogue import PAGE, counts_of, faults_of
from proof.faults.problems import problems
from proof.results import RESULTS, save

NAME = "faults"
COMMAND = ".venv/bin/python -m proof faults"
EXIT_PROBLEMS = 1


def faults(*, results: Annotated[Path, Parameter(help="Where results are kept.")] = RESULTS) -> int:
    """Count the faults of docs/FAULTS.md; exit with 1 when one has no test."""
    console = Console()
    found = list(faults_of(PAGE.read_text()))
    wrong = problems(found)
    for problem in wrong:
        console.print(f"[red]wrong[/red] {escape(problem)}", highlight=False)
    if wrong:
        return EXIT_PROBLEMS
    counts = counts_of(found)
    tests = {test for fault in found for test in fault.tests}
    save(NAME, COMMAND, {"faults": len(found), "tests": len(tests), "parts": counts}, results)
    table = Table("part", "faults", title=f"{len(found)} faults, shown by {len(tests)} tests")
    for part, count in counts.items():
        table.add_row(part, str(count))
    console.print(table)
    return 0
