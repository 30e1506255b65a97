"""What the tests do not reach, function by function, and why: the page `docs/proof/gaps.md`.

The reasons are in `docs/proof/reasons.toml`, by file and function, as lines move."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from proof.tree import ROOT

PAGE: Final = ROOT / "docs" / "proof" / "gaps.md"
REASONS: Final = ROOT / "docs" / "proof" / "reasons.toml"
MODULE: Final = "the module"
"""Stands for the name of a function where there is none."""

Reasons = Mapping[str, Mapping[str, str]]
"""By file below `topics/`, then by function with its class."""


@dataclass(frozen=True, slots=True)
class Gap:
    """What is missing of a function."""

    path: str
    function: str
    missing: tuple[str, ...]
    """Lines, and branches as `from->to`."""


def of_file(path: str, about: Mapping[str, Any]) -> list[Gap]:
    """The gaps of one file of a report of coverage.py."""
    found = []
    for name, part in about["functions"].items():
        missing = list(_ranges(part["missing_lines"]))
        missing += [f"{start}->{'the end' if end < 0 else end}" for start, end in part["missing_branches"]]
        if missing:
            found.append(Gap(path, name or MODULE, tuple(missing)))
    return found


def reasons(file: Path = REASONS) -> Reasons:
    return tomllib.loads(file.read_text())


def without_reason(gaps: Iterable[Gap], given: Reasons) -> list[Gap]:
    return [gap for gap in gaps if gap.function not in given.get(gap.path, {})]


def page(rooms: Iterable[tuple[str, list[Gap]]], given: Reasons) -> Iterator[str]:
    """The lines of the page: what each room lacks, under its heading."""
    yield "# What the tests do not reach"
    yield ""
    yield "Made by `make coverage`: of each function the lines, and the branches as `from->to`, that no test reaches,"
    yield "and why. A file that is not here is reached whole. What can never be reached says so in the code, with"
    yield "`# pragma: no cover` and why."
    for heading, gaps in rooms:
        if gaps:
            yield from ("", f"## {heading}", "")
            for gap in gaps:
                why = given.get(gap.path, {}).get(gap.function, "**no reason is given**")
                yield f"- `{gap.path}`, `{gap.function}` ({', '.join(gap.missing)}): {why}"


def _ranges(lines: Iterable[int]) -> Iterator[str]:
    start = last = 0
    for line in [*lines, 0]:
        if line != last + 1 or not line:
            if start:
                yield str(start) if start == last else f"{start}-{last}"
            start = line
        last = line
