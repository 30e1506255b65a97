"""One source and a hundred destinations: what that costs who writes, how fast the copies come, and how soon."""

from __future__ import annotations

import asyncio
from pathlib import Path
from statistics import median
from time import perf_counter

from bench.bodies import bodies
from bench.figure import Figure, Unit, best
from bench.rig import NO_CHECKPOINTS, Step, Timer, running, write
from bench.sizes import BATCH, Sizes
from topics.core.commands import Append, PutRouter
from topics.core.log import Log
from topics.engine.host import Host
from topics.routermodel import RouterConfig
from topics.wire.records import decode_write

DESTINATIONS = 100
WRITE_SHARE = 0.8
"""What is left to who writes, of the rate without routers."""
COPIES_BAR = 1_000_000
ADDED_MS_BAR = 2.0
WAIT_S = 60.0
"""How long the last copy may take: a failure, not a duration."""


async def _route(host: Host) -> None:
    for number in range(DESTINATIONS):
        await host.submit(PutRouter(f"r{number}", RouterConfig(source="orders", dest=f"copy{number}")))


def _destinations(host: Host) -> list[Log]:
    machine = host.engine.machine
    return [machine.log(machine.topic(f"copy{number}")) for number in range(DESTINATIONS)]


async def _rates(directory: Path, count: int, routed: bool) -> tuple[float, float]:
    """Records a second for who writes, and copies a second until the last one is there."""
    sent = bodies(count)
    async with running(directory, NO_CHECKPOINTS) as host:
        await write(host, "orders", bodies(1))
        if routed:
            await _route(host)
        with Timer() as written:
            with Timer() as timer:
                await write(host, "orders", sent)
            logs = _destinations(host) if routed else []
            for log in logs:
                await host.wait_visible(log, count * BATCH - 1, WAIT_S)
    return count * BATCH / timer.seconds, len(logs) * count * BATCH / written.seconds


async def _added_ms(directory: Path, count: int) -> float:
    """From the answer to a lone write until its copy can be read: the median of all copies."""
    found: list[float] = []
    answered_s = 0.0
    all_seen = asyncio.Event()
    (body,) = bodies(1, records=1)
    async with running(directory) as host:
        await _route(host)
        waiting = {log.log_id for log in _destinations(host)}
        note = host.engine.on_visible

        def seen(log: Log) -> None:
            if log.log_id in waiting:
                found.append(perf_counter() - answered_s)
                if not len(found) % DESTINATIONS:
                    all_seen.set()
            note(log)

        host.engine.on_visible = seen
        for _ in range(count):
            all_seen = asyncio.Event()
            await host.submit(Append("orders", decode_write(body).records))
            answered_s = perf_counter()
            await all_seen.wait()
    return median(found) * 1000


def run(sizes: Sizes, directory: Path, step: Step) -> list[Figure]:
    alone, routed, copies, added = [], [], [], []
    for number in range(sizes.rounds):
        step(f"{DESTINATIONS} destinations, round {number + 1}")
        alone.append(asyncio.run(_rates(directory / f"alone-{number}", sizes.write_batches, False))[0])
        rate, copied = asyncio.run(_rates(directory / f"routed-{number}", sizes.write_batches, True))
        routed.append(rate)
        copies.append(copied)
        added.append(asyncio.run(_added_ms(directory / f"added-{number}", sizes.sync_turns)))
    without = best(alone)
    return [
        Figure(
            name=f"write batches to a source of {DESTINATIONS} destinations",
            value=best(routed),
            unit=Unit.RECORDS_PER_S,
            bar=WRITE_SHARE * without,
            note=f"without routers {without:,.0f}; the bar is {WRITE_SHARE} of that",
        ),
        Figure(
            name=f"copies into {DESTINATIONS} destinations",
            value=best(copies),
            unit=Unit.RECORDS_PER_S,
            bar=COPIES_BAR,
            note="without the checkpoints that write them to segments",
        ),
        Figure(
            name=f"from the answer to a write to its copy, {DESTINATIONS} destinations, p50",
            value=min(added),
            unit=Unit.MS,
            bar=ADDED_MS_BAR,
        ),
    ]
