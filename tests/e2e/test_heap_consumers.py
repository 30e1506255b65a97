"""Sixteen consumers of one heap over gRPC, killed at random, and so is the server: each message is acked once.

Each process keeps a ledger that outlives it: a message is `begun` when it comes and `done` when the server has said so.
In the end the server has counted one ack for each message and holds none, none is a dead letter, none stands as done
twice, and those that stand as begun only were begun by a process that was killed, or on a stream that broke.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import topics
from tests.e2e.served import TIMEOUT_S, Served
from topics import errors, sync

ROOT = Path(__file__).parents[2]
PROCESSES = 4
CONSUMERS_EACH = 4
BATCH = 100
LEASE_MS = 1000
LOOK_SECONDS = 0.05
STALLED_SECONDS = 60
"""With nothing done for so long, something is wrong."""


class Fleet:
    def __init__(self, directory: Path, seed: int) -> None:
        self._directory = directory
        self._chance = random.Random(seed)
        self._ledger_count = 0
        self.server = self._serve(0, 0)
        self._port = urlsplit(self.server.url).port or 0
        self._grpc_port = int(self.server.grpc_address.rpartition(":")[2])
        self.processes: list[subprocess.Popen[bytes]] = []

    def _serve(self, port: int, grpc_port: int) -> Served:
        variables = {"TOPICS_NO_GRPC": "0", "TOPICS_GRPC_PORT": str(grpc_port)}
        server = Served(self._directory / "data", variables=variables, port=port)
        server.wait_for("ready")
        return server

    def hire(self) -> None:
        self._ledger_count += 1
        ledger = self._directory / f"ledger-{self._ledger_count}"
        command = [sys.executable, "-m", "tests.e2e.heapconsumer", self.server.grpc_address, str(ledger)]
        with (self._directory / f"said-{self._ledger_count}").open("wb") as said:
            self.processes.append(subprocess.Popen([*command, str(CONSUMERS_EACH)], cwd=ROOT, stderr=said))

    def kill_process(self) -> None:
        victim = self.processes.pop(self._chance.randrange(len(self.processes)))
        victim.kill()
        assert victim.wait(TIMEOUT_S) == -signal.SIGKILL, f"it ended by itself: {self._said()}"
        self.hire()

    def kill_server(self) -> None:
        self.server.kill()
        self.server = self._serve(self._port, self._grpc_port)

    def dismiss(self) -> None:
        """Everybody ends by itself."""
        for process in self.processes:
            process.send_signal(signal.SIGTERM)
        codes = [process.wait(TIMEOUT_S) for process in self.processes]
        assert codes == [0] * len(self.processes), self._said()

    def _said(self) -> str:
        """What those who did not end well had to say."""
        return "\n".join(path.read_text() for path in self._directory.glob("said-*"))

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait(TIMEOUT_S)
        self.server.kill()

    def ledger(self) -> dict[str, Counter[int]]:
        """How often each message was begun, and how often it is done."""
        found: dict[str, Counter[int]] = {"begun": Counter(), "done": Counter()}
        for path in self._directory.glob("ledger-*"):
            for line in path.read_text().splitlines():
                what, number, *_ = line.split()
                found[what][int(number)] += 1
        return found


@pytest.mark.parametrize(
    ("message_count", "kills"),
    [(2_000, 2), pytest.param(20_000, 12, marks=pytest.mark.soak)],
)
def test_each_message_is_acked_once_whoever_dies(tmp_path: Path, message_count: int, kills: int) -> None:
    fleet = Fleet(tmp_path, seed=11)
    try:
        with sync.connect(fleet.server.url) as client:
            heap = client.heap("jobs")
            heap.create(partitions=4, lease_ms=LEASE_MS, max_retries=1000)
            for _ in range(PROCESSES):
                fleet.hire()
            between = message_count // BATCH // kills
            for batch in range(message_count // BATCH):
                first = batch * BATCH
                messages = [{"payload": number, "priority": number % 7} for number in range(first, first + BATCH)]
                heap.enqueue_many(messages, transaction_id=f"batch-{batch}")
                if batch % between == between // 2:
                    fleet.kill_process()
                if batch % between == between - 1:
                    fleet.kill_server()
            stats = finished(heap)
        fleet.dismiss()
    finally:
        fleet.close()
    assert (stats.total_enqueues, stats.total_acks, stats.dlq_messages) == (message_count,) * 2 + (0,)
    ledger = fleet.ledger()
    assert set(ledger["begun"]) == set(range(message_count)), "each came to somebody"
    assert max(ledger["done"].values()) == 1, "nobody was told twice that it is done"
    unanswered = message_count - len(ledger["done"])
    assert unanswered <= kills * 2 * PROCESSES * CONSUMERS_EACH * 10, "only what was under way when somebody died"


def finished(heap: sync.Heap) -> topics.HeapStats:
    """The numbers of a heap in which nothing is left, as soon as that is so."""
    acks, since = -1, time.monotonic()
    while True:
        try:
            stats = heap.stats()
        except errors.Unavailable:
            stats = None
        if stats is not None:
            if not stats.total_messages:
                return stats
            if stats.total_acks != acks:
                acks, since = stats.total_acks, time.monotonic()
        assert time.monotonic() - since < STALLED_SECONDS, stats
        time.sleep(LOOK_SECONDS)
