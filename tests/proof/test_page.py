"""docs/PROOF.md: what the generator makes of the results beside it, and plain about what was not run."""

from __future__ import annotations

from pathlib import Path

import pytest

from proof.page import command
from proof.page.command import DATA, PAGE, results_in
from proof.page.page import page
from proof.page.rendering import as_markdown
from proof.page.section import SECTIONS, shortfalls
from proof.results import Result, save


def result(name: str, **counts: object) -> Result:
    return {"name": name, "date": "2026-01-02", "command": "make soak", **counts}


def line_of(text: str, title: str) -> str:
    return next(line for line in text.splitlines() if line.startswith(f"| [{title}]"))


def test_the_page_is_what_its_results_say() -> None:
    assert PAGE.read_text() == page(results_in(DATA)), "write it again with `.venv/bin/python -m proof page`"


def test_what_was_not_run_is_said() -> None:
    text = page({})
    assert text.count("**Not run.**") == len(SECTIONS)
    assert line_of(text, "Mutants") == "| [Mutants](#mutants) | not run | never | `make mutants` |"


def test_what_was_run_in_part_is_said() -> None:
    text = page(
        {"kill": result("kill", cycles=20), "fuzz": result("fuzz", decoders={"sql": {"inputs": 5, "crashes": 0}})}
    )
    assert "**In part:** 20 of 200 cycles." in text
    assert "**In part:** 1 of 1 decoders have had fewer than 10,000,000 inputs." in text
    assert "| in part | 2026-01-02 |" in line_of(text, "Fuzzing")
    assert "| run in full |" in line_of(page({"kill": result("kill", cycles=200)}), "A process that is killed")


def test_what_failed_is_said() -> None:
    def state(name: str, title: str, **counts: object) -> str:
        return line_of(page({name: result(name, **counts)}), title).split(" | ")[1]

    assert state("mutants", "Mutants", all=3, tried=3, killed=2, mutants={}) == "1 survive"
    assert state("mutants", "Mutants", all=3, tried=1, killed=1, mutants={}) == "2 of 3 not tried"
    assert state("mutants", "Mutants", all=3, tried=3, killed=3, mutants={}) == "run in full"
    assert state("soak", "The long runs", parts={"kill": {"passed": False}}) == "failed: kill"
    assert state("fuzz", "Fuzzing", decoders={"sql": {"inputs": 10**7, "crashes": 1}}) == "crashes: sql"
    assert state("simulator", "The simulator", seeds=10**6, failures=2) == "2 failures"
    assert state("simulator", "The simulator", seeds=10**6, failures=[]) == "run in full"


def test_numbers_and_tables_of_any_kind_are_shown() -> None:
    text = as_markdown(
        result(
            "x",
            seeds=20_000,
            simulated_ms=1.25,
            lanes=["a", "b"],
            ok=True,
            by_kind={"torn": 3},
            rows={"r": {"n": 1}, "s": {"m": None}},
        )
    )
    for line in (
        "| seeds | 20,000 |",
        "| simulated ms | 1.2 |",
        "| lanes | a, b |",
        "| ok | yes |",
        "| torn | 3 |",
        "| r | 1 |",
    ):
        assert line in text, line


def test_a_goal_may_be_of_each_row() -> None:
    fuzz = next(section for section in SECTIONS if section.name == "fuzz")
    some = result("fuzz", decoders={"a": {"inputs": 10**7}, "b": {}})
    assert shortfalls(fuzz, some) == ["1 of 2 decoders have had fewer than 10,000,000 inputs"]
    assert shortfalls(fuzz, result("fuzz", decoders={"a": {"inputs": 10**7}})) == []


def test_results_are_taken_along_and_the_others_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, runs, target = tmp_path / "data", tmp_path / "runs", tmp_path / "PROOF.md"
    monkeypatch.setattr(command, "DATA", data)
    monkeypatch.setattr(command, "PAGE", target)
    monkeypatch.setattr(command, "ROOT", tmp_path)
    data.mkdir()
    save("disk", "make soak", {"disks": {"ext4": 40}}, data)
    save("kill", "make soak", {"cycles": 200}, runs)
    save("other", "make soak", {"cycles": 1}, runs)
    assert command.page(results=runs) == 0
    assert {path.name for path in data.iterdir()} == {"disk.json", "kill.json"}
    assert target.read_text() == page(results_in(data))
