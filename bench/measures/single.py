"""One-record writes: 16 arrive in each turn of the loop and share its flush, and in class `fsync` its sync."""

from __future__ import annotations

import asyncio
from pathlib import Path

from bench.bodies import bodies
from bench.figure import Figure, Unit, best
from bench.peer import SqliteLog, Synchronous
from bench.rig import TURN, Step, Timer, running, write_in_turns
from bench.sizes import Sizes
from topics.core.commands import Configure
from topics.model import Durability

LEVELS = {
    Durability.MEMORY: Synchronous.NORMAL,
    Durability.DISK: Synchronous.NORMAL,
    Durability.FSYNC: Synchronous.FULL,
}


async def _rate(directory: Path, durability: Durability, turns: int) -> float:
    async with running(directory) as host:
        await host.submit(Configure("orders", {"durability": durability.value}))
        sent = bodies(turns * TURN, records=1)
        with Timer() as timer:
            await write_in_turns(host, "orders", sent)
    return turns * TURN / timer.seconds


def _peer_rate(directory: Path, synchronous: Synchronous, turns: int) -> float:
    directory.mkdir()
    peer = SqliteLog(directory / "log.sqlite", synchronous)
    sent = bodies(turns * TURN, records=1)
    with Timer() as timer:
        peer.write(sent, per_commit=TURN)
    peer.close()
    return turns * TURN / timer.seconds


def run(sizes: Sizes, directory: Path, step: Step) -> list[Figure]:
    figures = []
    for durability, synchronous in LEVELS.items():
        turns = sizes.sync_turns if durability is Durability.FSYNC else sizes.single_turns
        ours, theirs = [], []
        for number in range(sizes.rounds):
            step(f"one-record writes, {durability}, round {number + 1}")
            place = directory / f"{durability}-{number}"
            ours.append(asyncio.run(_rate(place, durability, turns)))
            theirs.append(_peer_rate(place / "peer", synchronous, turns))
        figures.append(
            Figure(
                name=f"write one record, {TURN} a turn, {durability}",
                value=best(ours),
                unit=Unit.RECORDS_PER_S,
                peer=best(theirs),
                note=f"peer: {TURN} records a transaction, synchronous {synchronous}",
            )
        )
    return figures
