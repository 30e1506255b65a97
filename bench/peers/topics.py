"""Our side: `topics serve` with its defaults where a measure does not say otherwise, and without keys."""

from __future__ import annotations

import sys
from compileall import compile_dir
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import msgspec

import topics
from bench.clients.requests import http
from bench.peers.process import HOST, Process, connected, free_port
from topics.model import Durability

TOPIC = "orders"


class Topics:
    name = "topics"

    def __init__(self, directory: Path, *flags: str) -> None:
        """Start on a directory, which may hold data; ready on return."""
        directory.mkdir(parents=True, exist_ok=True)
        # An installed package has its bytecode. A source tree writes it when it first runs, unless it is told not to.
        compile_dir(Path(topics.__file__).parent, quiet=1)
        self.port = free_port()
        command = [sys.executable, "-m", "topics", "serve", "--port", str(self.port), "--data-dir", str(directory)]
        command += ["--no-grpc"] if not any(flag.startswith("--grpc") for flag in flags) else []
        self.process = Process([*command, "--log-level", "warning", *flags], directory.parent / f"{directory.name}.log")
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

    def create_queue(self) -> None:
        status = self._status("PUT", f"/v0/topics/{TOPIC}", b'{"type":"queue"}')
        if status not in (200, 201):
            raise RuntimeError(f"creating the queue {TOPIC} was answered with {status}, expected 200 or 201")

    def create_heap(self, name: str, partitions: int) -> None:
        body = b'{"topic":"%b","partitions":%d}' % (name.encode(), partitions)
        if (status := self._status("POST", "/v1/heaps", body)) != 201:
            raise RuntimeError(f"making the heap {name} was answered with {status}, expected 201")

    def watch(self, count: int) -> list[str]:
        """The addresses of so many event streams, each of a watch session of its own."""
        body = msgspec.json.encode({"topics": {TOPIC: {}}})
        caller = HTTPConnection(HOST, self.port, timeout=10)
        paths = []
        with closing(caller):
            for _ in range(count):
                caller.request("POST", "/v0/watch", body, {"Content-Type": "application/json"})
                paths.append(msgspec.json.decode(caller.getresponse().read())["stream_url"])
        return paths

    def __enter__(self) -> Topics:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.stop()
