"""Runs the C client of watchers and writers against a server on loopback."""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec

from bench.clients.load import NO_END, SECONDS_MAX, compiled
from bench.clients.watching import Watching
from bench.peers.process import Process, client_core, pinned


class Delivered(msgspec.Struct, frozen=True, kw_only=True):
    """What the client prints when it is done, and what the server used meanwhile."""

    writes: int
    deliveries: int
    seconds: float
    p50_us: float
    p99_us: float
    received_bytes: int
    client_busy_s: float
    server_busy_s: float = 0.0

    @property
    def deliveries_per_s(self) -> float:
        return self.deliveries / self.seconds

    @property
    def server_us_per_delivery(self) -> float:
        return self.server_busy_s / self.deliveries * 1e6


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """How fast is written, and how long."""

    writers: int = 1
    writes: int = NO_END
    seconds: float = SECONDS_MAX
    window: int = 1
    """Writes that have not reached everybody; 1 is one after the other."""
    per_s: float = 0.0
    """A write is due so often, whatever became of the last; 0 is as soon as it may."""


class LiveClient:
    """The client, compiled into a directory that also holds what it sends."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._program = compiled("live", directory)

    def run(self, process: Process | None, port: int, watching: Watching, pace: Pace) -> Delivered:
        """Write until everything is written or the seconds are over; everybody has everything on return."""
        saved = self._directory / "watching"
        watching.save(saved)
        counts = [port, len(watching.watchers), pace.writers, pace.writes, pace.window, pace.per_s, pace.seconds]
        client = subprocess.Popen(
            [str(self._program), watching.protocol.value, *map(str, counts), str(saved)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=pinned(client_core()),
        )
        with client:
            try:
                assert client.stdout is not None
                client.stdout.readline()
                began_s = process.busy_s() if process else 0.0
                told, complaint = client.communicate(b"\n", timeout=pace.seconds + SECONDS_MAX)
            finally:
                client.kill()
        if client.returncode:
            raise RuntimeError(f"watching on port {port} ended early: {complaint.decode(errors='replace').strip()}")
        delivered = msgspec.json.decode(told, type=Delivered)
        busy_s = process.busy_s() - began_s if process else 0.0
        return msgspec.structs.replace(delivered, server_busy_s=busy_s)
