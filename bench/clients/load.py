"""Runs the C client against a server on loopback."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import msgspec

from bench.clients.requests import Requests
from bench.peers.process import LeftOut, client_core, pinned

NO_END = 1 << 60
SECONDS_MAX = 600.0
"""No load goes on for longer, whatever the server does."""


class Load(msgspec.Struct, frozen=True):
    """What the client prints when it is done."""

    requests: int
    seconds: float
    p50_us: float
    p99_us: float
    received_bytes: int
    client_busy_s: float

    @property
    def requests_per_s(self) -> float:
        return self.requests / self.seconds


def compiler() -> str:
    found = shutil.which("cc")
    if found is None:
        raise LeftOut("the load client needs a C compiler: no `cc` on the path (Debian: apt install gcc)")
    return found


def compiled(name: str, directory: Path) -> Path:
    """A client of that name, built from its source beside this file into a directory."""
    program = directory / name
    command = [compiler(), "-O2", "-o", str(program), str(Path(__file__).with_name(f"{name}.c"))]
    subprocess.run(command, check=True, timeout=60)
    return program


class Client:
    """The client, compiled into a directory that also holds what it sends."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._program = compiled("load", directory)

    def run(
        self, port: int, requests: Requests, connections: int, *, seconds: float = SECONDS_MAX, count: int = NO_END
    ) -> Load:
        """Load until the seconds are over or so many requests are answered."""
        saved = self._directory / "requests"
        requests.save(saved)
        counts = [str(port), str(connections), str(count), str(seconds), str(requests.replies)]
        command = [str(self._program), requests.protocol.value, *counts, str(saved)]
        done = subprocess.run(
            command,
            capture_output=True,
            timeout=seconds + 30,
            preexec_fn=pinned(client_core()),
        )
        if done.returncode:
            raise RuntimeError(f"the load on port {port} ended early: {done.stderr.decode(errors='replace').strip()}")
        load = msgspec.json.decode(done.stdout, type=Load)
        if count != NO_END and load.requests < count:
            raise RuntimeError(f"only {load.requests} of {count} requests were answered in {load.seconds:.0f} s")
        return load
