"""Runs the workers, which are in C, against a queue on loopback."""

from __future__ import annotations

import subprocess
from enum import StrEnum
from pathlib import Path

import msgspec

from bench.clients.load import compiled
from bench.peers.process import client_core, pinned

SECONDS_MAX = 600.0


class JobProtocol(StrEnum):
    HTTP = "http"
    RESP = "resp"
    NATS = "nats"
    BEANSTALK = "beanstalk"
    HEAP = "heap"
    ZSET = "zset"


class Done(msgspec.Struct, frozen=True):
    """What the workers print when all jobs are completed."""

    jobs: int
    seconds: float
    p50_us: float
    p99_us: float
    client_busy_s: float

    @property
    def jobs_per_s(self) -> float:
        return self.jobs / self.seconds


class Workers:
    """So many of them on a connection each, that claim so many jobs at a time."""

    def __init__(self, directory: Path, workers: int, batch: int) -> None:
        self._program = compiled("jobs", directory)
        self.workers = workers
        self.batch = batch

    def run(self, protocol: JobProtocol, port: int, jobs: int, queue: str) -> Done:
        """Complete so many jobs, which are there."""
        counts = [str(port), str(self.workers), str(self.batch), str(jobs)]
        done = subprocess.run(
            [str(self._program), protocol.value, *counts, queue],
            capture_output=True,
            timeout=SECONDS_MAX,
            preexec_fn=pinned(client_core()),
        )
        if done.returncode:
            raise RuntimeError(
                f"the workers on port {port} ended early: {done.stderr.decode(errors='replace').strip()}"
            )
        return msgspec.json.decode(done.stdout, type=Done)
