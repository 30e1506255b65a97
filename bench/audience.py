"""The sides of a contest in delivering: a fresh server, so many watchers of one log, and somebody who writes to it.

The same rounds give several figures: rates, latencies, and the processor time of a delivery. A record that is lost,
repeated or out of order ends the round, on every side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec

from bench.clients.live import Delivered, LiveClient, Pace
from bench.clients.watching import (
    Watching,
    blocking_reads,
    event_streams,
    push_consumers,
    subscriptions,
    web_sockets,
)
from bench.contest import Outcome, Reading, Side, compete, figures
from bench.figure import Figure, Unit
from bench.peers.nats import SUBJECT, Nats
from bench.peers.process import Process
from bench.peers.redis import STREAM, Appendfsync, Redis
from bench.peers.topics import TOPIC, Topics
from bench.rig import Step
from topics.model import Durability

EVENT_STREAMS = "event streams"
WEB_SOCKETS = "WebSockets"
XREAD = "Redis XREAD BLOCK"
PUBSUB = "Redis PUBLISH, nothing stored"
PUSH = "NATS JetStream push"
NO_THROTTLE = ("--throttle-lag-ms", "0")
"""No peer refuses writes on a busy machine, so we do not either: the client's window holds the writers back."""
OURS = (EVENT_STREAMS, WEB_SOCKETS)
PEERS = (XREAD, PUBSUB, PUSH)

Pick = Callable[[Delivered], float]


class Audience:
    def __init__(self, client: LiveClient, watchers: int, pace: Pace) -> None:
        self._client = client
        self._watchers = watchers
        self._pace = pace
        self._kept: dict[str, list[Delivered]] = {}
        self._left_out: dict[str, str] = {}

    def compete(self, rounds: int, directory: Path, step: Step, what: str) -> None:
        """Each side once a round."""
        runs = {
            EVENT_STREAMS: partial(self._topics, self._streams),
            WEB_SOCKETS: partial(self._topics, lambda server: web_sockets(TOPIC, self._watchers)),
            XREAD: partial(self._redis, blocking_reads(STREAM, self._watchers)),
            PUBSUB: partial(self._redis, subscriptions(STREAM, self._watchers)),
            PUSH: self._nats,
        }
        sides = [Side(name, partial(self._keep, name, run)) for name, run in runs.items()]
        for outcome in compete(sides, rounds, directory, step, what):
            self._left_out[outcome.name] = outcome.left_out

    def figures(
        self,
        what: str,
        unit: Unit,
        pick: Pick,
        factors: dict[str, float] | None = None,
        *,
        bar: float | None = None,
        peers: Sequence[str] = PEERS,
    ) -> list[Figure]:
        """What the rounds gave, of both of ours against the peers; `bar` is for whatever the peers reach."""
        found = []
        for own in OURS:
            outcomes = [self._outcome(name, unit, pick) for name in (own, *peers)]
            made = figures(f"{what}, {own}", unit, outcomes, [(factors or {}).get(peer) for peer in peers])
            if bar is not None:
                made[0] = msgspec.structs.replace(made[0], bar=bar)
            found += made
        return found

    def _outcome(self, name: str, unit: Unit, pick: Pick) -> Outcome:
        outcome = Outcome(name)
        outcome.left_out = self._left_out[name]
        is_rate = unit is Unit.RECORDS_PER_S
        for each in self._kept.get(name, ()):
            outcome.readings.append(Reading(pick(each), each.server_busy_s / each.seconds if is_rate else None))
        return outcome

    def _keep(self, name: str, run: Callable[[Path], Delivered], place: Path) -> Reading:
        delivered = run(place)
        self._kept.setdefault(name, []).append(delivered)
        return Reading(delivered.deliveries_per_s)

    def _run(self, process: Process, port: int, watching: Watching) -> Delivered:
        return self._client.run(process, port, watching, self._pace)

    def _streams(self, server: Topics) -> Watching:
        return event_streams(TOPIC, server.watch(self._watchers))

    def _topics(self, watching: Callable[[Topics], Watching], place: Path) -> Delivered:
        with Topics(place, *NO_THROTTLE) as server:
            server.create(Durability.DISK)
            return self._run(server.process, server.port, watching(server))

    def _redis(self, watching: Watching, place: Path) -> Delivered:
        with Redis(place, Appendfsync.EVERYSEC) as server:
            return self._run(server.process, server.port, watching)

    def _nats(self, place: Path) -> Delivered:
        with Nats(place) as server:
            return self._run(server.process, server.port, push_consumers(SUBJECT, self._watchers))
