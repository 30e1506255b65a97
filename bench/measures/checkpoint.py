"""Checkpoints: how long they keep the loop from its other work, what they leave on disk, and what they cost when
little has changed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

from bench.bodies import bodies
from bench.figure import Figure, Unit, middle
from bench.rig import NO_CHECKPOINTS, Step, Timer, running, send, write
from bench.sizes import Sizes
from topics.core.commands import Append
from topics.engine.host import Host
from topics.wire.records import decode_write

PAUSE_BAR_MS = 20
FILES_BAR = 300
CREATE_IN_FLIGHT = 1000


class Heartbeat:
    """Turns the loop without end while it is entered; `worst_ms` is the longest that one turn took."""

    async def __aenter__(self) -> Heartbeat:
        self.worst_ms = 0.0
        self._task = asyncio.get_running_loop().create_task(self._beat())
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.sleep(0)
        self._task.cancel()

    async def _beat(self) -> None:
        last = perf_counter()
        while True:
            await asyncio.sleep(0)
            now = perf_counter()
            self.worst_ms = max(self.worst_ms, (now - last) * 1e3)
            last = now


async def _pause_ms(host: Host) -> float:
    async with Heartbeat() as heartbeat:
        await host.checkpoint()
    return heartbeat.worst_ms


def _touch(sizes: Sizes, topics: int) -> Iterator[Append]:
    for number, body in enumerate(bodies(topics, records=sizes.topic_records)):
        yield Append(f"topic-{number:05d}", decode_write(body).records)


async def _many_topics(sizes: Sizes, directory: Path, step: Step) -> list[Figure]:
    pauses, all_ms, one_ms = [], [], []
    async with running(directory, NO_CHECKPOINTS) as host:
        step(f"creating {sizes.topics} topics")
        await send(host, _touch(sizes, sizes.topics), CREATE_IN_FLIGHT)
        await host.checkpoint()
        files = host.engine.store.file_count()
        for number in range(sizes.rounds):
            step(f"checkpoints of many topics, round {number + 1}")
            await send(host, _touch(sizes, sizes.topics), CREATE_IN_FLIGHT)
            with Timer() as timer:
                pauses.append(await _pause_ms(host))
            all_ms.append(timer.seconds * 1e3)
            await send(host, _touch(sizes, 1))
            with Timer() as timer:
                await host.checkpoint()
            one_ms.append(timer.seconds * 1e3)
    topics = f"{sizes.topics:,} topics"
    note = f"{middle(all_ms):.0f} ms when all of them have changed"
    return [
        Figure(
            name=f"files for {topics} of {sizes.topic_records} records", value=files, unit=Unit.FILES, bar=FILES_BAR
        ),
        Figure(name=f"longest pause, {topics} changed", value=middle(pauses), unit=Unit.MS, bar=PAUSE_BAR_MS),
        Figure(name=f"checkpoint, 1 of {topics} changed", value=middle(one_ms), unit=Unit.MS, note=note),
    ]


async def _much_data(sizes: Sizes, directory: Path, step: Step) -> list[Figure]:
    pauses = []
    some = next(bodies(1))
    async with running(directory, NO_CHECKPOINTS) as host:
        for number in range(sizes.rounds):
            step(f"checkpoint of much data, round {number + 1}")
            await write(host, "orders", bodies(max(1, sizes.dirty_bytes // len(some))))
            pauses.append(await _pause_ms(host))
    name = f"longest pause, {sizes.dirty_bytes >> 20} MiB changed"
    return [Figure(name=name, value=middle(pauses), unit=Unit.MS, bar=PAUSE_BAR_MS)]


def run(sizes: Sizes, directory: Path, step: Step) -> list[Figure]:
    return [
        *asyncio.run(_many_topics(sizes, directory / "topics", step)),
        *asyncio.run(_much_data(sizes, directory / "data", step)),
    ]
