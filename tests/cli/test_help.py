from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from topics.cli import run
from topics.cli.exitcode import Exit
from topics.cli.reference import as_markdown, commands, examples

ROOT = Path(__file__).parents[2]
FLAGS = {"position": "from", "use_spark": "spark"}
"""Flags whose names are words of Python, or of the module, and what their parameters are called."""


def test_the_reference_is_fresh(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["help", "--markdown"]) == 0
    assert capsys.readouterr().out == as_markdown()
    assert (ROOT / "docs" / "CLI.md").read_text() == as_markdown(), "docs/CLI.md is stale: run `make docs`"


def test_the_reference_has_everything() -> None:
    text = as_markdown()
    for path, command in commands():
        assert f"\n### topics {path}\n" in text
        assert (command.__doc__ or "").splitlines()[0] in text
    for code in Exit:
        assert f"| {code.value} | {code.name.lower().replace('_', ' ')} | {code.meaning} |" in text
    assert "`--durability`" in text and "One of ephemeral, memory, disk, fsync." in text
    images = re.findall(r"\]\((images/[^)]+)\)", text)
    assert len(images) == 2 and all((ROOT / "docs" / image).exists() for image in images)


@pytest.mark.parametrize(("path", "command"), [pytest.param(*each, id=each[0]) for each in commands()])
def test_help_teaches_with_an_example(
    path: str, command: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*path.split(), "--help"]) == 0
    shown = capsys.readouterr().out
    assert examples(command), f"{path} has no example"
    assert all(line in shown for line in examples(command))
    for name in inspect.signature(command).parameters:
        if name not in ("target", "selection", "changes", "config", "flags", "spark"):
            flag = FLAGS.get(name, name.replace("_", "-"))
            assert re.search(rf"--{flag}\b|\b{name.upper()}\b", shown), name


def test_help_of_a_command_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["help", "topic", "create"]) == 0
    assert "topics topic create" in capsys.readouterr().out
    assert run(["help"]) == 0
    assert "Records" in capsys.readouterr().out
    assert run(["help", "bogus"]) == 2
