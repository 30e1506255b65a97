"""Batches from JSON bytes to acked records of the class `disk`, with and without the checkpoints they cause."""

from __future__ import annotations

import asyncio
from pathlib import Path

from bench.bodies import bodies
from bench.figure import Figure, Unit, best
from bench.peer import SqliteLog
from bench.rig import NO_CHECKPOINTS, Step, Timer, running, write
from bench.sizes import BATCH, Sizes

BAR = 700_000


async def _rate(directory: Path, count: int, checkpoints: bool, tags: bool, nodes: bool) -> float:
    sent = bodies(count, tags=tags, nodes=nodes)
    async with running(directory, None if checkpoints else NO_CHECKPOINTS) as host:
        await write(host, "orders", bodies(1))
        with Timer() as timer:
            await write(host, "orders", sent)
    return count * BATCH / timer.seconds


def _peer_rate(directory: Path, count: int, tags: bool, nodes: bool) -> float:
    directory.mkdir()
    peer = SqliteLog(directory / "log.sqlite")
    if tags:
        peer.index_tags()
    sent = bodies(count, tags=tags, nodes=nodes)
    with Timer() as timer:
        peer.write(sent)
    peer.close()
    return count * BATCH / timer.seconds


def peer_note(tags: bool, checkpoints: bool) -> str:
    """Where the peer's work is not the same as ours."""
    if checkpoints:
        return "peer: the shorter run, without its checkpoints"
    return "peer: indexes tags at once, we only at a checkpoint" if tags else ""


def run(sizes: Sizes, directory: Path, step: Step) -> list[Figure]:
    figures: list[Figure] = []
    kinds = [("", False, False), (" with tags", True, False), (" with nodes", False, True)]
    for kind, tags, nodes in kinds:
        for checkpoints in (False, True):
            count = sizes.sustained_batches if checkpoints else sizes.write_batches
            name = f"write batches{kind}" + (", checkpoints included" if checkpoints else "")
            ours, theirs = [], []
            for number in range(sizes.rounds):
                step(f"{name}, round {number + 1}")
                place = directory / f"{len(figures)}-{number}"
                ours.append(asyncio.run(_rate(place, count, checkpoints, tags, nodes)))
                theirs.append(_peer_rate(place / "peer", sizes.write_batches, tags, nodes))
            bar = BAR if not kind else None
            rate, peer = best(ours), best(theirs)
            figures.append(
                Figure(
                    name=name,
                    value=rate,
                    unit=Unit.RECORDS_PER_S,
                    bar=bar,
                    peer=peer,
                    note=peer_note(tags, checkpoints),
                )
            )
    return figures
