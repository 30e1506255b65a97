"""What a worker of Spark reached is saved: the daemon itself, asked as Spark asks it, without Spark."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from time import monotonic

import pytest
from coverage import CoverageData

from proof.coverage import SPARK_WORKERS

GUARD_S = 60
SECRET = b"between the two of them"
CONFIG = """
[run]
branch = true
source = topics
parallel = true
patch = fork
data_file = {place}/data
"""


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """Where a daemon takes orders for workers."""
    config = tmp_path / "coverage.ini"
    config.write_text(CONFIG.format(place=tmp_path))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    environment |= {
        "COVERAGE_PROCESS_START": str(config),
        "PYTHONPATH": str(SPARK_WORKERS),
        "PYTHON_WORKER_FACTORY_SECRET": SECRET.decode(),
        "SPARK_REUSE_WORKER": "1",
    }
    command = [sys.executable, "-m", "pyspark.daemon", "pyspark.worker"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as daemon:
        assert daemon.stdout is not None and daemon.stdin is not None
        yield struct.unpack("!i", daemon.stdout.read(4))[0]
        daemon.stdin.close()


def test_a_worker_has_saved_before_it_says_what_went_wrong(port: int, tmp_path: Path) -> None:
    """Who hears of it kills the worker."""
    with socket.create_connection(("127.0.0.1", port), GUARD_S) as worker, worker.makefile("rwb") as stream:
        (pid,) = struct.unpack("!i", stream.read(4))
        stream.write(struct.pack("!i", len(SECRET)) + SECRET)
        stream.flush()
        assert stream.read(6) == struct.pack("!i", 2) + b"ok"
        assert not list(tmp_path.glob(f"data.*pid{pid}.*"))
        worker.shutdown(socket.SHUT_WR)
        assert stream.read(4), "the error of a worker without a task"
        (saved,) = tmp_path.glob(f"data.*pid{pid}.*")
    _wait_for_the_end(pid)
    data = CoverageData(str(saved))
    data.read()
    assert any(path.endswith("topics/spark/sink.py") for path in data.measured_files())


def _wait_for_the_end(pid: int) -> None:
    end = monotonic() + GUARD_S
    while Path(f"/proc/{pid}").exists() and monotonic() < end:
        Event().wait(0.02)
