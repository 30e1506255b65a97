"""`python -m proof coverage`: run the tests, and say which lines and branches of each room they reach.

The figures of all tests go to `build/proof/coverage.json`, and what is not reached, file by file, to
`docs/proof/gaps.md`. Of some of the tests they are only printed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from proof.results import RESULTS, save
from proof.tree import ROOT

NAME: Final = "coverage"
COMMAND: Final = "make coverage"
GAPS: Final = ROOT / "docs" / "proof" / "gaps.md"
SPARK_WORKERS: Final = ROOT / "proof" / "sparkworkers"
"""What each Python process of the run imports when it starts, so that Spark's workers count too."""
WHOLE: Final = {"core": 100.0, "storage": 100.0, "wire": 100.0}
"""Rooms in which every branch is to be reached."""
ELSEWHERE: Final = 95.0
LINES_SHOWN_MAX: Final = 24


@dataclass(slots=True)
class Room:
    """A package's counts."""

    lines: int = 0
    lines_reached: int = 0
    branches: int = 0
    branches_reached: int = 0
    gaps: dict[str, list[str]] = field(default_factory=dict)
    """What is missing of a file: lines, and branches as `from->to`."""

    @property
    def percent(self) -> float:
        total = self.lines + self.branches
        return 100.0 * (self.lines_reached + self.branches_reached) / total if total else 100.0

    @property
    def branch_percent(self) -> float:
        return 100.0 * self.branches_reached / self.branches if self.branches else 100.0


def coverage(*tests: str, processes: int = 2) -> int:
    """Run the tests (all, or those named) and count what they reach."""
    console = Console()
    data = RESULTS / "coverage"
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir(parents=True)
    run = [sys.executable, "-m", "coverage", "run", "-m", "pytest", "-q"]
    run += ["-n", str(processes), "--dist", "loadgroup"] if processes > 1 else ["-n", "0"]
    counted = {**os.environ, "COVERAGE_CORE": "ctrace", "PYTHONPATH": str(SPARK_WORKERS)}
    failed = subprocess.run([*run, *tests], cwd=ROOT, env=counted).returncode
    for step in (["combine", "-q"], ["json", "-q", "-o", str(data / "files.json")]):
        subprocess.run([sys.executable, "-m", "coverage", *step], cwd=ROOT, check=True)
    rooms = read(json.loads((data / "files.json").read_text()))
    counts = {
        name: {
            "lines": room.lines,
            "branches": room.branches,
            "branch_percent": round(room.branch_percent, 2),
            "percent": round(room.percent, 2),
        }
        for name, room in sorted(rooms.items())
    }
    console.print(_table(rooms))
    if not tests:
        # Of some of the tests nothing is said to others.
        save(NAME, COMMAND, {"rooms": counts})
        GAPS.parent.mkdir(parents=True, exist_ok=True)
        GAPS.write_text("\n".join(gaps(rooms)) + "\n")
    return failed


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
        missing = list(_ranges(about["missing_lines"]))
        missing += [f"{start}->{'the end' if end < 0 else end}" for start, end in about["missing_branches"]]
        if missing:
            room.gaps["/".join(parts[1:])] = missing
    return rooms


def gaps(rooms: Mapping[str, Room]) -> Iterator[str]:
    """The page that lists what is not reached."""
    yield "# What the tests do not reach"
    yield ""
    yield "Made by `make coverage`. Lines, and branches as `from->to`; a file that is not here is reached whole. What"
    yield "can never be reached says so in the code, with `# pragma: no cover` and why. What is listed are"
    yield "guards that only a fault of our own would reach, and what nobody has written a test for yet."
    for name, room in sorted(rooms.items(), key=lambda each: (each[0] not in WHOLE, each[0])):
        if not room.gaps:
            continue
        yield ""
        goal = WHOLE.get(name, ELSEWHERE)
        yield f"## {name}: {room.branch_percent:.1f} % of branches, {room.percent:.1f} % in all (goal {goal:g} %)"
        yield ""
        for path, missing in sorted(room.gaps.items()):
            more = f" and {len(missing) - LINES_SHOWN_MAX} more" if len(missing) > LINES_SHOWN_MAX else ""
            yield f"- `{path}`: {', '.join(missing[:LINES_SHOWN_MAX])}{more}"


def _ranges(lines: Iterable[int]) -> Iterator[str]:
    start = last = 0
    for line in [*lines, 0]:
        if line != last + 1 or not line:
            if start:
                yield str(start) if start == last else f"{start}-{last}"
            start = line
        last = line


def _table(rooms: Mapping[str, Room]) -> Table:
    table = Table("room", "lines", "branches", "branches reached", "reached", "goal")
    for name, room in sorted(rooms.items()):
        goal = WHOLE.get(name, ELSEWHERE)
        shown = f"{room.branch_percent:.1f} %", f"{room.percent:.1f} %", f"{goal:g} %"
        table.add_row(name, str(room.lines), str(room.branches), *shown)
    return table
