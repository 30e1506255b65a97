"""A plugin of pytest for the part `search`: what has passed with this tree is left out, and it says how far it is.

Tests run side by side in processes of pytest-xdist. The process that hands them out knows what has passed before, tells
the others when it starts them, and notes what passes."""

from __future__ import annotations

from os import environ
from pathlib import Path
from typing import Any, Final

import pytest

from proof.results import RESULTS
from proof.soak.progress import tell
from proof.tree import tree_hash

VARIABLE: Final = "SOAK_PASSED"
"""Names a file for what has passed, instead of the usual one."""
KEY: Final = "soak_passed"


def pytest_configure(config: pytest.Config) -> None:
    told: list[str] | None = getattr(config, "workerinput", {}).get(KEY)
    config.pluginmanager.register(Noting(_file()) if told is None else LeavingOut(frozenset(told)))


def _file() -> Path:
    named = environ.get(VARIABLE)
    return Path(named) if named else RESULTS / "search" / tree_hash()


class Noting:
    """In the process that hands the tests out."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._before = path.read_text().splitlines() if path.exists() else []
        self._passed: set[str] = set()
        self._done = self._total = 0
        path.parent.mkdir(parents=True, exist_ok=True)

    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput[KEY] = self._before

    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        self._total = len(ids)
        tell(self._done, self._total)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self._passed.add(report.nodeid)
        if report.when == "teardown":
            self._done += 1
            tell(self._done, self._total)
            if report.passed and report.nodeid in self._passed:
                with self._path.open("a") as file:
                    file.write(report.nodeid + "\n")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """When nothing is left to run all is well, and the next search is a new one."""
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self._before:
            session.exitstatus = pytest.ExitCode.OK
        if session.exitstatus == pytest.ExitCode.OK:
            self._path.unlink(missing_ok=True)


class LeavingOut:
    """In a process that runs tests."""

    def __init__(self, passed: frozenset[str]) -> None:
        self._passed = passed

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        gone = [item for item in items if item.nodeid in self._passed]
        if gone:
            config.hook.pytest_deselected(items=gone)
            items[:] = [item for item in items if item.nodeid not in self._passed]
