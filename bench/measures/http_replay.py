"""Reading a log from its beginning, 1000 records a call, as a reader that catches up does."""

from __future__ import annotations

from pathlib import Path

from bench.bodies import DIFFERENT
from bench.clients.load import Client
from bench.clients.requests import http_reads, http_writes, xadds, xranges
from bench.contest import Reading, Side, Stopwatch, compete, figures
from bench.figure import Figure, Unit
from bench.peers.redis import STREAM, Appendfsync, Redis
from bench.peers.topics import TOPIC, Topics
from bench.rig import Step
from bench.sizes import BATCH, Sizes
from topics.model import Durability

READERS = 4
"""More than one, so that the server never waits for a client that is taking a page."""
REDIS_FACTOR = 1.5


class _Replay:
    def __init__(self, client: Client, sizes: Sizes) -> None:
        self._client = client
        self._pages = sizes.replay_records // BATCH
        self._seconds = sizes.load_seconds

    def topics(self, place: Path) -> Reading:
        with Topics(place) as server:
            server.create(Durability.DISK)
            self._client.run(server.port, http_writes(TOPIC, DIFFERENT, BATCH), 1, count=self._pages)
            requests = http_reads(TOPIC, self._pages, BATCH)
            with Stopwatch(server.process) as watch:
                load = self._client.run(server.port, requests, READERS, seconds=self._seconds)
            return watch.reading(load.requests_per_s * BATCH, load.seconds)

    def redis(self, place: Path) -> Reading:
        with Redis(place, Appendfsync.EVERYSEC) as server:
            self._client.run(server.port, xadds(STREAM, DIFFERENT, BATCH), 1, count=self._pages)
            requests = xranges(STREAM, server.behind(self._pages, BATCH), BATCH)
            with Stopwatch(server.process) as watch:
                load = self._client.run(server.port, requests, READERS, seconds=self._seconds)
            return watch.reading(load.requests_per_s * BATCH, load.seconds)


def run(sizes: Sizes, directory: Path, step: Step) -> list[Figure]:
    replay = _Replay(Client(directory), sizes)
    name = f"replay, {BATCH} records a call, {READERS} readers"
    sides = [Side("topics", replay.topics), Side(f"Redis XRANGE COUNT {BATCH}", replay.redis)]
    outcomes = compete(sides, sizes.rounds, directory, step, name)
    return figures(name, Unit.RECORDS_PER_S, outcomes, [REDIS_FACTOR])
