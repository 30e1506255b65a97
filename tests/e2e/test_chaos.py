"""A bad network between client and server, for thousands of calls: nothing acked is lost, nothing is there twice, order
is kept, and a follower sees all of it exactly once."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

import pytest

from tests.client.rig import on_loop
from topics import Client, Gap, Record, Topic, connect, errors, testing
from topics.testing import ChaosProxy, Fault, TestServer
from topics.testing.chaosproxy import EVERYTHING

FAULTS = set(Fault)


@asynccontextmanager
async def bad_network(
    seed: int, weights: Mapping[Fault, float] = EVERYTHING
) -> AsyncIterator[tuple[TestServer, ChaosProxy, Client]]:
    async with (
        testing.server() as server,
        testing.chaos_proxy(server.url, seed=seed, weights=weights) as proxy,
        connect(proxy.url, attempts_max=50, read_timeout_ms=5_000) as client,
    ):
        yield server, proxy, client


async def contents(server: TestServer, name: str) -> list[object]:
    """What is in a topic, over a good connection."""
    found: list[object] = []
    async with server.client() as client:
        page = await client.topic(name).diff()
        while page.records:
            found += [record.data for record in page.records]
            page = await client.topic(name).diff(page.next_from_seq)
    return found


async def until(reached: Callable[[], bool]) -> None:
    while not reached():
        await asyncio.sleep(0.001)


async def followed(topic: Topic, count: int) -> list[object]:
    """What a follower sees until it has seen so many, each with a seq of its own."""
    seen: list[object] = []
    seqs: list[int] = []
    async for event in topic.follow():
        assert isinstance(event, Record), event
        seen.append(event.data)
        seqs.append(event.seq)
        if len(seen) == count:
            break
    assert seqs == list(range(1, count + 1))
    return seen


@pytest.mark.parametrize("seed", [1, 2, 3])
@on_loop
async def test_keyed_writes_are_there_once(seed: int) -> None:
    writers, writes = 8, 60
    async with bad_network(seed) as (server, proxy, client):
        orders = client.topic("orders")
        await orders.create()
        acked: dict[str, int] = {}

        async def write(writer: int) -> None:
            for number in range(writes):
                name = f"{writer}-{number}"
                acked[name] = (await orders.write(name, idempotency_key=name)).first_seq

        following = asyncio.create_task(followed(orders, writers * writes))
        await asyncio.gather(*map(write, range(writers)))
        seen = await following
        stored = await contents(server, "orders")
        assert stored == seen
        assert {name: seq for seq, name in enumerate(stored, 1)} == acked
        for writer in range(writers):
            mine = [name for name in stored if str(name).startswith(f"{writer}-")]
            assert mine == [f"{writer}-{number}" for number in range(writes)]
        assert set(proxy.faults) == FAULTS


@pytest.mark.parametrize("seed", [1, 2, 3])
@on_loop
async def test_a_producer_delivers_once_and_in_order(seed: int) -> None:
    records = 4_000
    async with bad_network(seed) as (server, proxy, client):
        names = ["a", "b"]
        async with client.producer(linger_ms=0, batch_records_max=8) as producer:
            deliveries = [await producer.send(names[n % 2], n) for n in range(records)]
        for parity, name in enumerate(names):
            expected = list(range(parity, records, 2))
            assert await contents(server, name) == expected
            assert await followed(client.topic(name), len(expected)) == expected
            assert [(await delivery).seq for delivery in deliveries[parity::2]] == list(range(1, len(expected) + 1))
        assert set(proxy.faults) == FAULTS


@on_loop
async def test_a_plain_write_is_done_once_or_said_to_be_uncertain() -> None:
    """Without a key nothing is repeated behind the caller's back, but for what surely was not done."""
    weights = {Fault.PASS: 5, Fault.CUT: 1, Fault.LOSE: 1, Fault.TRUNCATE: 1}
    async with (
        testing.server() as server,
        testing.chaos_proxy(server.url, seed=4, weights=weights) as proxy,
        connect(proxy.url) as client,
    ):
        orders = client.topic("orders")
        acked, uncertain = [], []
        for number in range(400):
            try:
                await orders.write(number)
                acked.append(number)
            except errors.ConnectionFailed as failure:
                assert failure.detail["sent"]
                uncertain.append(number)
        stored = await contents(server, "orders")
        assert len(set(stored)) == len(stored) and stored == sorted(stored, key=int)  # type: ignore[arg-type]
        assert set(acked) <= set(stored) <= set(acked) | set(uncertain)
        assert uncertain and set(stored) & set(uncertain) and set(uncertain) - set(stored)


