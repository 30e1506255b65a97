"""What many lives add up to, kept in a file so that a run can be ended and gone on with.

The file is what `docs/PROOF.md` is made from. It belongs to one state of the code: seeds that were run with other code
count for nothing, and a run begins anew.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec

import topics
from topics.clock import SystemClock
from topics.testing.checkers import CHECKERS
from topics.testing.sim.verdict import Result

COMMAND = "python -m topics.testing.sim"
OUTSIDE = ("cli", "client", "spark", "cdc")
"""Packages that the server does without: its tally is good for all states of these."""


class Failure(msgspec.Struct):
    """A seed that broke a promise, and how to see it again."""

    seed: int
    violations: list[str]
    command: str


class Tally(msgspec.Struct):
    """Seeds from `first_seed` on, `seeds` of them, without one left out."""

    first_seed: int
    name: str = "simulator"
    seeds: int = 0
    steps: int = 0
    """Events of all timelines together."""
    simulated_ms: int = 0
    histories: int = 0
    """Those of restored backups included."""
    faults: dict[str, int] = msgspec.field(default_factory=dict)
    operations: dict[str, int] = msgspec.field(default_factory=dict)
    checks: list[str] = msgspec.field(default_factory=lambda: list(CHECKERS))
    failures: list[Failure] = msgspec.field(default_factory=list)
    date: str = ""
    command: str = ""
    code: str = ""
    """Which code was run."""

    def add(self, result: Result) -> None:
        self.seeds += 1
        self.steps += result.events
        self.simulated_ms += result.simulated_ms
        self.histories += result.histories
        self.faults = _sum(self.faults, result.faults)
        self.operations = _sum(self.operations, result.operations)
        if result.violations:
            self.failures.append(Failure(result.seed, result.violations, replay_command(result.seed)))

    def save(self, path: Path) -> None:
        """Whole or not at all: a run that is ended here goes on from what was saved before."""
        self.date = datetime.fromtimestamp(SystemClock().now_ms() / 1000, UTC).strftime("%Y-%m-%d")
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        partial.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n")
        partial.replace(path)


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted((Counter(one) + Counter(other)).items()))


def replay_command(seed: int) -> str:
    return f"{COMMAND} --seed {seed}"


def load(path: Path, first_seed: int) -> Tally:
    """What was done before with this code, or an empty one."""
    code = fingerprint()
    if path.exists():
        try:
            found = msgspec.json.decode(path.read_bytes(), type=Tally)
        except msgspec.DecodeError:
            found = Tally(-1)
        if found.code == code and found.first_seed == first_seed:
            return found
    return Tally(first_seed, code=code)


def fingerprint() -> str:
    """Changes with every source file of the package that a simulated server may load."""
    root = Path(topics.__file__).parent
    hashed = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        if path.relative_to(root).parts[0] in OUTSIDE:
            continue
        hashed.update(str(path.relative_to(root)).encode())
        hashed.update(path.read_bytes())
    return hashed.hexdigest()[:16]
