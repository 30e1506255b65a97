"""A consumer group that works off a log: consume 100 records, ack them, and so on to the end.

Two ways on either side. In turn: a consume is answered, then its ack is sent, as a consumer does that acks what it has
done. Together: the ack of one batch goes out with the consume of the next, ours as one request, theirs as two commands
in one piece. Both sides keep what was claimed and acked in their logs, synced within a fraction of a second.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from bench.bodies import DIFFERENT
from bench.clients.load import Client
from bench.clients.requests import group_consumes, http_writes, numbered_xadds, xreadgroups
from bench.contest import Reading, Side, Stopwatch, compete, figures
from bench.figure import Figure, Unit
from bench.peers.redis import STREAM, Appendfsync, Redis
from bench.peers.topics import TOPIC, Topics
from bench.rig import Step
from bench.sizes import BATCH, Sizes
from topics.model import Durability

CONSUMED = 100
"""Records in one consume."""
GROUP = "billing"
FACTOR = 1.0


class _Work:
    def __init__(self, client: Client, sizes: Sizes) -> None:
        self._client = client
        self._records = sizes.replay_records

    def topics(self, together: bool, place: Path) -> Reading:
        with Topics(place) as server:
            server.create(Durability.DISK)
            self._client.run(server.port, http_writes(TOPIC, DIFFERENT, BATCH), 1, count=self._records // BATCH)
            requests = group_consumes(TOPIC, GROUP, self._records, CONSUMED, together)
            with Stopwatch(server.process) as watch:
                load = self._client.run(server.port, requests, 1, count=len(requests.sent))
            _check(load.received_bytes, self._records)
            return watch.reading(self._records / load.seconds, load.seconds)

    def redis(self, together: bool, place: Path) -> Reading:
        with Redis(place, Appendfsync.EVERYSEC) as server:
            written = numbered_xadds(STREAM, self._records, BATCH)
            self._client.run(server.port, written, 1, count=len(written.sent))
            server.ask(b"XGROUP", b"CREATE", STREAM, GROUP.encode(), b"0")
            requests = xreadgroups(STREAM, GROUP.encode(), self._records, CONSUMED, together)
            with Stopwatch(server.process) as watch:
                load = self._client.run(server.port, requests, 1, count=len(requests.sent))
            _check(load.received_bytes, self._records)
            return watch.reading(self._records / load.seconds, load.seconds)


def _check(received_bytes: int, records: int) -> None:
    """Whoever answers with nothing is fast."""
    if received_bytes < 100 * records:
        raise RuntimeError(f"{received_bytes} bytes are too few for {records} records")


def run(sizes: Sizes, directory: Path, step: Step) -> list[Figure]:
    work = _Work(Client(directory), sizes)
    made = []
    for together, how in ((False, "in turn"), (True, "together")):
        name = f"consume and ack {CONSUMED} records, {how}"
        sides = [
            Side("topics", partial(work.topics, together)),
            Side("Redis XREADGROUP and XACK", partial(work.redis, together)),
        ]
        outcomes = compete(sides, sizes.rounds, directory, step, name)
        made += figures(name, Unit.RECORDS_PER_S, outcomes, [FACTOR])
    return made
