"""The figures of security: counted by tests, read from the report of their run."""

from __future__ import annotations

from pathlib import Path

import pytest

from proof.results import load
from proof.security import EXIT_FAILED, read, security

GOOD = """
def test_one(record_property):
    record_property("asked", 30)
    record_property("routes", 10)
    record_property("how", "in a word")

def test_two(record_property):
    record_property("asked", 12)
"""
BAD = """
import pytest

def test_three():
    assert False

@pytest.fixture
def broken():
    raise ValueError

def test_four(broken): ...

@pytest.mark.skip(reason="not here")
def test_five(): ...
"""


def test_counts_are_those_of_the_run(tmp_path: Path) -> None:
    (tmp_path / "test_matrix.py").write_text(GOOD)
    assert security(tests=tmp_path / "test_matrix.py", results=tmp_path) == 0
    found = load("security", tmp_path)
    assert found is not None
    counts = {name: found[name] for name in ("asked", "routes", "tests", "failed", "skipped", "subjects")}
    assert counts == {
        "asked": 42,
        "routes": 10,
        "tests": 2,
        "failed": 0,
        "skipped": 0,
        "subjects": {"matrix": 2},
    }


def test_what_fails_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "test_bad.py").write_text(BAD)
    assert security(tests=tmp_path / "test_bad.py", results=tmp_path) == EXIT_FAILED
    found = load("security", tmp_path)
    assert found is not None and (found["tests"], found["failed"], found["skipped"]) == (3, 2, 1)
    assert "skipped bad: test_five" in capsys.readouterr().out


def test_a_run_that_did_not_happen_leaves_the_last_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proof.security.sys.executable", "false")
    assert security(tests=tmp_path, results=tmp_path) == EXIT_FAILED
    assert load("security", tmp_path) is None
    assert "did not run" in capsys.readouterr().out


def test_an_empty_report_counts_nothing() -> None:
    found = read(b"<testsuites><testsuite/></testsuites>")
    assert (found.tests.total(), found.failed, found.counts) == (0, 0, {})
