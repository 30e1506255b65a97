from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.cli.rig import Command
from topics.cli import COMMANDS


@pytest.fixture
def bare(capfd: pytest.CaptureFixture[str]) -> Command:
    return Command(capfd, [])


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_knows_every_command(bare: Command, shell: str) -> None:
    said = bare("completion", shell)
    assert (said.code, said.err) == (0, "")
    assert [name for name in COMMANDS if name not in said.out] == []
    assert "durability" in said.out and "fsync" in said.out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_takes_the_script(bare: Command, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    script = bare("completion", shell).out
    done = subprocess.run([shell, "-n"], input=script, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["topics", "ta"], {"tail"}),
        (["topics", "topic", "c"], {"create", "config"}),
        (["topics", "tail", "--fo"], {"--follow"}),
        (["topics", "topic", "create", "x", "--durability", "f"], {"fsync"}),
    ],
)
def test_bash_completes(bare: Command, words: list[str], expected: set[str]) -> None:
    script = bare("completion", "bash").out
    line = " ".join(f"'{word}'" for word in words)
    ask = f"COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _topics; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(["bash", "-c", f"{script}\n{ask}"], capture_output=True, text=True)
    assert done.stderr == ""
    assert set(done.stdout.split()) == expected
