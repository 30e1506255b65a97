"""The `topics` command in this process and as one of its own, on a directory and on a server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from topics.cli import run

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 60


def clean_environment() -> dict[str, str]:
    """What a command inherits: nothing of ours, the same everywhere."""
    changing = ("TOPICS_", "NO_COLOR", "FORCE_", "PYTHONUNBUFFERED")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(changing)}
    return kept | {"PYTHONPATH": str(ROOT), "TZ": "UTC", "COLUMNS": "200"}


def spawn(
    *arguments: str | Path, stdin: str | bytes = b"", cwd: Path | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    """A process of its own, with pipes."""
    return subprocess.run(
        [sys.executable, "-m", "topics", *map(str, arguments)],
        input=stdin if isinstance(stdin, str) else stdin.decode(errors="surrogateescape"),
        capture_output=True,
        encoding="utf-8",
        errors="surrogateescape",
        cwd=cwd or ROOT,
        env=clean_environment() | variables,
        timeout=TIMEOUT_S,
    )


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[Any]:
        """What it printed, as JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]


class Command:
    """Runs command lines in this process; `where` is added to those that take it."""

    def __init__(self, capture: Any, where: list[str]) -> None:
        self._capture = capture
        self.where = where

    def __call__(self, *arguments: str | Path | int) -> Said:
        self._capture.readouterr()
        code = run([*map(str, arguments), *self.where])
        out, err = self._capture.readouterr()
        return Said(code, out, err)

    def good(self, *arguments: str | Path | int) -> list[Any]:
        said = self(*arguments)
        assert (said.code, said.err) == (0, ""), said
        return said.lines


class Following:
    """A command that goes on without end, with pipes; each line is waited for."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "topics", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=clean_environment(),
        )
        assert self.process.stdout is not None and self.process.stderr is not None
        self.out, self.err = self.process.stdout, self.process.stderr

    def event(self) -> Any:
        line = self.out.readline()
        assert line, self.err.read()
        return json.loads(line)

    def note(self) -> str:
        return self.err.readline()

    def end(self, number: int) -> int:
        self.process.send_signal(number)
        return self.process.wait(TIMEOUT_S)


@contextmanager
def running(*arguments: str) -> Iterator[Following]:
    """It ends with the block at the latest."""
    one = Following(*arguments)
    try:
        yield one
    finally:
        one.process.kill()
        one.process.wait(TIMEOUT_S)
        one.out.close()
        one.err.close()
