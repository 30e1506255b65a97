"""Crowds that come and go, at a real server: everybody gets everything, and the process is afterwards as it was before.

The number of tasks and objects is looked at from inside, in `tests/contract/test_watch_crowd.py`; here it is what the
system sees: sockets, threads and memory. Files are the log's own, and come with its age.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep
from typing import NamedTuple

import pytest

from bench.resident import resident_bytes
from tests.contract import audience
from tests.e2e.served import Caller, Served, served
from topics.limits import MIB

LONG_S = 300.0
"""How long to wait for what must come: a failure, not a duration."""
GROWTH_BYTES_MAX = 12 * MIB
"""What three more crowds may add to the memory that the first one left behind: less than 1 KiB a watcher."""
POOL_THREADS_MAX = 3
"""A pool begins a thread when there are two things for it at once, and keeps it: fewer than there are crowds."""

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="sockets are counted in /proc"),
]


class Held(NamedTuple):
    sockets: int
    threads: int
    private_bytes: int


def held(server: Served) -> Held:
    process = Path(f"/proc/{server.process.pid}")
    _, private_bytes = resident_bytes(server.process.pid)
    sockets = sum(path.is_socket() for path in (process / "fd").iterdir())
    return Held(sockets, len(list((process / "task").iterdir())), private_bytes)


def await_quiet(caller: Caller) -> None:
    """Until the server knows that everybody has left, and no session waits for its client to come back."""
    deadline = monotonic() + LONG_S
    while metric(caller, "topics_sse_connections") or metric(caller, "topics_watch_sessions"):
        assert monotonic() < deadline, "somebody is still counted"
        # Whoever asks for a session makes those go that are over.
        assert caller.ask("GET", "/v0/watch/wid_of-nobody")[0] == 404
        sleep(0.01)


def metric(caller: Caller, name: str) -> float:
    status, text = caller.ask("GET", "/v0/metrics")
    assert status == 200
    return next(float(line.split()[1]) for line in text.splitlines() if line.startswith(f"{name} "))


def test_five_thousand_watchers_come_and_go(tmp_path: Path) -> None:
    count, records = 5000, 20
    flags = ("--max-watch-sessions", "0", "--watch-session-ttl-ms", "5000")
    with served(tmp_path / "data", *flags) as server, server.connect() as caller:
        caller.ask("GET", "/v0/health")
        before = held(server)
        left: list[Held] = []
        for number in range(4):
            crowd(caller, f"news-{number}", count, records)
            await_quiet(caller)
            left.append(held(server))
        assert {each.sockets for each in left} == {before.sockets}
        assert max(each.threads for each in left) <= before.threads + POOL_THREADS_MAX
        grown_bytes = left[-1].private_bytes - left[0].private_bytes
        assert grown_bytes <= GROWTH_BYTES_MAX, [each.private_bytes // MIB for each in (before, *left)]


def crowd(caller: Caller, topic: str, count: int, records: int) -> None:
    assert caller.ask("PUT", f"/v0/topics/{topic}")[0] == 201
    numbers = map(str, (caller.address[1], count, records))
    arguments = [sys.executable, str(audience.__file__), *numbers, topic]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        assert metric(caller, "topics_sse_connections") == count
        for number in range(records):
            written = {"disable_backpressure": True, "records": [{"data": number}]}
            assert caller.ask("POST", f"/v0/topics/{topic}", written)[0] == 200
        assert process.stdout.readline() == f"heard {count}\n"
    assert process.returncode == 0
