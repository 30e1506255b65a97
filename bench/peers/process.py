"""A server as a process of the bench: its core, its port, its log file, its end.

Every server has one core for everything it does, the client has another. With a single core they share it, and the
figures say little.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

from bench.resident import resident_bytes

HOST = "127.0.0.1"
START_SECONDS_MAX = 180.0
STOP_SECONDS_MAX = 30.0
POLL_S = 0.002
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class LeftOut(Exception):
    """A side that cannot take part on this machine, and why."""


def server_core() -> int:
    """The last one: the first is where most interrupts go."""
    return max(os.sched_getaffinity(0))


def client_core() -> int:
    return min(os.sched_getaffinity(0))


def pinned(core: int) -> Callable[[], None]:
    """For a new process, before it runs its program: threads that it starts inherit the core."""
    return lambda: os.sched_setaffinity(0, {core})


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def connected(port: int) -> Iterator[socket.socket]:
    with socket.create_connection((HOST, port), timeout=10) as stream:
        yield stream


class Process:
    """A started server. `kill` is for measuring what comes after; `stop` is how it ends otherwise."""

    def __init__(self, command: Sequence[str], log: Path, user: str | None = None) -> None:
        self._log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                user=user,
                group=user,
                extra_groups=None if user is None else [],
                preexec_fn=pinned(server_core()),
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_until(self, is_ready: Callable[[], bool]) -> None:
        """Ask again and again; a server that is not there yet refuses the connection or hangs up."""
        deadline = monotonic() + START_SECONDS_MAX
        while monotonic() < deadline:
            if self._process.poll() is not None:
                raise LeftOut(f"the server ended by itself: {self._last_words()}")
            try:
                if is_ready():
                    return
            except OSError:
                pass
            sleep(POLL_S)
        raise LeftOut(f"the server was not ready after {START_SECONDS_MAX:.0f} s: {self._last_words()}")

    def _last_words(self) -> str:
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"

    def busy_s(self) -> float:
        """Processor time so far, of the server and its children, those that have ended included."""
        return sum(map(_busy_ticks, self._family())) / _TICKS_PER_S

    def resident_bytes(self) -> tuple[int, int]:
        """All of its memory, and that without mapped files; of the server alone, since a forked child shares it."""
        return resident_bytes(self.pid)

    def _family(self) -> list[int]:
        try:
            children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        except OSError:
            children = []  # Not every kernel tells.
        return [self.pid, *map(int, children)]

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        if self._process.poll() is not None:
            return
        self._process.send_signal(number)
        try:
            self._process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.kill()


def _busy_ticks(pid: int) -> int:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return sum(map(int, fields[11:15]))
