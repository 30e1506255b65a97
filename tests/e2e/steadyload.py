"""Load that leaves nothing behind: what is written is capped, what is enqueued is taken, what is claimed is acked.

A *round* is one operation of each kind, over HTTP, gRPC and a WebSocket. Rounds are made as fast as they go, or at a
rate.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import aclosing

from tests.e2e.farload import Doors
from topics.client import Client

CAP_RECORDS = 2_000
BATCH_RECORDS = 10
PUBLISH_EVERY_S = 1.0
"""Answers to publishes are remembered for a day, so there are few of them."""
CAPPED = ("log", "source", "mirror", "left", "right", "socket")
HEAPS = ("messages", "stream")


class SteadyLoad:
    def __init__(self, client: Client, far: Doors) -> None:
        """Heaps are reached over HTTP by the client, and over gRPC by those doors."""
        self.rounds = 0
        self.followed = 0
        """Events that a follower got meanwhile."""
        self._client = client
        self._far = far
        self._published_s = 0.0
        self._began_ms = int(time.time() * 1000)

    async def prepare(self) -> None:
        client = self._client
        for name in CAPPED:
            await client.topic(name).create(cap_records=CAP_RECORDS)
        await client.queue("jobs").create(lease_ms=60_000)
        for name in HEAPS:
            await client.heap(name).create(partitions=2, durability="disk")
        await client.router("mirror").put("source", "mirror")

    async def round(self) -> None:
        client, number = self._client, self.rounds
        batch = [{"data": {"n": number, "at": at}, "tag": f"t{at}"} for at in range(BATCH_RECORDS)]
        await client.topic("log").write_many(batch)
        await client.topic("source").write(number)
        await client.queue("jobs").put(number)
        for job in await client.queue("jobs", node="n").claim(2):
            await job.ack()
        for heap in (client.heap("messages", consumer="c"), self._far.client.heap("messages", consumer="f")):
            await heap.enqueue_many([{"payload": number, "priority": number % 7}])
            for message in await heap.take(2):
                await message.ack()
        await self._far.client.heap("stream").enqueue_many([{"payload": number}])
        await (await anext(self._far.popping)).ack()
        await self._far.publish(number, lambda seen: None)
        await client.sql(
            "SELECT tag, count(*) FROM log GROUP BY tag; SELECT max(seq) FROM socket WHERE seq > ?", [number]
        )
        group = client.topic("log").group("readers", consumer="c")
        taken = await group.take(2 * BATCH_RECORDS)
        if taken.last_seq or taken.tombstone is not None:
            await group.ack(taken)
        if time.monotonic() - self._published_s >= PUBLISH_EVERY_S:
            self._published_s = time.monotonic()
            await self._publish()
        self.rounds += 1

    async def _publish(self) -> None:
        stages = [f"{side}-{self.rounds}" for side in ("left", "right")]
        for stage in stages:
            await self._client.stage(stage, stage.partition("-")[0], [{"data": self.rounds}])
        await self._client.publish(stages, producer=("steady", self._began_ms + self.rounds))

    async def follow(self) -> None:
        async with aclosing(self._client.follow(["log", "mirror", "left"])) as events:  # type: ignore[type-var]
            async for _ in events:
                self.followed += 1

    async def run(self, seconds: float, rounds_per_s: float = 0, look: Callable[[], None] = lambda: None) -> float:
        """Make rounds for so long, at this rate or as fast as they go; how many a second there were.

        `look` is called before each round.
        """
        began_s, first = time.monotonic(), self.rounds
        while (passed_s := time.monotonic() - began_s) < seconds:
            look()
            ahead_s = (self.rounds - first) / rounds_per_s - passed_s if rounds_per_s else 0
            if ahead_s > 0:
                await asyncio.sleep(ahead_s)
            await self.round()
        return (self.rounds - first) / (time.monotonic() - began_s)
