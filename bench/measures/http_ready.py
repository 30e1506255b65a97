"""From the start of the process to its first good answer, on what a SIGKILL left behind.

A server is filled and killed once. Every round starts on a copy of what it left, because a recovery tidies up.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from shutil import copytree

from bench.bodies import DIFFERENT
from bench.clients.load import Client
from bench.clients.requests import http_writes, xadds
from bench.contest import Outcome, Reading, Side, compete, figures
from bench.figure import Figure, Unit
from bench.peers.process import LeftOut
from bench.peers.redis import STREAM, Appendfsync, Redis
from bench.peers.topics import TOPIC, Topics
from bench.rig import Step, Timer
from bench.sizes import Sizes
from topics.model import Durability

RECORDS = (100, 1)
"""Records in one write: batches, and the many small writes that are harder to recover."""
CONNECTIONS = 64
"""Many, so that filling takes less long."""
REDIS_FACTOR = 3.0
_MS_PER_S = 1000


def _fill_topics(client: Client, place: Path, total: int, records: int) -> None:
    with Topics(place) as server:
        server.create(Durability.DISK)
        client.run(server.port, http_writes(TOPIC, DIFFERENT, records), CONNECTIONS, count=total // records)
        server.process.kill()


def _fill_redis(client: Client, place: Path, total: int, records: int) -> None:
    with Redis(place, Appendfsync.EVERYSEC) as server:
        client.run(server.port, xadds(STREAM, DIFFERENT, records), CONNECTIONS, count=total // records)
        server.process.kill()


def _start_topics(place: Path) -> None:
    Topics(place).process.kill()


def _start_redis(place: Path) -> None:
    Redis(place, Appendfsync.EVERYSEC).process.kill()


def _on_copy(left: Path, start: Callable[[Path], None]) -> Callable[[Path], Reading]:
    def run(place: Path) -> Reading:
        copytree(left, place)
        with Timer() as timer:
            start(place)
        return Reading(timer.seconds * _MS_PER_S)

    return run


def _outcomes(client: Client, sizes: Sizes, records: int, directory: Path, step: Step) -> list[Outcome]:
    total = sizes.ready_records
    own, other = directory / f"topics-{records}", directory / f"redis-{records}"
    step(f"writing {total:,} records, {records} a write")
    _fill_topics(client, own, total, records)
    sides = [Side("topics", _on_copy(own, _start_topics))]
    missing = ""
    try:
        _fill_redis(client, other, total, records)
        sides.append(Side("Redis loading its AOF", _on_copy(other, _start_redis)))
    except LeftOut as reason:
        missing = str(reason)
    outcomes = compete(sides, sizes.rounds, directory, step, f"start after a kill, {records} a write")
    if missing:
        outcomes.append(Outcome("Redis loading its AOF"))
        outcomes[-1].left_out = missing
    return outcomes


def run(sizes: Sizes, directory: Path, step: Step) -> list[Figure]:
    client = Client(directory)
    found: list[Figure] = []
    for records in RECORDS:
        outcomes = _outcomes(client, sizes, records, directory, step)
        name = f"ready after SIGKILL, {sizes.ready_records:,} records, {records} a write"
        found += figures(name, Unit.MS, outcomes, [REDIS_FACTOR])
    return found
