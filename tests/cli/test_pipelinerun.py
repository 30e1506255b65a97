"""What `topics pipeline run` refuses before anything starts; the rest is in `test_examples.py` and `tests/spark`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.rig import Command
from topics.cli.exitcode import Exit


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
