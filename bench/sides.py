"""The sides of a contest under write load: a fresh server, so many connections, so many seconds."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from bench.bodies import DIFFERENT
from bench.clients.load import Client
from bench.clients.requests import Requests, http_writes, jetstream_publishes, xadds
from bench.contest import Reading, Side, Stopwatch
from bench.peers.nats import SUBJECT, Nats
from bench.peers.postgres import Postgres
from bench.peers.process import Process
from bench.peers.redis import STREAM, Appendfsync, Redis
from bench.peers.topics import TOPIC, Topics
from topics.model import Durability


class WriteLoad:
    """What each side is put under."""

    def __init__(self, client: Client, connections: int, records: int, seconds: float) -> None:
        self._client = client
        self._connections = connections
        self._records = records
        self._seconds = seconds

    def topics(self, durability: Durability) -> Side:
        return Side(f"topics {durability}", partial(self._topics, durability))

    def redis(self, appendfsync: Appendfsync) -> Side:
        return Side(f"Redis, appendfsync {appendfsync}", partial(self._redis, appendfsync))

    def nats(self) -> Side:
        return Side("NATS JetStream", self._nats)

    def postgres(self) -> Side:
        """Its own client sends one row at a time."""
        assert self._records == 1
        return Side("PostgreSQL", self._postgres)

    def _rate(self, process: Process, port: int, requests: Requests) -> Reading:
        with Stopwatch(process) as watch:
            load = self._client.run(port, requests, self._connections, seconds=self._seconds)
        return watch.reading(load.requests_per_s * requests.records, load.seconds)

    def _topics(self, durability: Durability, place: Path) -> Reading:
        with Topics(place) as server:
            server.create(durability)
            return self._rate(server.process, server.port, http_writes(TOPIC, DIFFERENT, self._records))

    def _redis(self, appendfsync: Appendfsync, place: Path) -> Reading:
        with Redis(place, appendfsync) as server:
            return self._rate(server.process, server.port, xadds(STREAM, DIFFERENT, self._records))

    def _nats(self, place: Path) -> Reading:
        with Nats(place) as server:
            return self._rate(server.process, server.port, jetstream_publishes(SUBJECT, DIFFERENT, self._records))

    def _postgres(self, place: Path) -> Reading:
        with Postgres(place) as server:
            with Stopwatch(server.process) as watch:
                done = server.insert(self._connections, self._seconds)
            return watch.reading(done.rows_per_s, done.seconds)
