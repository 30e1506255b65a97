"""A heap: messages enqueued with a priority, popped best first, and acked, over `/v1` and over gRPC.

Ours and beanstalkd with `-f0` sync before they answer, as does Redis with `appendfsync always`; the others stand beside
them for what a sync costs. In Redis a heap with leases is a sorted set of ids, a hash of payloads and a sorted set of
what is out, moved by a script; ZPOPMIN alone forgets what it hands out.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from bench.bodies import DIFFERENT, bodies
from bench.clients import heappace, heapwork
from bench.clients.jobs import JobProtocol, Workers
from bench.clients.load import Client
from bench.clients.requests import Protocol, Requests, http, payloads, zadds, zpops
from bench.contest import Reading, Side, Stopwatch, compete, figures
from bench.figure import Figure, Unit, best, middle
from bench.peers.beanstalkd import Beanstalkd
from bench.peers.process import free_port
from bench.peers.redis import Appendfsync, Redis
from bench.peers.topics import Topics
from bench.rig import Step
from bench.sizes import BATCH, Sizes

HEAP = heapwork.HEAP
CONSUMERS = 8
POPPED = 50
"""Messages in one pop over `/v1`."""
WRITERS = 4
PARTITIONS_PACED = 20
PACED = 5000
V1_BAR = 100_000.0
BATCH_BAR = 20_000.0
WORK_BAR = 15_000.0
ENQUEUE_P95_BAR_MS = 20.0
POP_P95_BAR_MS = 50.0


class Served:
    """A server with an empty heap."""

    def __init__(self, place: Path, partitions: int = 1) -> None:
        self.grpc_port = free_port()
        self.server = Topics(place, "--grpc-port", str(self.grpc_port))
        self.endpoint = f"127.0.0.1:{self.grpc_port}"
        self.server.create_heap(HEAP, partitions)

    def __enter__(self) -> Served:
        return self

    def __exit__(self, *_: object) -> None:
        self.server.process.stop()


class _Work:
    def __init__(self, directory: Path, sizes: Sizes) -> None:
        self._client = Client(directory)
        self._workers = Workers(directory, CONSUMERS, POPPED)
        self._sizes = sizes
        self._count = sizes.queue_short // (POPPED * CONSUMERS) * POPPED * CONSUMERS

    def _filled(self, served: Served) -> None:
        self._client.run(served.server.port, heap_batches(), 1, count=-(-self._count // BATCH))

    # ---- ours

    def enqueue_v1(self, place: Path) -> Reading:
        with Served(place) as served:
            with Stopwatch(served.server.process) as watch:
                load = self._client.run(served.server.port, heap_batches(), WRITERS, seconds=self._sizes.load_seconds)
            return watch.reading(load.requests_per_s * BATCH, load.seconds)

    def enqueue_grpc(self, place: Path) -> Reading:
        with Served(place) as served:
            with Stopwatch(served.server.process) as watch:
                done = heapwork.run(served.endpoint, "enqueue", self._count)
            return watch.reading(done.messages_per_s, done.seconds)

    def pop_v1(self, place: Path) -> Reading:
        with Served(place) as served:
            self._filled(served)
            with Stopwatch(served.server.process) as watch:
                done = self._workers.run(JobProtocol.HEAP, served.server.port, self._count, HEAP)
            return watch.reading(done.jobs_per_s, done.seconds)

    def pop_grpc(self, place: Path) -> Reading:
        with Served(place) as served:
            self._filled(served)
            with Stopwatch(served.server.process) as watch:
                done = heapwork.run(served.endpoint, "work", self._count)
            return watch.reading(done.messages_per_s, done.seconds)

    def paced(self, over: str, place: Path) -> heappace.Paced:
        with Served(place, PARTITIONS_PACED) as served:
            address = served.endpoint if over == "grpc" else f"127.0.0.1:{served.server.port}"
            return heappace.run(over, address, min(PACED, self._count))

    # ---- theirs

    def redis_leases(self, place: Path) -> Reading:
        with Redis(place, Appendfsync.ALWAYS) as server:
            self._client.run(server.port, zadds(HEAP.encode(), self._count, BATCH), 1, count=self._count // BATCH)
            with Stopwatch(server.process) as watch:
                done = self._workers.run(JobProtocol.ZSET, server.port, self._count, HEAP)
            return watch.reading(done.jobs_per_s, done.seconds)

    def redis_pops(self, place: Path) -> Reading:
        with Redis(place, Appendfsync.EVERYSEC) as server:
            self._client.run(server.port, zadds(HEAP.encode(), self._count, BATCH), 1, count=self._count // BATCH)
            pops = zpops(HEAP.encode(), POPPED)
            with Stopwatch(server.process) as watch:
                load = self._client.run(server.port, pops, CONSUMERS, count=self._count // POPPED)
            return watch.reading(load.requests_per_s * POPPED, load.seconds)

    def beanstalkd(self, is_synced: bool, place: Path) -> Reading:
        datas = [data for body in bodies(DIFFERENT) for data in payloads(body)]
        with Beanstalkd(place, *(["-f0"] if is_synced else [])) as server:
            server.fill(datas, self._count, heapwork.PRIORITIES)
            with Stopwatch(server.process) as watch:
                done = self._workers.run(JobProtocol.BEANSTALK, server.port, self._count, "default")
            return watch.reading(done.jobs_per_s, done.seconds)

    def peers(self) -> list[Side]:
        return [
            Side("Redis zset with leases, appendfsync always", self.redis_leases),
            Side("Redis ZPOPMIN without acks", self.redis_pops),
            Side("beanstalkd priorities, synced", partial(self.beanstalkd, True)),
            Side("beanstalkd priorities", partial(self.beanstalkd, False)),
        ]


def heap_batches() -> Requests:
    """The records of other measures as messages with a priority, a batch a request."""
    sent = []
    for body in bodies(DIFFERENT):
        messages = b",".join(
            b'{"topic":"%b","priority":%d,"payload_json":%b}' % (HEAP.encode(), number * 7919 % 1000, data)
            for number, data in enumerate(payloads(body))
        )
        sent.append(http("POST", "/v1/enqueue/batch", b'{"messages":[%b]}' % messages))
    return Requests(protocol=Protocol.HTTP, sent=sent, records=BATCH)


def run(sizes: Sizes, directory: Path, step: Step) -> list[Figure]:
    work = _Work(directory, sizes)
    made = [
        _own(f"enqueue over /v1, batches of {BATCH}", work.enqueue_v1, V1_BAR, sizes, directory, step),
        _own(f"EnqueueBatch of {heapwork.BATCH} over gRPC", work.enqueue_grpc, BATCH_BAR, sizes, directory, step),
    ]
    name = f"pop and ack, {POPPED} at a time over /v1 or {heapwork.BATCH} in hand on Work streams"
    sides = [Side("/v1", work.pop_v1), *work.peers(), Side("Work", work.pop_grpc)]
    outcomes = compete(sides, sizes.rounds, directory, step, name)
    v1, *peers, streams = outcomes
    made += figures(
        f"pop {POPPED} and ack them over /v1, {CONSUMERS} consumers", Unit.RECORDS_PER_S, [v1, *peers], [None] * 4
    )
    made += figures(
        f"pop and ack on {heapwork.STREAMS} Work streams, {heapwork.BATCH} in hand",
        Unit.RECORDS_PER_S,
        [streams, *peers],
        [None] * 4,
    )
    made.append(
        Figure(
            name=f"pop and ack on {heapwork.STREAMS} Work streams",
            value=streams.value(Unit.RECORDS_PER_S),
            unit=Unit.RECORDS_PER_S,
            bar=WORK_BAR,
            spread=streams.spread(),
        )
    )
    return [*made, *_latencies(work, sizes, directory, step)]


def _own(name: str, side: object, bar: float, sizes: Sizes, directory: Path, step: Step) -> Figure:
    assert callable(side)
    (outcome,) = compete([Side("topics", side)], sizes.rounds, directory, step, name)
    return Figure(
        name=name,
        value=best([reading.value for reading in outcome.readings]),
        unit=Unit.RECORDS_PER_S,
        bar=bar,
        spread=outcome.spread(),
        note=f"core busy {outcome.busy():.0%}",
    )


def _latencies(work: _Work, sizes: Sizes, directory: Path, step: Step) -> list[Figure]:
    found = []
    for over, called in (("v1", "/v1"), ("grpc", "unary gRPC")):
        what = f"over {called}, {heappace.PACE_PER_S} a second, {PARTITIONS_PACED} partitions, fsync"
        rounds = []
        for number in range(1, sizes.rounds + 1):
            step(f"p95 {what}, round {number}")
            rounds.append(work.paced(over, directory / f"paced-{over}-{number}"))
        enqueues, pops = [each.enqueue_p95_ms for each in rounds], [each.pop_p95_ms for each in rounds]
        found += [
            _p95(f"p95 of an enqueue {what}", enqueues, ENQUEUE_P95_BAR_MS),
            _p95(f"p95 from an enqueue to its pop {what}", pops, POP_P95_BAR_MS),
        ]
    return found


def _p95(name: str, values: list[float], bar_ms: float) -> Figure:
    return Figure(name=name, value=middle(values), unit=Unit.MS, bar=bar_ms, spread=(min(values), max(values)))
