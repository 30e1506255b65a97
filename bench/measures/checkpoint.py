"""Checkpoints: how long they keep the loop from its other work, what they leave on disk, and what they cost when
little has changed."""

from __future__ import annotations

import asyncio
import gc
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
    """Turns the loop without end while it is entered; `worst_ms` is the longest that one turn took.

    `collecting_ms` is the longest that Python's own garbage collector took, which is part of whatever turn it hit.
    """

    async def __aenter__(self) -> Heartbeat:
        self.worst_ms = self.collecting_ms = 0.0
        gc.callbacks.append(self._collecting)
        self._task = asyncio.get_running_loop().create_task(self._beat())
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.sleep(0)
        self._task.cancel()
        gc.callbacks.remove(self._collecting)

    async def _beat(self) -> None:
        last = perf_counter()
        while True:
            await asyncio.sleep(0)
            now = perf_counter()
            self.worst_ms = max(self.worst_ms, (now - last) * 1e3)
            last = now

    def _collecting(self, phase: str, _: object) -> None:
        if phase == "start":
            self._began = perf_counter()
        else:
            self.collecting_ms = max(self.collecting_ms, (perf_counter() - self._began) * 1e3)


class Pauses:
    """The longest pause of each of several checkpoints."""

    def __init__(self) -> None:
        self._worst_ms: list[float] = []
        self._collecting_ms: list[float] = []

    async def checkpoint(self, host: Host) -> None:
        async with Heartbeat() as heartbeat:
            await host.checkpoint()
        self._worst_ms.append(heartbeat.worst_ms)
        self._collecting_ms.append(heartbeat.collecting_ms)

    def figure(self, what: str) -> Figure:
        note = f"the longest garbage collection took {middle(self._collecting_ms):.1f} ms"
        return Figure(
            name=f"longest pause, {what}", value=middle(self._worst_ms), unit=Unit.MS, bar=PAUSE_BAR_MS, note=note
        )


def _touch(sizes: Sizes, topics: int) -> Iterator[Append]:
    for number, body in enumerate(bodies(topics, records=sizes.topic_records)):
        yield Append(f"topic-{number:05d}", decode_write(body).records)


async def _many_topics(sizes: Sizes, directory: Path, step: Step) -> list[Figure]:
    pauses = Pauses()
    all_ms, one_ms = [], []
    async with running(directory, NO_CHECKPOINTS) as host:
        step(f"creating {sizes.topics} topics")
        await send(host, _touch(sizes, sizes.topics), CREATE_IN_FLIGHT)
        await host.checkpoint()
        files = host.engine.store.file_count()
        for number in range(sizes.rounds):
            step(f"checkpoints of many topics, round {number + 1}")
            await send(host, _touch(sizes, sizes.topics), CREATE_IN_FLIGHT)
            with Timer() as timer:
                await pauses.checkpoint(host)
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
        pauses.figure(f"{topics} changed"),
        Figure(name=f"checkpoint, 1 of {topics} changed", value=middle(one_ms), unit=Unit.MS, note=note),
    ]


async def _much_data(sizes: Sizes, directory: Path, step: Step) -> list[Figure]:
    pauses = Pauses()
    some = next(bodies(1))
    async with running(directory, NO_CHECKPOINTS) as host:
        for number in range(sizes.rounds):
            step(f"checkpoint of much data, round {number + 1}")
            await write(host, "orders", bodies(max(1, sizes.dirty_bytes // len(some))))
            await pauses.checkpoint(host)
    return [pauses.figure(f"{sizes.dirty_bytes >> 20} MiB changed")]


def run(sizes: Sizes, directory: Path, step: Step) -> list[Figure]:
    return [
        *asyncio.run(_many_topics(sizes, directory / "topics", step)),
        *asyncio.run(_much_data(sizes, directory / "data", step)),
    ]
