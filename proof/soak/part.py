"""The parts of the soak: what each runs, and for how long at most."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

_PYTEST = (sys.executable, "-m", "pytest", "-q", "-m", "soak", "--timeout", "0")
_ALONE = (*_PYTEST, "-n", "0")
_TOGETHER = (*_PYTEST, "-p", "proof.soak.searching", "-n", str(os.cpu_count() or 1), "--maxschedchunk", "1")
_KILL = "tests/e2e/test_kill.py"
_DISK = "tests/e2e/test_full_disk.py"
_LOAD = "tests/e2e/test_steady.py"
_JEPSEN = "tests/e2e/jepsen/test_jepsen.py"
SIMULATED_SEEDS = 20_000
LOAD_MINUTES = 30
JEPSEN_MINUTES = 20


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    about: str
    command: tuple[str, ...]
    limit_minutes: float
    """It has failed when it takes longer."""
    variables: Mapping[str, str] = field(default_factory=dict)


def parts(minutes: float = 0) -> tuple[Part, ...]:
    """All of them, in order. `minutes` is for how long those go on that have no end of their own."""
    load_minutes, jepsen_minutes = minutes or LOAD_MINUTES, minutes or JEPSEN_MINUTES
    simulator: tuple[str, ...] = (sys.executable, "-m", "proof.soak.simulating", "--seeds", str(SIMULATED_SEEDS))
    fuzz: tuple[str, ...] = (sys.executable, "-m", "proof", "fuzz")
    if minutes:
        simulator, fuzz = (*simulator, "--minutes", f"{minutes:g}"), (*fuzz, "--minutes", f"{minutes:g}")
    return (
        Part("mutants", "changes that tests must notice", (sys.executable, "-m", "proof", "mutants"), 120),
        Part("kill", "a process killed 200 times under mixed load", (*_ALONE, _KILL), 120),
        Part("disk", "disks that fill up", (*_ALONE, _DISK), 10),
        Part(
            "load",
            "half load, and nothing grows",
            (*_ALONE, _LOAD),
            load_minutes * 2 + 10,
            {"SOAK_MINUTES": f"{load_minutes:g}"},
        ),
        Part(
            "jepsen",
            "outside clients of a server on a disk that loses power",
            (*_ALONE, _JEPSEN),
            jepsen_minutes * 2 + 20,
            {"JEPSEN_MINUTES": f"{jepsen_minutes:g}"},
        ),
        Part("simulator", "the whole engine over many seeds", simulator, minutes * 2 + 10 if minutes else 720),
        Part("fuzz", "every decoder, ten million inputs", fuzz, minutes * 2 + 10 if minutes else 1440),
        Part(
            "search",
            "all other tests that search at random or in full",
            (*_TOGETHER, *(word for file in (_KILL, _DISK, _LOAD, _JEPSEN) for word in ("--deselect", file))),
            360,
            {"HYPOTHESIS_PROFILE": "soak"},
        ),
    )
