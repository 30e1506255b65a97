"""One run against the real server: clients, faults, an end in peace, and what the checkers say of the history."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e.jepsen import grpcclients
from tests.e2e.jepsen.faults import Faults
from tests.e2e.jepsen.grpcclients import GrpcClients
from tests.e2e.jepsen.machine import PowerDisk, Server, StartFailed
from tests.e2e.jepsen.outside import Outside, WallClock
from topics.testing.checkers import History, check
from topics.testing.sim import actors
from topics.testing.sim.actor import Actor
from topics.testing.sim.ending import Ending
from topics.testing.sim.plan import PROMISES
from topics.testing.sim.world import requests

FAULT_S = 4.0
"""Time between two faults, on average."""
CALM_S = 6.0
"""Longer than every lease, delay and backoff that is given in a run."""
ENDINGS = 2
"""On a busy machine a lease may end before its ack, and what is given back then is taken by the next ending."""
GRPC_PRODUCERS = 2
GRPC_CONSUMERS = 2


@dataclass(slots=True)
class Result:
    seed: int
    violations: list[str] = field(default_factory=list)
    operations: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    acked: int = 0
    history: History = field(default_factory=History)

    def story(self) -> str:
        """All that is known of the run, a line for each call and each death."""
        events = [*((call.sent, call) for call in self.history.calls), *((one.at, one) for one in self.history.faults)]
        return "".join(f"{moment} {event!r}\n" for moment, event in sorted(events, key=lambda event: event[0]))


def live(seed: int, seconds: float, place: Path, generated: tuple[Any, Any], lies: bool = False) -> Result:
    """One run of so many seconds on a new disk. On a disk that `lies` about syncs, promises have to break."""
    disk = PowerDisk(place / "disk")
    try:
        return asyncio.run(_Run(seed, seconds, place, disk, generated).run(lies))
    finally:
        disk.close()


class _Run:
    def __init__(self, seed: int, seconds: float, place: Path, disk: PowerDisk, generated: tuple[Any, Any]) -> None:
        clock_file = place / "clock"
        clock = WallClock(clock_file)
        self.seconds = seconds
        self.disk = disk
        self.server = Server(disk.mountpoint / "data", clock, clock_file)
        self.outside = Outside(seed, clock)
        self.outside.notes.history.topics = PROMISES | grpcclients.PROMISE
        self.grpc = GrpcClients(self.outside, generated)
        self.chance = random.Random(f"faults {seed}")
        self.faults = Faults(disk, self.server, self.outside, self.chance)
        self.faults.on_start = self._started
        self.result = Result(seed)

    def _started(self) -> None:
        self.grpc.address = self.server.grpc_address

    async def run(self, lies: bool) -> Result:
        try:
            await self.faults.start()
            for request in (*requests(), grpcclients.make_request()):
                await self.outside.until_done(request)
            if lies:
                self.disk.command("lie")
            await self._live()
            await self._end()
        except StartFailed as failure:
            self.result.violations.append(f"start: the server does not start on what the faults left: {failure}")
        finally:
            await self.server.kill()
        return self._judge()

    async def _live(self) -> None:
        outside, grpc = self.outside, self.grpc
        kinds: list[Callable[[Any, int], Actor]] = [
            *[actors.Writer] * 3, *[actors.Reader] * 2, actors.Deleter, actors.Boss, *[actors.Worker] * 3,
            *[actors.Enqueuer] * 2, *[actors.Popper] * 2, *[actors.Consumer] * 2, *[actors.Batcher] * 2, actors.Mixer,
            *[actors.Clerk] * 2,
        ]  # fmt: skip
        clients = [outside.live(kind(outside, number)) for number, kind in enumerate(kinds)]
        clients += [grpc.produce(f"producer{number}") for number in range(GRPC_PRODUCERS)]
        clients += [grpc.consume(f"consumer{number}") for number in range(GRPC_CONSUMERS)]
        tasks = [asyncio.create_task(client) for client in clients]
        try:
            await self._strike_for(self.seconds)
        finally:
            outside.stopped.set()
            await asyncio.gather(*tasks)

    async def _strike_for(self, seconds: float) -> None:
        """One fault after the other, each to its end."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + seconds
        while (pause_s := self.chance.expovariate(1 / FAULT_S)) < until_s - loop.time():
            await asyncio.sleep(pause_s)
            await self.faults.strike()
        await asyncio.sleep(max(0.0, until_s - loop.time()))

    async def _end(self) -> None:
        """Nothing fails any more: what is left is taken, and everything is read to its end."""
        for number in range(ENDINGS):
            await asyncio.sleep(CALM_S)
            ending = Ending(self.outside, number)
            await self.outside.once(ending)
            assert ending.is_over
        await self.grpc.drain()
        await self.outside.until_done(grpcclients.letters_request())
        self.outside.notes.history.is_final = True

    def _judge(self) -> Result:
        notes, result = self.outside.notes, self.result
        result.history = notes.history
        result.violations += dict.fromkeys(str(one) for one in check(notes.history))
        result.violations += [f"problem: {text}" for text in (*notes.problems, *self.server.problems)]
        result.operations, result.faults = notes.counts, notes.faults
        result.acked = sum(call.ok for call in notes.history.calls)
        return result
