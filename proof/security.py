"""`python -m proof security`: run the tests of `tests/security`, and say what they asked of a server and how often.

The tests tell pytest what they counted, with its own `record_property`, and pytest writes it into a report; so a figure
is never of anything but the run it came from. What two tests count under one name is added up.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final
from xml.etree import ElementTree

from cyclopts import Parameter
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from proof.results import RESULTS, save
from proof.tree import ROOT, tree_hash

NAME: Final = "security"
COMMAND: Final = ".venv/bin/python -m proof security"
TESTS: Final = "tests/security"
EXIT_FAILED: Final = 1
BAD: Final = ("failure", "error")
LIMIT_S: Final = 600


@dataclass(slots=True)
class Report:
    """What a run of tests says of itself."""

    counts: Counter[str] = field(default_factory=Counter)
    tests: Counter[str] = field(default_factory=Counter)
    """How many each file has."""
    failed: int = 0
    skipped: list[str] = field(default_factory=list)


def security(
    *,
    tests: Annotated[Path, Parameter(help="Where the tests are.")] = ROOT / TESTS,
    results: Annotated[Path, Parameter(help="Where results are kept.")] = RESULTS,
) -> int:
    """Run the tests of security and count what they ask; exit with 1 when one fails."""
    console = Console()
    results.mkdir(parents=True, exist_ok=True)
    path = results / "security.xml"
    path.unlink(missing_ok=True)
    # The older kind of report has room for what a test counts.
    report_to = (f"--junitxml={path}", "-o", "junit_family=xunit1")
    run = [sys.executable, "-m", "pytest", "-q", "-n", "0", *report_to, str(tests)]
    code = subprocess.run(run, cwd=ROOT, timeout=LIMIT_S).returncode
    if not path.exists():
        console.print(f"[red]the tests did not run[/red]: pytest ended with {code}", highlight=False)
        return EXIT_FAILED
    report = read(path.read_bytes())
    for name in report.skipped:
        console.print(f"[yellow]skipped[/yellow] {escape(name)}", highlight=False)
    counts = {**report.counts, "tests": report.tests.total(), "failed": report.failed, "skipped": len(report.skipped)}
    save(NAME, COMMAND, {"tree": tree_hash(), **counts, "subjects": dict(report.tests)}, results)
    table = Table("count", "value", title=f"{counts['tests']} tests, {report.failed} failed")
    for name, value in counts.items():
        table.add_row(name.replace("_", " "), f"{value:,}")
    console.print(table)
    return EXIT_FAILED if code or report.failed else 0


def read(report: bytes) -> Report:
    """What a JUnit report says: properties that are whole numbers are counts."""
    found = Report()
    for case in ElementTree.fromstring(report).iter("testcase"):
        subject = case.get("classname", "").rpartition(".")[2].removeprefix("test_")
        found.tests[subject] += 1
        found.failed += any(case.find(kind) is not None for kind in BAD)
        if case.find("skipped") is not None:
            found.skipped.append(f"{subject}: {case.get('name')}")
        for each in case.iter("property"):
            if (value := each.get("value", "")).isdecimal():
                found.counts[each.get("name", "")] += int(value)
    return found
