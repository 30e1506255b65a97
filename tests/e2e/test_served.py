"""The server of the other tests here: when it does not do what a test waits for, the test ends and says what it did."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.served import Served, served


def before_it(script: str) -> tuple[str, ...]:
    """What the shell does before it becomes the server."""
    return ("sh", "-c", f'{script}; exec "$0" "$@"')


def test_a_line_that_is_no_log_line_is_shown_while_the_server_lives(tmp_path: Path) -> None:
    server = Served(tmp_path, prefix=before_it(r"printf 'one\ntwo\n' >&2"))
    with pytest.raises(AssertionError, match="no log line:\none\ntwo\n"):
        server.wait_for("ready")
    assert server.process.returncode is not None
    server.kill()


def test_silence_is_no_reason_to_wait_for_ever(tmp_path: Path) -> None:
    server = Served(tmp_path, prefix=before_it("printf half >&2; exec sleep 600"))
    with pytest.raises(AssertionError, match=r"longer than 0.5 s before it said ready: \[\]\nhalf$"):
        server.wait_for("ready", timeout_s=0.5)
    server.kill()


def test_an_end_is_told_with_what_was_said(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        server.process.terminate()
        with pytest.raises(AssertionError, match=r"ended with 0 before it said ready.*listening"):
            server.wait_for("ready")
        assert server.ended() == 0
