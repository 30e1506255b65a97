"""What a record costs in memory: resident memory after so many small records, less what the empty server had.

Mapped files count, though the system may take their pages back at any time. The engine keeps payloads in memory up to a
budget; all that it has beside them has a bar of its own.
"""

from __future__ import annotations

from pathlib import Path

from bench.bodies import DIFFERENT, bodies
from bench.clients.load import Client
from bench.clients.requests import Requests, http_writes, payloads, xadds
from bench.contest import Reading, Side, compete, figures
from bench.figure import Figure, Unit, middle
from bench.peers.process import Process
from bench.peers.redis import STREAM, Appendfsync, Redis
from bench.peers.topics import TOPIC, Topics
from bench.rig import Step
from bench.sizes import Sizes
from topics.model import Durability
from topics.settings import Settings

RECORDS = 100
"""Records in one write."""
CONNECTIONS = 4
REDIS_FACTOR = 1.5
BEYOND_PAYLOAD_BAR = 56


class _Fill:
    def __init__(self, client: Client, records: int) -> None:
        self._client = client
        self._records = records
        self.private: list[float] = []
        """Of our side in each round: the same without mapped files."""

    def _grown(self, process: Process, port: int, requests: Requests) -> Reading:
        before, _ = process.resident_bytes()
        self._client.run(port, requests, CONNECTIONS, count=self._records // RECORDS)
        after, _ = process.resident_bytes()
        return Reading((after - before) / self._records)

    def topics(self, place: Path) -> Reading:
        with Topics(place) as server:
            server.create(Durability.DISK)
            requests = http_writes(TOPIC, DIFFERENT, RECORDS)
            _, private_before = server.process.resident_bytes()
            reading = self._grown(server.process, server.port, requests)
            _, private_after = server.process.resident_bytes()
            self.private.append((private_after - private_before) / self._records)
            return reading

    def redis(self, place: Path) -> Reading:
        with Redis(place, Appendfsync.EVERYSEC) as server:
            return self._grown(server.process, server.port, xadds(STREAM, DIFFERENT, RECORDS))


def _payload_bytes() -> float:
    sizes = [len(data) for body in bodies(DIFFERENT, records=RECORDS) for data in payloads(body)]
    return sum(sizes) / len(sizes)


def run(sizes: Sizes, directory: Path, step: Step) -> list[Figure]:
    fill = _Fill(Client(directory), sizes.memory_records)
    sides = [Side("topics", fill.topics), Side("Redis", fill.redis)]
    outcomes = compete(sides, sizes.rounds, directory, step, f"memory of {sizes.memory_records:,} records")
    name = f"resident memory a record, {sizes.memory_records:,} records"
    found = figures(name, Unit.BYTES_PER_RECORD, outcomes, [REDIS_FACTOR])
    payload_bytes = _payload_bytes()
    budget_bytes = min(payload_bytes, Settings().hot_bytes / sizes.memory_records)
    private_bytes = middle(fill.private)
    beyond = Figure(
        name="the same beyond the payload budget",
        value=max(0.0, outcomes[0].value(Unit.BYTES_PER_RECORD) - budget_bytes),
        unit=Unit.BYTES_PER_RECORD,
        bar=BEYOND_PAYLOAD_BAR,
        note=f"{payload_bytes:.0f} bytes of data a record; {private_bytes:.0f} B of all its memory is not mapped files",
    )
    return [*found, beyond]
