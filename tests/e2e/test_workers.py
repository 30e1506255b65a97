"""Many worker processes on one queue, killed at random, and so is the server: no job is lost, and none is done twice
but where a lease had run out.

Each worker keeps a ledger that outlives it. In the end every job that was put stands there as done; and whenever a job
was begun again, the lease under which it was begun before had run out by then.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.e2e.served import TIMEOUT_S, Served
from topics import errors, sync

ROOT = Path(__file__).parents[2]
BATCH = 500
LOOK_SECONDS = 0.05
STALLED_SECONDS = 60
"""With nothing done for so long, something is wrong."""


class Fleet:
    """The server and its workers, each of which may be replaced at any time."""

    def __init__(self, directory: Path, worker_count: int, seed: int) -> None:
        self._directory = directory
        self._chance = random.Random(seed)
        self._ledger_count = 0
        self.server = self._serve(0)
        self.port = urlsplit(self.server.url).port or 0
        with sync.connect(self.server.url) as client:
            client.queue("jobs").create()
        self.workers = [self._hire() for _ in range(worker_count)]

    def _serve(self, port: int) -> Served:
        server = Served(self._directory / "data", port=port)
        server.wait_for("ready")
        return server

    def _hire(self) -> subprocess.Popen[bytes]:
        self._ledger_count += 1
        ledger = self._directory / f"ledger-{self._ledger_count}"
        with (self._directory / f"said-{self._ledger_count}").open("wb") as said:
            command = [sys.executable, "-m", "tests.e2e.worker", self.server.url, str(ledger)]
            return subprocess.Popen(command, cwd=ROOT, stderr=said)

    def kill_worker(self) -> None:
        at = self._chance.randrange(len(self.workers))
        self.workers[at].kill()
        assert self.workers[at].wait(TIMEOUT_S) == -signal.SIGKILL, "it ended by itself"
        self.workers[at] = self._hire()

    def kill_server(self) -> None:
        self.server.kill()
        time.sleep(self._chance.uniform(0, 0.5))
        self.server = self._serve(self.port)

    def dismiss(self) -> None:
        """Everybody ends by itself."""
        for worker in self.workers:
            worker.send_signal(signal.SIGTERM)
        codes = [worker.wait(TIMEOUT_S) for worker in self.workers]
        said = "".join(path.read_text() for path in sorted(self._directory.glob("said-*")))
        assert codes == [0] * len(self.workers), said

    def close(self) -> None:
        for worker in self.workers:
            worker.kill()
            worker.wait(TIMEOUT_S)
        self.server.kill()

    def ledger(self) -> dict[int, list[tuple[int, str, int, int]]]:
        """By seq: (delivery, what, when, deadline), in order."""
        found: dict[int, list[tuple[int, str, int, int]]] = defaultdict(list)
        for path in self._directory.glob("ledger-*"):
            for line in path.read_text().splitlines():
                what, seq, delivery, when_ms, deadline_ms = line.split()
                found[int(seq)].append((int(delivery), what, int(when_ms), int(deadline_ms)))
        return {seq: sorted(entries) for seq, entries in found.items()}


@contextmanager
def fleet(directory: Path, worker_count: int, seed: int) -> Iterator[Fleet]:
    made = Fleet(directory, worker_count, seed)
    try:
        yield made
    finally:
        made.close()


def left(client: sync.Client) -> int:
    """Jobs that are not done."""
    while True:
        try:
            return client.topic("jobs").state().count
        except (errors.ConnectionFailed, errors.Unavailable):
            time.sleep(LOOK_SECONDS)


def run_jobs(directory: Path, worker_count: int, job_count: int, kills: int, server_kills: int, seed: int) -> None:
    """Kills are spread over the time in which jobs are done."""
    chance = random.Random(seed)
    events = ["worker"] * kills + ["server"] * server_kills
    chance.shuffle(events)
    event_count = len(events)
    with fleet(directory, worker_count, seed) as all_of_them, sync.connect(all_of_them.server.url) as client:
        for first in range(0, job_count, BATCH):
            many = range(first, min(first + BATCH, job_count))
            client.queue("jobs").put_many(({"data": number} for number in many), idempotency_key=f"from {first}")
        last_left, last_change_s = job_count, time.monotonic()
        while (remaining := left(client)) or events:
            while events and remaining <= job_count * len(events) / (event_count + 1):
                all_of_them.kill_worker() if events.pop() == "worker" else all_of_them.kill_server()
            if remaining != last_left:
                last_left, last_change_s = remaining, time.monotonic()
            assert time.monotonic() - last_change_s < STALLED_SECONDS, f"{remaining} jobs are left, and nobody does any"
            time.sleep(LOOK_SECONDS)
        all_of_them.dismiss()
        check(all_of_them.ledger(), client)


def check(ledger: dict[int, list[tuple[int, str, int, int]]], client: sync.Client) -> None:
    state = client.topic("jobs").state()
    done = {seq for seq, entries in ledger.items() if any(what == "done" for _, what, _, _ in entries)}
    assert done == set(range(1, state.head_seq + 1)), "each job is done, and no other"
    early = []
    for seq, entries in ledger.items():
        begun = [
            (delivery, when_ms, deadline_ms) for delivery, what, when_ms, deadline_ms in entries if what == "begun"
        ]
        assert len({delivery for delivery, _, _ in begun}) == len(begun), f"{seq} was delivered twice as the same"
        early += [seq for (_, _, ends_ms), (_, again_ms, _) in pairwise(begun) if again_ms <= ends_ms]
    assert not early, "begun again while the lease of before was alive"


def test_workers_and_server_are_killed_and_every_job_is_done(tmp_path: Path) -> None:
    run_jobs(tmp_path, worker_count=4, job_count=1500, kills=3, server_kills=1, seed=6)


@pytest.mark.soak
def test_sixteen_workers_twenty_thousand_jobs(tmp_path: Path) -> None:
    run_jobs(tmp_path, worker_count=16, job_count=20_000, kills=40, server_kills=6, seed=16)
