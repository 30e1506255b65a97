"""The catalogue of faults, docs/FAULTS.md: what can go wrong, what happens then, and which tests show it.

Each part of the page is a heading and a table; each row is a fault: its name, one sentence, and tests as
`tests/…/test_file.py::test_name`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from proof.tree import ROOT

PAGE = ROOT / "docs" / "FAULTS.md"
FAULTS_MIN = 160

_NAME = re.compile(r"`([a-z0-9-]+)`")
_TEST = re.compile(r"`(tests/[^`]+)`")


@dataclass(frozen=True, slots=True)
class Fault:
    part: str
    name: str
    happens: str
    tests: tuple[str, ...]


def faults_of(page: str) -> Iterator[Fault]:
    """The rows of all tables of the page, in order."""
    part = ""
    for line in page.splitlines():
        if line.startswith("## "):
            part = line.removeprefix("## ")
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and len(cells) == 3 and (name := _NAME.fullmatch(cells[0])) is not None:
            yield Fault(part, name[1], cells[1], tuple(_TEST.findall(cells[2])))


def counts_of(faults: list[Fault]) -> dict[str, int]:
    """How many faults each part has."""
    counts: dict[str, int] = {}
    for fault in faults:
        counts[fault.part] = counts.get(fault.part, 0) + 1
    return counts
