"""Mutants: each still fits the code and names tests there are, and a few are tried for real."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

from proof.faults.tests import exists
from proof.mutants import ALL, command
from proof.mutants.command import COMMAND, EXIT_CANNOT, EXIT_SURVIVOR, mutants
from proof.mutants.mutant import Applied, Mutant
from proof.mutants.trial import CannotTry, Copy, first_failure
from proof.results import load, save
from proof.tree import ROOT, tree_hash

MUTANTS_MIN = 60
QUICK = tuple(each for each in ALL if each.name in ("frame-checksum-ignored", "tombstone-ends-one-early"))
HARMLESS = Mutant(
    "harmless",
    "nothing",
    "topics/core/read.py",
    '"""The caller has let the log `observe` the time.',
    '"""The caller let the log `observe` the time.',
    ("tests/core/test_read.py::test_an_empty_topic_is_read_from_the_beginning",),
)


def test_there_are_enough_each_with_a_name_of_its_own() -> None:
    assert len(ALL) >= MUTANTS_MIN
    assert [name for name, count in Counter(mutant.name for mutant in ALL).items() if count > 1] == []
    assert {mutant.file.split("/")[1] for mutant in ALL} >= {"core", "storage", "engine", "server"}


@pytest.mark.parametrize("mutant", ALL, ids=lambda mutant: mutant.name)
def test_it_fits_the_code(mutant: Mutant) -> None:
    ast.parse(mutant.applied((ROOT / mutant.file).read_text()))
    assert mutant.tests
    for test in mutant.tests:
        assert exists(test) if "::" in test else (ROOT / test).is_file(), test


def test_one_that_does_not_fit_any_more_says_so() -> None:
    for text in ("", HARMLESS.old * 2):
        with pytest.raises(
            ValueError, match=f'mutant "harmless": its old text is in {HARMLESS.file} . times, not once'
        ):
            HARMLESS.applied(text)


def test_a_mutant_is_in_the_copy_within_its_block_only(tmp_path: Path) -> None:
    mutant = Mutant("m", "", "a.py", "1", "2", ())
    (tmp_path / "a.py").write_text("x = 1\n")
    (tmp_path / "__pycache__").mkdir()
    compiled = tmp_path / "__pycache__" / "a.cpython-311.pyc"
    for _ in range(2):
        compiled.write_bytes(b"stale")
        with Applied(mutant, tmp_path):
            assert (tmp_path / "a.py").read_text() == "x = 2\n" and not compiled.exists()
            compiled.write_bytes(b"stale")
        assert (tmp_path / "a.py").read_text() == "x = 1\n" and not compiled.exists()


def test_what_cannot_be_run_is_not_taken_for_killed(tmp_path: Path) -> None:
    copy = Copy(tmp_path)
    broken = Mutant("broken", "all", HARMLESS.file, HARMLESS.old, "(" + HARMLESS.old, HARMLESS.tests)
    with pytest.raises(CannotTry, match='mutant "broken": pytest ended with'):
        copy.try_mutant(broken)
    with pytest.raises(CannotTry, match="without any mutant"):
        copy.check(["tests/core/test_nothing.py"])


@pytest.mark.parametrize(
    "name", ["a.py::test_b", "a.py::test_b[1]", "a.py::test_b[inline on a [fake] disk - twice]", "a.py"]
)
@pytest.mark.parametrize("reason", ["", " - assert [1] == []", " - KeyError: 'a - [b] - c'"])
def test_who_noticed_is_named_as_a_reader_can_run_it(name: str, reason: str) -> None:
    for word in ("FAILED", "ERROR"):
        assert first_failure(f"F\n{word} {name}{reason}\n{word} later.py::test\n1 failed\n") == name
    assert first_failure("1 passed\n") == ""


def test_some_are_tried_kept_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "ALL", (*QUICK, HARMLESS))
    assert mutants(only=("nobody",), results=tmp_path) == EXIT_CANNOT
    assert mutants(results=tmp_path) == EXIT_SURVIVOR, "a change that nobody notices survives"
    assert capsys.readouterr().out.count("SURVIVED") == 1
    stored = load("mutants", tmp_path)
    assert stored is not None and stored["tree"] == tree_hash()
    assert (stored["all"], stored["tried"], stored["killed"]) == (3, 3, 2)
    assert [stored["mutants"][mutant.name]["by"] for mutant in QUICK] == [mutant.tests[0] for mutant in QUICK]
    monkeypatch.setattr(command, "Copy", None)
    assert mutants(only=tuple(mutant.name for mutant in QUICK), results=tmp_path) == 0, (
        "what was killed is not tried again"
    )


def test_a_test_whose_name_looks_like_markup_is_told_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = QUICK[0].name
    found = {"breaks": "", "file": "f.py", "killed": True, "by": "t.py::test_it[/data/1-red]", "seconds": 1.0}
    save("mutants", COMMAND, {"tree": tree_hash(), "mutants": {name: found}}, tmp_path)
    assert mutants(only=(name,), results=tmp_path) == 0
    assert found["by"] in capsys.readouterr().out