@on_loop
async def test_a_follower_misses_nothing_while_the_server_comes_and_goes() -> None:
    chance = random.Random(5)
    async with (
        testing.server() as server,
        testing.chaos_proxy(server.url, seed=5, weights={Fault.PASS: 1}) as proxy,
        connect(proxy.url) as client,
        server.client() as writing,
    ):
        orders = writing.topic("orders")
        await orders.create()
        following = asyncio.create_task(followed(client.topic("orders"), 300))
        for number in range(300):
            await orders.write(number)
            if chance.random() < 0.1:
                proxy.cut_all()
            proxy.down = chance.random() < 0.3
        proxy.down = False
        assert await following == list(range(300))


@pytest.mark.parametrize("seed", [1, 2, 3])
@on_loop
async def test_a_follower_of_many_topics_sees_each_event_once(seed: int) -> None:
    """Over an event stream that is cut again and again, with topics that join on the way."""
    writes = 1_000
    weights = {Fault.PASS: 6, Fault.CUT: 1, Fault.LOSE: 1, Fault.TRUNCATE: 3}
    chance = random.Random(seed)
    async with bad_network(seed, weights) as (server, proxy, client), server.client() as writing:
        await writing.topic("t:0").create()
        seen: dict[str, list[int]] = {}

        async def follow() -> None:
            async for topic, event in client.follow(["t:*"]):
                assert isinstance(event, Record), event
                seen.setdefault(topic, []).append(event.seq)
                if sum(map(len, seen.values())) == writes:
                    return

        following = asyncio.create_task(follow())
        for number in range(writes):
            await writing.topic(f"t:{number % (1 + number // 100)}").write("x" * 100)
            if chance.random() < 0.03:
                tried = proxy.faults.total()
                proxy.cut_all()
                # However fast the writer is, the follower tries again after each cut.
                await until(lambda tried=tried: proxy.faults.total() > tried)
        await following
        assert len(seen) == 10
        for topic, seqs in seen.items():
            assert seqs == list(range(1, (await writing.topic(topic).state()).head_seq + 1))
        assert proxy.faults.total() > 20


@on_loop
async def test_a_follower_of_many_topics_survives_restarts() -> None:
    """The server forgets its sessions; the follower remembers its places."""
    async with testing.server() as server, server.client(attempts_max=100) as client:
        names = ["a", "b", "c"]
        for name in names:
            await client.topic(name).create()
        seen: dict[str, list[object]] = {name: [] for name in names}

        async def follow() -> None:
            async for topic, event in client.follow(names):
                assert isinstance(event, Record), event
                seen[topic].append(event.data)
                if sum(map(len, seen.values())) == 300:
                    return

        following = asyncio.create_task(follow())
        async with client.producer(linger_ms=0, batch_records_max=10) as producer:
            for number in range(300):
                await producer.send(names[number % 3], number)
                if number % 60 == 59:
                    # It is in the middle of its stream, of a session that the next server does not know.
                    await until(lambda least=number // 2: sum(map(len, seen.values())) > least)
                    await server.stop()
                    await server.start()
        await following
        assert seen == {name: list(range(at, 300, 3)) for at, name in enumerate(names)}


@on_loop
async def test_a_restart_of_the_server_is_survived() -> None:
    async with testing.server() as server, server.client(attempts_max=100) as client:
        ticks = client.topic("ticks")
        await ticks.create(cap_records=50)
        events = ticks.follow()
        seen: list[int] = []

        async def follow() -> None:
            async for event in events:
                if isinstance(event, Gap):
                    seen.extend(range(event.gap_from, event.gap_to + 1))
                else:
                    seen.append(event.seq)
                if seen[-1] == 400:
                    return

        following = asyncio.create_task(follow())
        async with ticks.producer(linger_ms=0, batch_records_max=10) as producer:
            for number in range(400):
                await producer.send(number)
                if number % 100 == 99:
                    await server.stop()
                    await server.start()
        await following
        assert seen == list(range(1, 401))
