"""The catalogue of faults: each has a name of its own, says what happens, and names tests that exist."""

from __future__ import annotations

from pathlib import Path

from proof.faults.catalogue import FAULTS_MIN, PAGE, Fault, counts_of, faults_of
from proof.faults.problems import problems
from proof.faults.tests import exists

GOOD = "tests/proof/test_faults.py::test_the_catalogue_is_whole"


def row(name: str = "a", happens: str = "It is told.", tests: str = f"`{GOOD}`") -> str:
    return f"| `{name}` | {happens} | {tests} |"


def test_the_catalogue_is_whole() -> None:
    assert problems(list(faults_of(PAGE.read_text()))) == []


def test_every_row_of_a_table_is_a_fault() -> None:
    """None is left out because it is written in another way."""
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("|")]
    tables = sum(line.startswith("|---") for line in rows)
    assert len(list(faults_of(PAGE.read_text()))) == len(rows) - 2 * tables


def test_a_row_is_read() -> None:
    page = "## Clock\n\n| fault | what happens | shown by |\n|---|---|---|\n" + row(
        "a-b", tests="`tests/x.py::t`, `tests/y.py::u`"
    )
    (fault,) = faults_of(page)
    assert fault == Fault("Clock", "a-b", "It is told.", ("tests/x.py::t", "tests/y.py::u"))
    assert counts_of([fault, fault]) == {"Clock": 2}


def test_what_is_wrong_is_named() -> None:
    many = "\n".join(row(f"f{number}") for number in range(FAULTS_MIN))
    assert problems(list(faults_of(many))) == []
    wrong = {
        row("f1"): "f1 is there 2 times",
        row("bare", tests=""): "bare names no test",
        row(
            "gone", tests="`tests/proof/test_faults.py::test_of_old`"
        ): "gone names tests/proof/test_faults.py::test_of",
        row("lost", tests="`tests/proof/test_nothing.py::test_a`"): "lost names tests/proof/test_nothing.py::test_a",
        row("mute", happens="something"): "mute does not say",
    }
    for line, words in wrong.items():
        (problem,) = problems(list(faults_of(f"{many}\n{line}")))
        assert problem.startswith(words)
    (few,) = problems(list(faults_of(row())))
    assert few == f"there are 1 faults; at least {FAULTS_MIN} are expected"


def test_tests_are_found_by_reading(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(
        "def test_plain(): ...\nasync def test_later(): ...\n"
        "class TestA:\n    def test_inside(self): ...\ndef other(): ...\n"
    )
    for name in ("test_plain", "test_plain[case-1]", "test_later", "TestA::test_inside"):
        assert exists(f"test_a.py::{name}", tmp_path), name
    for name in ("test_inside", "other", "TestA", ""):
        assert not exists(f"test_a.py::{name}", tmp_path), name
