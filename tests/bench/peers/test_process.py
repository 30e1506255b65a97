from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from bench.peers.process import LeftOut, Process, free_port, server_core


def test_a_server_that_ends_by_itself_is_left_out_with_its_last_words(tmp_path: Path) -> None:
    process = Process([sys.executable, "-c", "print('one'); print('no such flag')"], tmp_path / "log")
    with pytest.raises(LeftOut, match="no such flag"):
        process.wait_until(lambda: False)


def test_a_server_has_one_core_until_it_is_stopped(tmp_path: Path) -> None:
    process = Process([sys.executable, "-c", "import signal; signal.pause()"], tmp_path / "log")
    try:
        assert os.sched_getaffinity(process.pid) == {server_core()}
        resident, private = process.resident_bytes()
        assert resident >= private > 0
        process.wait_until(lambda: process.busy_s() > 0)
    finally:
        process.stop()
    assert not Path(f"/proc/{process.pid}").exists()


def test_a_refused_connection_means_not_yet(tmp_path: Path) -> None:
    process = Process([sys.executable, "-c", "import signal; signal.pause()"], tmp_path / "log")
    answers = iter([ConnectionRefusedError(), None])

    def is_ready() -> bool:
        if (problem := next(answers)) is not None:
            raise problem
        return True

    try:
        process.wait_until(is_ready)
    finally:
        process.stop()
    assert list(answers) == []


def test_ports_are_above_the_reserved_ones() -> None:
    assert free_port() > 1023
