"""The sides of a contest in doing jobs: a fresh server, a queue with so many jobs, and workers until all are done."""

from __future__ import annotations

from pathlib import Path

from bench.bodies import DIFFERENT, bodies
from bench.clients.jobs import JobProtocol, Workers
from bench.clients.load import Client
from bench.clients.requests import http_writes, jetstream_publishes, payloads, xadds
from bench.contest import Reading, Side, Stopwatch
from bench.peers.beanstalkd import Beanstalkd
from bench.peers.nats import SUBJECT, Nats
from bench.peers.postgres import Postgres
from bench.peers.process import Process
from bench.peers.redis import STREAM, Appendfsync, Redis
from bench.peers.topics import TOPIC, Topics
from bench.sizes import BATCH

FILLERS = 1


class Workforce:
    def __init__(self, client: Client, workers: Workers, jobs: int) -> None:
        self._client = client
        self._workers = workers
        self._jobs = jobs

    def sides(self) -> list[Side]:
        """Ours first."""
        return [
            Side("topics", self._topics),
            Side("Redis XREADGROUP, XACK", self._redis),
            Side("NATS JetStream work queue", self._nats),
            Side("beanstalkd, binlog", self._beanstalkd),
            Side("PostgreSQL SKIP LOCKED", self._postgres),
        ]

    def _done(self, protocol: JobProtocol, process: Process, port: int, queue: str) -> Reading:
        with Stopwatch(process) as watch:
            done = self._workers.run(protocol, port, self._jobs, queue)
        return watch.reading(done.jobs_per_s, done.seconds)

    def _topics(self, place: Path) -> Reading:
        with Topics(place) as server:
            server.create_queue()
            self._client.run(server.port, http_writes(TOPIC, DIFFERENT, BATCH), FILLERS, count=self._jobs // BATCH)
            return self._done(JobProtocol.HTTP, server.process, server.port, TOPIC)

    def _redis(self, place: Path) -> Reading:
        with Redis(place, Appendfsync.EVERYSEC) as server:
            self._client.run(server.port, xadds(STREAM, DIFFERENT, BATCH), FILLERS, count=self._jobs // BATCH)
            server.ask(b"XGROUP", b"CREATE", STREAM, b"workers", b"0")
            return self._done(JobProtocol.RESP, server.process, server.port, STREAM.decode())

    def _nats(self, place: Path) -> Reading:
        with Nats(place, "workqueue") as server:
            server.add_consumer("workers")
            publishes = jetstream_publishes(SUBJECT, DIFFERENT, BATCH)
            self._client.run(server.port, publishes, FILLERS, count=self._jobs // BATCH)
            return self._done(JobProtocol.NATS, server.process, server.port, SUBJECT.decode())

    def _beanstalkd(self, place: Path) -> Reading:
        with Beanstalkd(place) as server:
            server.fill([data for body in bodies(DIFFERENT) for data in payloads(body)], self._jobs)
            return self._done(JobProtocol.BEANSTALK, server.process, server.port, "default")

    def _postgres(self, place: Path) -> Reading:
        with Postgres(place, "synchronous_commit=off") as server:
            server.fill_jobs(self._jobs)
            with Stopwatch(server.process) as watch:
                done = server.do_jobs(self._workers.workers, self._workers.batch, self._jobs)
            return watch.reading(done.rows_per_s, done.seconds)
