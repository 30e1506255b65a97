"""The benchmarks run; how fast is not asked here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec

from bench.measures import MEASURES
from bench.report import Report

ROOT = Path(__file__).parents[2]


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "bench", *arguments], cwd=ROOT, capture_output=True, text=True)


def test_a_quick_run_has_every_figure(tmp_path: Path) -> None:
    document = ROOT / "docs" / "BENCHMARKS.md"
    before = document.read_bytes()
    ran = bench("--quick", "--directory", str(tmp_path / "data"), "--json", str(tmp_path / "figures.json"))
    assert ran.returncode == 0, ran.stderr
    report = msgspec.json.decode((tmp_path / "figures.json").read_bytes(), type=Report)
    assert list(report.figures) == list(MEASURES)
    for name, figures in report.figures.items():
        assert figures, name
        assert [figure.name for figure in figures if figure.value <= 0] == []
    assert list((tmp_path / "data").iterdir()) == [], "the data is removed in the end"
    assert document.read_bytes() == before, "only a full run writes the document"


def test_an_unknown_measure_is_refused(tmp_path: Path) -> None:
    ran = bench("--only", "wirtes", "--directory", str(tmp_path))
    assert ran.returncode == 2
    assert "wirtes" in ran.stdout and "writes" in ran.stdout
