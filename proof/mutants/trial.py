"""Trying mutants: a copy of the tree, one change at a time in it, and pytest over the tests that must notice."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import copy2

from proof.mutants.mutant import Applied, Mutant
from proof.mutants.witness import ROOT_VARIABLE
from proof.tree import LONE, ROOMS, ROOT, files

TEST_TIMEOUT_S = 60
"""A wake-up that is lost is a test that hangs: it fails after this."""
RUN_TIMEOUT_S = 240
CHECK_TIMEOUT_S = 1200
"""For all tests of all mutants, while there is none."""
PLUGINS = ("proof.mutants.witness", "pytest_timeout", "xdist.plugin", "topics.testing.fixtures")
"""Loading all that are installed takes longer than most of the runs."""
PASSED, FAILED = 0, 1
"""Exit codes of pytest; any other means that it could not run."""

_FIRST_FAILURE = re.compile(r"^(?:FAILED|ERROR) ([^\s\[]+(?:\[.*?\](?= - |$))?)", re.MULTILINE)
"""A test's name may have spaces and brackets between its own brackets; pytest's reason follows behind a dash."""


class CannotTry(Exception):
    """The tests do not pass without a mutant, or pytest does not run at all."""


@dataclass(frozen=True, slots=True)
class Verdict:
    killed: bool
    by: str
    """The test that noticed; empty for a survivor."""
    seconds: float


class Copy:
    """The tree in another directory, where it may be broken."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        for path in files(ROOT, *ROOMS, *LONE):
            place = self.root / path.relative_to(ROOT)
            place.parent.mkdir(parents=True, exist_ok=True)
            copy2(path, place)

    def check(self, selection: Sequence[str]) -> None:
        """All that mutants are tried with passes while there is none."""
        code, said, _ = self._pytest(list(dict.fromkeys(selection)), CHECK_TIMEOUT_S, CHECK_TIMEOUT_S)
        if code != PASSED:
            raise CannotTry(f"without any mutant, {first_failure(said) or 'pytest'} fails:\n{said}")

    def try_mutant(self, mutant: Mutant) -> Verdict:
        with Applied(mutant, self.root):
            code, said, seconds = self._pytest(list(mutant.tests), TEST_TIMEOUT_S, RUN_TIMEOUT_S)
        by = first_failure(said) if code == FAILED else ""
        # Python itself ends with the same number, when not even pytest can be imported.
        if code not in (PASSED, FAILED) or bool(by) != (code == FAILED):
            raise CannotTry(f'mutant "{mutant.name}": pytest ended with {code}:\n{said}')
        return Verdict(code == FAILED, by, round(seconds, 1))

    def _pytest(self, selection: list[str], test_timeout_s: int, run_timeout_s: int) -> tuple[int, str, float]:
        command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "--tb=line", "-rfE"]
        command += [word for plugin in PLUGINS for word in ("-p", plugin)]
        command += ["-n", "0", "--timeout", str(test_timeout_s), *selection]
        ours = {"PYTHONPATH": str(self.root), ROOT_VARIABLE: str(self.root), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        began = time.monotonic()
        done = subprocess.run(
            command,
            cwd=self.root,
            env=os.environ | ours,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=run_timeout_s,
        )
        return done.returncode, done.stdout, time.monotonic() - began


def first_failure(said: str) -> str:
    """The test that failed first, as pytest takes it; empty when none did."""
    found = _FIRST_FAILURE.search(said)
    return found[1] if found is not None else ""
