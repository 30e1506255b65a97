"""What `topics pipeline run` refuses before anything starts; the rest is in `test_examples.py` and `tests/spark`."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from tests.cli.rig import Command
from topics.cli.exitcode import Exit
from topics.cli.pipelinerun import _table
from topics.pipelinemodel import RunState
from topics.spark.pipeline.runner import Ended


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--dir", "."], "Spark reads from several processes at once"),
        (["--url", "http://127.0.0.1:1", "--master", "spark://h:7077"], "in a directory that the whole cluster sees"),
    ],
)
def test_what_cannot_be_run(capfd: pytest.CaptureFixture[str], tmp_path: Path, words: list[str], reason: str) -> None:
    refused = Command(capfd, [])("pipeline", "run", *words)
    assert refused.code == Exit.USAGE and reason in refused.err


def test_how_each_ended_for_a_person() -> None:
    console = Console(width=200, file=StringIO(), markup=False)
    console.print(_table([Ended("a", RunState.DONE), Ended("b", RunState.FAILED, "[/x] is no\ttable")]))
    head, first, second = console.file.getvalue().splitlines()
    assert (head.split(), first.split()) == (["pipeline", "state", "error"], ["a", "done"])
    assert second.split(maxsplit=2)[:2] == ["b", "failed"] and second.rstrip().endswith("[/x] is no\\ttable")
