"""What a long log costs: time for a write and for a read at its head, and memory.

A long topic and short ones stand in the same engine and are measured in turn, so that the machine's drift hits both.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from statistics import median

from bench.bodies import bodies
from bench.figure import Figure, Unit
from bench.resident import resident_bytes
from bench.rig import TURN, Step, Timer, running, write, write_in_turns
from bench.sizes import BATCH, Sizes
from topics.engine.host import Host

RESIDENT_BAR = 1.5 * 2**30
RATIO_BAR = 1.5
"""Flat, give or take what the machine's noise does to a ratio."""
PAIRS = 20
"""How often long and short are compared."""


async def _costs(host: Host, topic: str, batches: int) -> dict[str, float]:
    """Microseconds for a batch, for a one-record write, for a page at the head."""
    large, small = bodies(batches), bodies(TURN * batches, records=1)
    with Timer() as batch:
        await write(host, topic, large)
    with Timer() as single:
        await write_in_turns(host, topic, small)
    head_seq = host.engine.state(topic).head_seq
    with Timer() as page:
        for _ in range(batches):
            host.engine.read(topic, head_seq - BATCH, limit=BATCH)
    return {
        "write a batch of 1000": batch.seconds / batches * 1e6,
        "write one record": single.seconds / batches / TURN * 1e6,
        "read a page of 1000 at the head": page.seconds / batches * 1e6,
    }


async def _measure(sizes: Sizes, directory: Path, step: Step) -> list[Figure]:
    figures = []
    async with running(directory / "own") as host:
        step(f"writing {sizes.long_records} records")
        await write(host, "long", bodies(sizes.long_records // BATCH))
        figures.append(_resident(f"resident after {sizes.long_records:,} writes"))
        step("reading all of them")
        from_seq = 0
        while from_seq < host.engine.state("long").head_seq:
            from_seq = host.engine.read("long", from_seq, limit=BATCH).next_from_seq
        figures.append(_resident("resident after reading them all"))
        await host.checkpoint()
        step("comparing long and short")
        short: dict[str, list[float]] = {}
        long: dict[str, list[float]] = {}
        for number in range(PAIRS if sizes.rounds > 1 else 2):
            name = f"short-{number}"
            await write(host, name, bodies(sizes.short_records // BATCH))
            pair = [(name, short), ("long", long)]
            for topic, costs in pair if number % 2 else reversed(pair):
                for what, cost_us in (await _costs(host, topic, sizes.length_batches)).items():
                    costs.setdefault(what, []).append(cost_us)
            await host.checkpoint()
    for what, costs_us in short.items():
        at_short, at_long = median(costs_us), median(long[what])
        note = f"{at_short:.1f} µs in a short log, {at_long:.1f} µs in a long one"
        figures.append(
            Figure(name=f"{what}: long / short", value=at_long / at_short, unit=Unit.TIMES, bar=RATIO_BAR, note=note)
        )
    return figures


def _resident(name: str) -> Figure:
    total, private = resident_bytes()
    note = f"{private / 2**20:.0f} MiB of it is not mapped files"
    return Figure(name=name, value=total, unit=Unit.BYTES, bar=RESIDENT_BAR, note=note)


def run(sizes: Sizes, directory: Path, step: Step) -> list[Figure]:
    return asyncio.run(_measure(sizes, directory, step))
