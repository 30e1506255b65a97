"""The names that clients of `disheap` know, against a server over gRPC."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

import pytest

from disheap import DisheapClient, errors, testing

GUARD_S = 30


def on_loop(scenario: Callable[[DisheapClient], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    def test() -> None:
        async def run() -> None:
            async with asyncio.timeout(GUARD_S), testing.server() as endpoint, DisheapClient(endpoint) as client:
                await scenario(client)

        asyncio.run(run())

    test.__name__ = scenario.__name__
    return test


@on_loop
async def test_the_way_of_the_specification(client: DisheapClient) -> None:
    made = await client.make_heap("jobs", mode="MAX", partitions=2)
    assert made.config.mode == "max" and made.warnings, "one machine keeps one copy, and says so"
    async with client.producer("importer") as producer:
        for priority in (1, 3, 2):
            await producer.enqueue("jobs", b"%d" % priority, priority, partition_key=str(priority))
        batch = await producer.enqueue_batch(
            "jobs", [{"payload": b"a", "priority": 9, "delay": timedelta(0)}, {"payload": b"b", "partition_key": "k"}]
        )
        assert len(batch.messages) == 2
        with pytest.raises(errors.InvalidArgumentError, match=r"messages\[0\]"):
            await producer.enqueue_batch("jobs", [{"paylod": b"a"}])
    found = []
    async with client.consumer("jobs", prefetch=2, visibility=60) as consumer:
        async with consumer.item() as message:
            found.append(message.payload)
            await message.extend(timedelta(minutes=2))
        async for message in consumer.pop_stream():
            await message.ack()
            found.append(message.payload)
            if len(found) == 5:
                break
    assert found == [b"a", b"3", b"2", b"1", b"b"]
    stats = await client.stats("jobs")
    assert (stats.total_acks, stats.total_messages, stats.in_flight_messages) == (5, 0, 0)
    assert [info.topic for info in await client.list_heaps()] == ["jobs"]
    await client.delete_heap("jobs")
    with pytest.raises(errors.NotFoundError, match="does not exist"):
        await client.stats("jobs")


@on_loop
async def test_what_fails_is_a_dead_letter_and_comes_back(client: DisheapClient) -> None:
    await client.make_heap("jobs", max_retries=0)
    producer = client.producer()
    await producer.enqueue("jobs", b"poison")
    async with client.consumer("jobs") as consumer:
        with pytest.raises(ValueError, match="bad"):
            async with consumer.item() as message:
                raise ValueError("bad")
        assert message.settled
        with pytest.raises(errors.LeaseLostError, match="lease"):
            await message.ack()
        while not (dead := await client.dead_letters("jobs")):
            await asyncio.sleep(0)
        assert dead[0].payload == b"poison" and dead[0].history[0].reason == "ValueError: bad"
        assert (await client.replay("jobs")).done_count == 1
        again = await consumer.next()
        assert (again.payload, again.attempts) == (b"poison", 0)
        await again.nack(backoff=0, reason="still")
    with pytest.raises(errors.AlreadyExistsError, match="already exists"):
        await client.make_heap("jobs")
    put = await producer.enqueue("jobs", b"more")
    assert [message.payload for message in (await client.peek("jobs")).messages] == [b"more"]
    await client.move_to_dlq("jobs", put.message_id, "by hand")
    await producer.enqueue("jobs", b"rest")
    assert (await client.purge("jobs")).purged == 1


@on_loop
async def test_a_consumer_can_be_asked_again_after_an_error(client: DisheapClient) -> None:
    async with client.consumer("jobs") as consumer:
        for _ in range(2):
            with pytest.raises(errors.NotFoundError, match="does not exist"):
                await consumer.next()
        await client.make_heap("jobs")
        await client.producer().enqueue("jobs", b"late")
        assert (await consumer.next()).payload == b"late"
