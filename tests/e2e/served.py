"""`topics serve` as a process of its own, and somebody who talks to it."""

from __future__ import annotations

import http.client
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import environ
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from topics.settings import TABLE

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 60
"""Nothing here takes long; a test that hangs fails."""
DEFAULTS = {"TOPICS_NO_GRPC": "1", "TOPICS_THROTTLE_LAG_MS": "0", "PYTHONWARNINGS": "error", "PYTHONDEVMODE": ""}
"""A machine that is busy with something else looks like a loop that is late, which would be throttled."""


class Served:
    def __init__(
        self,
        directory: Path,
        *flags: str,
        variables: dict[str, str] | None = None,
        prefix: Sequence[str] = (),
        port: int = 0,
    ) -> None:
        ours = {row.variable for row in TABLE}
        inherited = {name: value for name, value in environ.items() if name not in ours}
        self.process = subprocess.Popen(
            [*prefix, sys.executable, "-m", "topics", "serve", f"--port={port}", f"--data-dir={directory}", *flags],
            cwd=ROOT,
            env=inherited | DEFAULTS | (variables or {}),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.said: list[dict[str, Any]] = []
        """Its log so far."""
        self.url = self.grpc_address = ""
        self._unread = b""
        """Of its log: the beginning of the next line, and what came with it."""

    def wait_for(self, event: str, timeout_s: float = TIMEOUT_S) -> dict[str, Any]:
        """Its next log line of this event. When none comes, whatever it did instead, the error says what did."""
        deadline = time.monotonic() + timeout_s
        while (line := self._next_line(deadline)) is not None:
            if not line.startswith("{"):
                raise AssertionError(f"it said what is no log line:\n{line}{self._last_words()}")
            said = json.loads(line)
            self.said.append(said)
            if said["event"] == "listening":
                self.url, self.grpc_address = said["url"], said["grpc"]
            if said["event"] == event:
                return said
        in_time = time.monotonic() < deadline
        how = f"ended with {self.process.wait(TIMEOUT_S)}" if in_time else f"took longer than {timeout_s} s"
        raise AssertionError(f"it {how} before it said {event}: {self.said}\n{self._last_words()}")

    def _next_line(self, deadline: float) -> str | None:
        """Of its log, or None at its end or when the time is over."""
        assert self.process.stderr is not None
        while b"\n" not in self._unread:
            ready, _, _ = select.select([self.process.stderr], [], [], max(0, deadline - time.monotonic()))
            piece = os.read(self.process.stderr.fileno(), 65536) if ready else b""
            if not piece:
                return None
            self._unread += piece
        line, end, self._unread = self._unread.partition(b"\n")
        return (line + end).decode()

    def _last_words(self) -> str:
        """What it has still to say, and its end."""
        self.process.kill()
        return self._rest()

    def _rest(self) -> str:
        out, errors = self.process.communicate(timeout=TIMEOUT_S)
        assert out == ""
        rest, self._unread = self._unread.decode() + (errors or ""), b""
        return rest

    def connect(self) -> Caller:
        return Caller(self.url)

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.ended()

    def kill(self) -> None:
        """Whatever it is doing."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate(timeout=TIMEOUT_S)

    def ended(self) -> int:
        """Its exit code; what it said until then is in `said`."""
        self.said += [json.loads(line) for line in self._rest().splitlines() if line.startswith("{")]
        return self.process.returncode


@contextmanager
def served(
    directory: Path,
    *flags: str,
    variables: dict[str, str] | None = None,
    prefix: Sequence[str] = (),
    port: int = 0,
) -> Iterator[Served]:
    """A server that is ready, and gone behind the block. `prefix` goes before its command line."""
    server = Served(directory, *flags, variables=variables, prefix=prefix, port=port)
    try:
        server.wait_for("ready")
        yield server
    finally:
        server.kill()


def refusal(directory: Path, *flags: str) -> tuple[int, str]:
    """Exit code and last words of a server that cannot start."""
    server = Served(directory, *flags)
    try:
        errors = server.process.communicate(timeout=TIMEOUT_S)[1]
    finally:
        server.kill()
    return server.process.returncode, errors


class Caller:
    """One keep-alive connection."""

    def __init__(self, url: str, key: str | None = None) -> None:
        self.address = (urlsplit(url).hostname or "", urlsplit(url).port or 0)
        self._connection = http.client.HTTPConnection(*self.address, timeout=TIMEOUT_S)
        self._headers = {} if key is None else {"authorization": f"Bearer {key}"}

    def send(self, method: str, path: str, body: object = None) -> None:
        """Ask, and do not wait."""
        headers = dict(self._headers)
        if body is not None:
            headers["content-type"] = "application/json"
        self._connection.request(method, path, None if body is None else json.dumps(body), headers)

    def answer(self) -> tuple[int, Any]:
        response = self._connection.getresponse()
        text = response.read().decode()
        self.headers = response.headers
        return response.status, json.loads(text) if text.startswith(("{", "[")) else text

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        self.send(method, path, body)
        return self.answer()

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Caller:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
