"""How long a lone write takes: one connection, nothing else under way."""

from __future__ import annotations

from pathlib import Path

from bench.bodies import DIFFERENT
from bench.clients.load import Client, Load
from bench.clients.requests import http_writes, xadds
from bench.contest import Outcome, Reading, Side, compete, figures
from bench.figure import Figure, Unit
from bench.peers.redis import STREAM, Appendfsync, Redis
from bench.peers.topics import TOPIC, Topics
from bench.rig import Step
from bench.sizes import Sizes
from topics.model import Durability

REDIS_FACTOR = 2.0


class _Lone:
    """Both percentiles of each round come from one load; the medians are kept aside."""

    def __init__(self, client: Client, writes: int) -> None:
        self._client = client
        self._writes = writes
        self.medians = [Outcome("topics"), Outcome("Redis, appendfsync everysec")]

    def _reading(self, side: int, load: Load) -> Reading:
        self.medians[side].readings.append(Reading(load.p50_us))
        return Reading(load.p99_us)

    def topics(self, place: Path) -> Reading:
        with Topics(place) as server:
            server.create(Durability.DISK)
            load = self._client.run(server.port, http_writes(TOPIC, DIFFERENT, 1), 1, count=self._writes)
        return self._reading(0, load)

    def redis(self, place: Path) -> Reading:
        with Redis(place, Appendfsync.EVERYSEC) as server:
            load = self._client.run(server.port, xadds(STREAM, DIFFERENT, 1), 1, count=self._writes)
        return self._reading(1, load)


def run(sizes: Sizes, directory: Path, step: Step) -> list[Figure]:
    lone = _Lone(Client(directory), sizes.lone_writes)
    sides = [Side("topics", lone.topics), Side("Redis, appendfsync everysec", lone.redis)]
    tails = compete(sides, sizes.rounds, directory, step, "a lone write")
    lone.medians[1].left_out = tails[1].left_out
    return [
        *figures("a lone write, disk, median", Unit.US, lone.medians, [None]),
        *figures("a lone write, disk, p99", Unit.US, tails, [REDIS_FACTOR]),
    ]
