"""Commands whose stdin, stdout or stderr is closed, or cannot take what is printed."""

from __future__ import annotations

import subprocess
import sys
from errno import ENOSPC
from pathlib import Path

import pytest

from tests.cli.rig import ROOT, TIMEOUT_S, Command, clean_environment
from topics.cli.streams import naming

FULL = "No space left on device"
CLOSED = "Bad file descriptor"


def shell(line: str) -> tuple[int, str]:
    """How a command ends that a shell starts, and what is on its stderr."""
    command = ["sh", "-c", f"exec '{sys.executable}' -m topics {line}"]
    environment = clean_environment()
    done = subprocess.run(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True, timeout=TIMEOUT_S)
    return done.returncode, done.stderr


def test_a_log_does_not_become_a_stream_that_is_closed(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The files of the directory would have the numbers 0, 1 and 2."""
    assert shell(f"write orders 1 --dir '{tmp_path}/data' <&- >&- 2>&-")[0] == 1, "its answer could not be printed"
    assert [record["data"] for record in Command(capfd, ["--dir", f"{tmp_path}/data"]).good("read", "orders")] == [1]
    assert Command(capfd, []).good("fsck", tmp_path / "data")[0]["findings"] == []


def test_a_stdin_that_is_closed_is_said_and_nothing_is_taken_for_written(tmp_path: Path) -> None:
    code, said = shell(f"write orders --dir '{tmp_path}/data' <&-")
    assert code == 1 and said.endswith(f"topics: io_error: stdin: {CLOSED}; see to it and try again\n")
    assert "Traceback" not in said
    assert shell("sql <&-") == (1, f"topics: io_error: stdin: {CLOSED}; see to it and try again\n")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("version >&-", CLOSED),
        ("settings --json >/dev/full", FULL),
        ("settings --no-json >&-", CLOSED),
    ],
)
def test_a_stdout_that_takes_nothing_is_an_error(line: str, why: str) -> None:
    assert shell(line) == (1, f"topics: io_error: stdout: {why}; see to it and try again\n")


@pytest.mark.parametrize("redirect", ["2>&-", "2>/dev/full"])
def test_without_a_stderr_the_exit_code_tells(redirect: str) -> None:
    assert shell(f"version --bogus {redirect}")[0] == 2


@pytest.mark.parametrize("error", [OSError(ENOSPC, FULL), BrokenPipeError()])
def test_an_error_of_a_stream_says_which_and_stays_what_it_is(error: OSError) -> None:
    with pytest.raises(OSError) as raised, naming("stdout"):
        raise error
    assert raised.value is error and error.filename == "stdout"
