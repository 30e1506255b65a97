"""What a job costs in a long queue, beside what it costs in a short one: processor time, and memory.

The long queue has so many jobs that are ready and so many that are leased. Processor time is all that the server uses
while workers claim and complete jobs, by the job; the memory of a lease is what the server grew by as they were leased.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from bench.bodies import DIFFERENT
from bench.clients.jobs import JobProtocol, Workers
from bench.clients.load import Client
from bench.clients.requests import Protocol, Requests, http, http_writes
from bench.figure import Figure, Unit, middle
from bench.measures.queues import BATCH as CLAIMED
from bench.measures.queues import WORKERS
from bench.peers.topics import TOPIC, Topics
from bench.rig import Step
from bench.sizes import BATCH, Sizes

FLAT_FACTOR = 1.25
LEASE_BAR = 160
DAY_MS = 86_400_000


class _Cost(NamedTuple):
    processor_us: float
    """A job, claimed and completed."""
    ready_bytes: float
    """Resident memory a job that is ready."""
    lease_bytes: float
    """Memory without mapped files that a lease adds."""


class _Queue:
    def __init__(self, client: Client, workers: Workers, done: int) -> None:
        self._client = client
        self._workers = workers
        self._done = done

    def cost(self, place: Path, ready: int, leased: int) -> _Cost:
        with Topics(place) as server:
            server.create_queue()
            process = server.process
            empty_bytes, _ = process.resident_bytes()
            filled = ready + leased + self._done
            self._client.run(server.port, http_writes(TOPIC, DIFFERENT, BATCH), 1, count=filled // BATCH)
            full_bytes, before_bytes = process.resident_bytes()
            if leased:
                body = b'{"node":"holder","max":%d,"lease_ms":%d}' % (BATCH, DAY_MS)
                claims = Requests(protocol=Protocol.HTTP, sent=[http("POST", f"/v0/topics/{TOPIC}/claim", body)])
                self._client.run(server.port, claims, 1, count=leased // BATCH)
            _, after_bytes = process.resident_bytes()
            began_s = process.busy_s()
            self._workers.run(JobProtocol.HTTP, server.port, self._done, TOPIC)
            busy_s = process.busy_s() - began_s
        lease_bytes = (after_bytes - before_bytes) / leased if leased else 0.0
        return _Cost(busy_s / self._done * 1e6, (full_bytes - empty_bytes) / filled, lease_bytes)


def run(sizes: Sizes, directory: Path, step: Step) -> list[Figure]:
    queue = _Queue(Client(directory), Workers(directory, WORKERS, CLAIMED), sizes.queue_short)
    short: list[_Cost] = []
    long: list[_Cost] = []
    for number in range(1, sizes.rounds + 1):
        step(f"a short queue, round {number}")
        short.append(queue.cost(directory / f"short-{number}", 0, 0))
        step(f"a long queue, round {number}")
        long.append(queue.cost(directory / f"long-{number}", sizes.queue_ready, sizes.queue_leased))
    what = f"{sizes.queue_ready:,} ready, {sizes.queue_leased:,} leased"
    return [
        Figure(
            name=f"processor time of a job, {what}",
            value=middle([cost.processor_us for cost in long]),
            unit=Unit.US,
            peer=middle([cost.processor_us for cost in short]),
            peer_name=f"the same with {sizes.queue_short:,} ready, none leased",
            factor=FLAT_FACTOR,
        ),
        Figure(
            name=f"memory of a lease, {what}",
            value=middle([cost.lease_bytes for cost in long]),
            unit=Unit.BYTES_PER_RECORD,
            bar=LEASE_BAR,
        ),
        Figure(
            name=f"resident memory of a job that is ready, {what}",
            value=middle([cost.ready_bytes for cost in long]),
            unit=Unit.BYTES_PER_RECORD,
            note="its record, of which payloads are kept in memory up to a budget",
        ),
    ]
