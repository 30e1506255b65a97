"""Batches of 100 over HTTP against as many commands in one piece."""

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

CONNECTIONS = 16
RECORDS = 100
REDIS_FACTOR = 1.0


def run(sizes: Sizes, directory: Path, step: Step) -> list[Figure]:
    name = f"write {RECORDS} records, {CONNECTIONS} connections, disk"
    load = WriteLoad(Client(directory), CONNECTIONS, RECORDS, sizes.load_seconds)
    sides = [load.topics(Durability.DISK), load.redis(Appendfsync.EVERYSEC), load.nats()]
    outcomes = compete(sides, sizes.rounds, directory, step, name)
    return figures(name, Unit.RECORDS_PER_S, outcomes, [REDIS_FACTOR, None])
