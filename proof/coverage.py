"""`python -m proof coverage`: run the tests, and say which lines and branches of each room they reach.

The figures of all tests go to `build/proof/coverage.json`, and what is not reached, with the reasons, to
`docs/proof/gaps.md`. A room below its goal fails, and a gap without a reason. Of some of the tests the figures are
only printed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from proof.gaps import PAGE, Gap, Reasons, of_file, page, reasons, without_reason
from proof.results import RESULTS, save
from proof.tree import ROOT

NAME: Final = "coverage"
COMMAND: Final = "make coverage"
DATA: Final = RESULTS / "coverage"
SPARK_WORKERS: Final = ROOT / "proof" / "sparkworkers"
"""What each Python process of the run imports when it starts, so that Spark's workers count too."""
WHOLE: Final = {"core": 100.0, "storage": 100.0, "wire": 100.0}
"""Rooms in which every branch is to be reached."""
ELSEWHERE: Final = 95.0


@dataclass(slots=True)
class Room:
    """A package's counts."""

    lines: int = 0
    lines_reached: int = 0
    branches: int = 0
    branches_reached: int = 0
    gaps: list[Gap] = field(default_factory=list)

    @property
    def percent(self) -> float:
        total = self.lines + self.branches
        return 100.0 * (self.lines_reached + self.branches_reached) / total if total else 100.0

    @property
    def branch_percent(self) -> float:
        return 100.0 * self.branches_reached / self.branches if self.branches else 100.0

    def counts(self) -> dict[str, float]:
        return {
            "lines": self.lines,
            "branches": self.branches,
            "branch_percent": round(self.branch_percent, 2),
            "percent": round(self.percent, 2),
        }

    def is_enough(self, goal: float) -> bool:
        return min(self.percent, self.branch_percent) >= goal


def coverage(*tests: str, processes: int = 2, again: bool = False) -> int:
    """Run the tests (all, or those named) and count what they reach.

    With `again` nothing is run: what the last run found is written anew, with the reasons that there are now."""
    console = Console()
    failed = 0 if again else _run(tests, processes)
    rooms = read(json.loads((DATA / "files.json").read_text()))
    console.print(_table(rooms))
    if tests:
        # Of some of the tests nothing is said to others.
        return failed
    save(NAME, COMMAND, {"rooms": {name: room.counts() for name, room in sorted(rooms.items())}})
    given = reasons()
    PAGE.write_text("\n".join(page(headings(rooms), given)) + "\n")
    found = list(problems(rooms, given))
    for problem in found:
        console.print(problem, markup=False, highlight=False, soft_wrap=True)
    return failed or bool(found)


def _run(tests: Sequence[str], processes: int) -> int:
    shutil.rmtree(DATA, ignore_errors=True)
    DATA.mkdir(parents=True)
    run = [sys.executable, "-m", "coverage", "run", "-m", "pytest", "-q"]
    run += ["-n", str(processes), "--dist", "loadgroup"] if processes > 1 else ["-n", "0"]
    counted = {**os.environ, "COVERAGE_CORE": "ctrace", "PYTHONPATH": str(SPARK_WORKERS)}
    failed = subprocess.run([*run, *tests], cwd=ROOT, env=counted).returncode
    for step in (["combine", "-q"], ["json", "-q", "-o", str(DATA / "files.json")]):
        subprocess.run([sys.executable, "-m", "coverage", *step], cwd=ROOT, check=True)
    return failed


def problems(rooms: Mapping[str, Room], given: Reasons) -> Iterator[str]:
    """Why a run has failed although all its tests passed."""
    for name, room in sorted(rooms.items()):
        if not room.is_enough(goal(name)):
            yield f"{name} is below its goal of {goal(name):g} %"
    for gap in without_reason((gap for room in rooms.values() for gap in room.gaps), given):
        yield f"docs/proof/reasons.toml does not say why {gap.path}, {gap.function}, is not reached whole"


def goal(room: str) -> float:
    return WHOLE.get(room, ELSEWHERE)


def read(report: Mapping[str, Any]) -> dict[str, Room]:
    """The rooms of a report of coverage.py."""
    rooms: dict[str, Room] = {}
    for path, about in sorted(report["files"].items()):
        parts = Path(path).parts
        room = rooms.setdefault(parts[1] if len(parts) > 2 else "topics", Room())
        summary = about["summary"]
        room.lines += summary["num_statements"]
        room.lines_reached += summary["covered_lines"]
        room.branches += summary["num_branches"]
        room.branches_reached += summary["covered_branches"]
        room.gaps += of_file("/".join(parts[1:]), about)
    return rooms


def headings(rooms: Mapping[str, Room]) -> Iterator[tuple[str, list[Gap]]]:
    """The rooms as the page of gaps has them: those first in which there should be none."""
    for name, room in sorted(rooms.items(), key=lambda each: (each[0] not in WHOLE, each[0])):
        figures = f"{room.branch_percent:.1f} % of branches, {room.percent:.1f} % in all"
        yield f"{name}: {figures} (goal {goal(name):g} %)", room.gaps


def _table(rooms: Mapping[str, Room]) -> Table:
    table = Table("room", "lines", "branches", "branches reached", "reached", "goal")
    for name, room in sorted(rooms.items()):
        shown = f"{room.branch_percent:.1f} %", f"{room.percent:.1f} %", f"{goal(name):g} %"
        table.add_row(name, str(room.lines), str(room.branches), *shown)
    return table
