"""One-record writes over HTTP, each acked before its connection sends the next."""

from __future__ import annotations

from pathlib import Path

from bench.clients.load import Client
from bench.contest import compete, figures
from bench.figure import Figure, Unit
from bench.peers.redis import Appendfsync
from bench.rig import Step
from bench.sides import WriteLoad
from bench.sizes import Sizes
from topics.model import Durability

DISK_CONNECTIONS = 16
SYNC_CONNECTIONS = (16, 64)
REDIS_DISK_FACTOR = 0.7
NATS_FACTOR = 1.1
REDIS_SYNC_FACTOR = 0.8
POSTGRES_FACTOR = 1.2


def _disk(client: Client, sizes: Sizes, directory: Path, step: Step) -> list[Figure]:
    name = f"write one record, {DISK_CONNECTIONS} connections, disk"
    load = WriteLoad(client, DISK_CONNECTIONS, 1, sizes.load_seconds)
    sides = [load.topics(Durability.DISK), load.redis(Appendfsync.EVERYSEC), load.nats()]
    outcomes = compete(sides, sizes.rounds, directory, step, name)
    return figures(name, Unit.RECORDS_PER_S, outcomes, [REDIS_DISK_FACTOR, NATS_FACTOR])


def _sync(client: Client, connections: int, sizes: Sizes, directory: Path, step: Step) -> list[Figure]:
    name = f"write one record, {connections} connections, fsync"
    load = WriteLoad(client, connections, 1, sizes.load_seconds)
    sides = [load.topics(Durability.FSYNC), load.redis(Appendfsync.ALWAYS), load.postgres()]
    outcomes = compete(sides, sizes.rounds, directory, step, name)
    return figures(name, Unit.RECORDS_PER_S, outcomes, [REDIS_SYNC_FACTOR, POSTGRES_FACTOR])


def run(sizes: Sizes, directory: Path, step: Step) -> list[Figure]:
    client = Client(directory)
    found = _disk(client, sizes, directory, step)
    for connections in SYNC_CONNECTIONS:
        found += _sync(client, connections, sizes, directory, step)
    return found
