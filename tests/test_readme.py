"""What the README shows runs, and prints what the README says it prints."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from os import environ
from pathlib import Path

import pytest

from tests.e2e.served import served
from topics.model import Durability
from topics.settings import TABLE

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()

BLOCK = re.compile(
    r"^<!-- (?P<kind>run|serve) -->\n```(?P<language>\w+)\n(?P<code>.*?)^```\n\n```text\n(?P<shown>.*?)^```$",
    re.M | re.S,
)
INTERPRETER = ".venv/bin/python"
ADDRESS = "localhost:4000"
CHANGING = ((r'"performance":\{[^}]*\}', '"performance":{…}'), (r"\b1[0-9]{12}\b", "1780420000000"))
"""What is another one on each run: measurements and times."""


@dataclass(frozen=True)
class Block:
    kind: str
    """`run` is a process of its own, `serve` talks to the server."""
    language: str
    code: str
    shown: str


def blocks(text: str) -> Iterator[Block]:
    """The runnable blocks, each with the output that follows it."""
    return (Block(**found.groupdict()) for found in BLOCK.finditer(text))


def lasting(text: str) -> str:
    for pattern, instead in CHANGING:
        text = re.sub(pattern, instead, text)
    return text.strip()


def run(block: Block, directory: Path) -> str:
    """What a block prints, as a process of its own."""
    if block.language == "sh":
        command = ["sh", "-ec", block.code.replace(INTERPRETER, sys.executable)]
    else:
        command = [sys.executable, "-c", block.code]
    variables = {name: value for name, value in environ.items() if name not in {row.variable for row in TABLE}}
    done = subprocess.run(
        command,
        cwd=directory,
        env=variables | {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl; `make test` installs it where it may")
def test_the_curl_tour_runs_from_top_to_bottom(tmp_path: Path) -> None:
    tour = [block for block in blocks(README) if block.kind == "serve"]
    assert len(tour) >= 5
    with served(tmp_path / "data") as server:
        for block in tour:
            here = replace(block, code=block.code.replace(ADDRESS, server.url.removeprefix("http://")))
            assert lasting(run(here, tmp_path)) == lasting(block.shown), block.code


def test_the_tour_runs_from_top_to_bottom(tmp_path: Path) -> None:
    tour = [block for block in blocks(README) if block.kind == "run"]
    assert {block.language for block in tour} == {"sh", "python"}
    for block in tour:
        assert run(block, tmp_path) == block.shown
    assert (tmp_path / "inside").is_dir()


def test_every_block_that_is_marked_is_run() -> None:
    assert len(list(blocks(README))) == README.count("<!-- run -->") + README.count("<!-- serve -->") >= 9
    python = re.findall(r"^(.*)\n```python$", README, re.MULTILINE)
    assert set(python) == {"<!-- run -->"}, "a Python block in the README is not run"


@pytest.mark.parametrize("code", ["raise SystemExit(3)\n", "import topics.nowhere\n"])
def test_a_block_that_fails_is_found(code: str, tmp_path: Path) -> None:
    (block,) = blocks(f"text\n\n<!-- run -->\n```python\n{code}```\n\n```text\n```\n")
    with pytest.raises(AssertionError):
        run(block, tmp_path)


def test_every_durability_class_has_its_line() -> None:
    assert re.findall(r"^\| `(\w+)` \|", README, re.MULTILINE) == [member.value for member in Durability]


def test_links_lead_somewhere() -> None:
    targets = set(re.findall(r"\]\((?!https?:)([^)#]+)", README))
    assert {"LICENSE", "docs/GUARANTEES.md"} <= targets
    assert [target for target in sorted(targets) if not (ROOT / target).exists()] == []
