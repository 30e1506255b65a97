"""Redis: a stream, with its append-only file on.

Its defaults otherwise, but for the snapshots beside the append-only file, which are off: they would only slow it down.
"""

from __future__ import annotations

import shutil
import subprocess
from enum import StrEnum
from pathlib import Path

from bench.clients.requests import resp
from bench.peers.process import HOST, LeftOut, Process, connected, free_port

STREAM = b"orders"


class Appendfsync(StrEnum):
    EVERYSEC = "everysec"
    """Like the class `disk`: an ack is in the operating system's hands, and synced a little later."""
    ALWAYS = "always"
    """Like the class `fsync`: an ack is on disk."""


def program() -> str:
    found = shutil.which("redis-server")
    if found is None:
        raise LeftOut("redis-server is not installed (Debian: apt install redis-server)")
    return found


def version() -> str:
    told = subprocess.run([program(), "--version"], capture_output=True, text=True, check=True, timeout=10).stdout
    return next((word[2:] for word in told.split() if word.startswith("v=")), "unknown")


class Redis:
    def __init__(self, directory: Path, appendfsync: Appendfsync) -> None:
        """Start on a directory, which may hold data; ready on return."""
        directory.mkdir(parents=True, exist_ok=True)
        self.name = f"Redis XADD, appendfsync {appendfsync}"
        self.port = free_port()
        settings = {
            "bind": HOST,
            "port": str(self.port),
            "dir": str(directory),
            "save": "",
            "appendonly": "yes",
            "appendfsync": appendfsync.value,
        }
        words = [word for key, value in settings.items() for word in (f"--{key}", value)]
        self.process = Process([program(), *words], directory.parent / f"{directory.name}.log")
        try:
            self.process.wait_until(self._is_ready)
        except BaseException:
            self.process.kill()
            raise

    def _is_ready(self) -> bool:
        return self.ask(b"PING").startswith(b"+PONG")

    def ask(self, *words: bytes) -> bytes:
        """The reply to a command, or its beginning."""
        with connected(self.port) as stream:
            stream.sendall(resp(*words))
            return stream.recv(1 << 16)

    def behind(self, pages: int, page: int) -> list[bytes]:
        """Where each page of the stream begins: `-`, then the last entry of the page before it."""
        starts = [b"-"]
        script = b"local r = redis.call('XRANGE', KEYS[1], ARGV[1], '+', 'COUNT', ARGV[2]) return r[#r][1]"
        for _ in range(pages - 1):
            start = starts[-1] if starts[-1] == b"-" else b"(" + starts[-1]
            reply = self.ask(b"EVAL", script, b"1", STREAM, start, b"%d" % page)
            if not reply.startswith(b"$"):
                raise RuntimeError(f"the stream is shorter than it was filled: {reply!r}")
            starts.append(reply.split(b"\r\n")[1])
        return starts

    def __enter__(self) -> Redis:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.stop()
