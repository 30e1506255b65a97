"""The benchmarks run; how fast is not asked here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec

from bench.__main__ import chosen, write_document
from bench.figure import Figure, Unit
from bench.measures import ENGINE, LIVE, MEASURES, QUEUES, SERVER
from bench.report import Report

ROOT = Path(__file__).parents[2]


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "bench", *arguments], cwd=ROOT, capture_output=True, text=True)


def quick(tmp_path: Path, *only: str) -> Report:
    saved = tmp_path / "figures.json"
    ran = bench("--quick", "--only", *only, "--directory", str(tmp_path / "data"), "--json", str(saved))
    assert ran.returncode == 0, ran.stderr
    return msgspec.json.decode(saved.read_bytes(), type=Report)


def test_a_quick_run_has_every_figure(tmp_path: Path) -> None:
    document = ROOT / "docs" / "BENCHMARKS.md"
    before = document.read_bytes()
    report = quick(tmp_path, *ENGINE)
    assert list(report.figures) == list(ENGINE)
    for name, figures in report.figures.items():
        assert figures, name
        assert [figure.name for figure in figures if figure.value <= 0] == []
    assert list((tmp_path / "data").iterdir()) == [], "the data is removed in the end"
    assert document.read_bytes() == before, "only a full run writes the document"


def test_the_server_runs_against_the_peers_that_are_installed(tmp_path: Path) -> None:
    report = quick(tmp_path, "http_replay")
    for name in report.left_out:
        assert name == "http_replay" and "C compiler" in report.left_out[name]
    for figure in report.figures.get("http_replay", []):
        assert figure.value > 0
        assert figure.peer or "not installed" in figure.note


def test_the_beginning_of_a_name_chooses_all_that_begin_so() -> None:
    assert chosen(("http",)) == (list(SERVER), [])
    assert chosen(("live",)) == (list(LIVE), [])
    assert chosen(("queues",)) == (list(QUEUES), [])
    assert chosen(()) == (list(MEASURES), [])
    assert chosen(("reads", "wirtes")) == (["reads"], ["wirtes"])


def test_a_run_writes_only_the_parts_it_measured_in_full(tmp_path: Path) -> None:
    path = tmp_path / "figures.md"

    def report(names: list[str], value: float) -> Report:
        figure = Figure(name="one", value=value, unit=Unit.FILES)
        return Report({}, {name: [figure] for name in names})

    write_document(report(list(ENGINE), 111), path)
    write_document(report([*SERVER, "reads"], 222), path)
    text = path.read_text()
    assert text.count("| one | 111 |") == len(ENGINE) and text.count("| one | 222 |") == len(SERVER)
    assert write_document(report(["http_ready"], 333), path) == []
    assert path.read_text() == text


def test_an_unknown_measure_is_refused(tmp_path: Path) -> None:
    ran = bench("--only", "wirtes", "--directory", str(tmp_path))
    assert ran.returncode == 2
    assert "wirtes" in ran.stdout and "writes" in ran.stdout
