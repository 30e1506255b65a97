"""Our side: `topics serve` with its defaults, and without keys."""

from __future__ import annotations

import sys
from compileall import compile_dir
from pathlib import Path

import topics
from bench.clients.requests import http
from bench.peers.process import Process, connected, free_port
from topics.model import Durability

TOPIC = "orders"


class Topics:
    name = "topics"

    def __init__(self, directory: Path) -> None:
        """Start on a directory, which may hold data; ready on return."""
        directory.mkdir(parents=True, exist_ok=True)
        # An installed package has its bytecode. A source tree writes it when it first runs, unless it is told not to.
        compile_dir(Path(topics.__file__).parent, quiet=1)
        self.port = free_port()
        command = [sys.executable, "-m", "topics", "serve", "--port", str(self.port), "--data-dir", str(directory)]
        self.process = Process([*command, "--log-level", "warning"], directory.parent / f"{directory.name}.log")
        try:
            self.process.wait_until(self._is_ready)
        except BaseException:
            self.process.kill()
            raise

    def _is_ready(self) -> bool:
        return self._status("GET", "/v0/ready") == 200

    def _status(self, method: str, path: str, body: bytes = b"") -> int:
        with connected(self.port) as stream:
            stream.sendall(http(method, path, body))
            return int(stream.recv(4096)[9:12] or 0)

    def create(self, durability: Durability) -> None:
        status = self._status("PUT", f"/v0/topics/{TOPIC}", b'{"durability":"%b"}' % durability.value.encode())
        if status not in (200, 201):
            raise RuntimeError(f"creating {TOPIC} was answered with {status}, expected 200 or 201")

    def __enter__(self) -> Topics:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.stop()
