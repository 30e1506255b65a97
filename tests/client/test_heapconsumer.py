"""A consumer of a heap whose program is slow, whose server goes away, and whose client is closed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager

import pytest

import topics
from tests.client.rig import on_loop, settle, soon
from topics import errors, testing
from topics.client import backoff
from topics.testing import TestServer

LEASE_MS = 90
each_way = pytest.mark.parametrize("way", ["http", "grpc"])


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff, "FIRST_MS", 1)
    monkeypatch.setattr(backoff, "LONGEST_MS", 1)


@asynccontextmanager
async def served(way: str, *payloads: object, **settings: int) -> AsyncIterator[tuple[TestServer, topics.Heap]]:
    """A heap with short leases; the server's time stands still, that of its consumer goes on."""
    async with testing.server(no_grpc=way != "grpc", drain_ms=1, **settings) as server:
        how = {"grpc": server.grpc_address} if way == "grpc" else {}
        async with server.client(attempts_max=1, **how) as client:
            heap = client.heap("jobs")
            await heap.create(lease_ms=LEASE_MS)
            if payloads:
                await heap.enqueue_many([{"payload": each, "priority": n} for n, each in enumerate(payloads)])
            yield server, heap


async def until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0)


async def until_extended(server: TestServer, heap: topics.Heap, count: int) -> None:
    """Leases that are extended end later than one that begins now."""
    now_ms = server.clock.now_ms()
    while sum((each.lease_deadline_ms or 0) >= now_ms + LEASE_MS for each in (await heap.peek()).messages) < count:
        await asyncio.sleep(0)


@each_way
@on_loop
async def test_what_waits_for_a_slow_program_is_kept_for_it(way: str) -> None:
    async with served(way, "a", "b", "c") as (server, heap), aclosing(heap.pop(prefetch=3)) as messages:
        async with await soon(anext(messages)) as first:
            for _ in range(2):
                server.pass_time(LEASE_MS - 1)
                await soon(until_extended(server, heap, 3))
            assert not first.lost
        found = [await soon(anext(messages)), await soon(anext(messages))]
        assert [(message.data, message.attempts) for message in found] == [("b", 0), ("c", 0)]
        assert [await message.ack() for message in found] == [True, True]
        assert (await heap.stats()).total_acks == 3


@each_way
@on_loop
async def test_what_is_lost_while_it_waits_is_not_handed_out(way: str) -> None:
    async with served(way, "a", "b", "c") as (_, heap), aclosing(heap.pop(prefetch=3)) as messages:
        async with await soon(anext(messages)) as first:
            assert (await heap.purge()).purged == 3
            await soon(until(lambda: first.lost))
        assert not first.settled, "there is nothing to ack"
        for data in ("d", "e", "f"):
            await heap.enqueue(data)
        while way == "grpc" and (await heap.stats()).in_flight_messages < 3:
            # All that was lost has made room for another one.
            await asyncio.sleep(0)
        assert {(await soon(anext(messages))).data for _ in range(3)} == {"d", "e", "f"}


@on_loop
async def test_a_consumer_over_http_goes_on_when_its_server_is_back() -> None:
    async with served("http", "a", "b", "c") as (server, heap), aclosing(heap.pop(prefetch=2)) as messages:
        first = await soon(anext(messages))
        waiting = await soon(anext(messages))
        assert await first.ack()
        third = asyncio.ensure_future(anext(messages))
        assert (await soon(third)).data == "c"
        assert await (await third).ack()
        more = asyncio.ensure_future(anext(messages))
        await settle()
        await server.stop()
        await soon(until(lambda: waiting.lost))
        assert await waiting.ack() is False, "somebody else gets it, so nothing is said about it"
        await server.start()
        server.pass_time(LEASE_MS)
        again = await soon(more)
        assert (again.data, again.id) == ("b", waiting.id)


@each_way
@on_loop
async def test_a_consumer_ends_with_its_client(way: str) -> None:
    async with testing.server(no_grpc=way != "grpc", drain_ms=1) as server:
        how = {"grpc": server.grpc_address} if way == "grpc" else {}
        async with server.client(**how) as client:
            heap = client.heap("jobs")
            await heap.create()
            await heap.enqueue(1)
            messages = heap.pop()
            assert await (await soon(anext(messages))).ack()
            waiting = asyncio.ensure_future(anext(messages))
            await settle()
        with pytest.raises(errors.ShuttingDown, match="client"):
            await soon(waiting)


@on_loop
async def test_a_block_that_raises_gives_its_message_back() -> None:
    async with served("http", "bad") as (server, heap), aclosing(heap.pop()) as messages:
        message = await soon(anext(messages))
        assert repr(message).startswith("<Message jobs/") and repr(message).endswith(" priority 0>")
        assert message.enqueued_ms == server.clock.now_ms() and message.producer is None
        with pytest.raises(ValueError, match="broken"):
            async with message:
                raise ValueError("broken")
        assert message.settled and (await heap.stats()).total_nacks == 1


@each_way
@on_loop
async def test_a_block_that_is_cancelled_gives_its_message_back_uncounted(way: str) -> None:
    async with served(way, "slow") as (_, heap), aclosing(heap.pop()) as messages:
        message = await soon(anext(messages))
        begun = asyncio.Event()

        async def work() -> None:
            async with message:
                begun.set()
                await asyncio.Event().wait()

        working = asyncio.create_task(work())
        await soon(begun.wait())
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await soon(working)
        assert message.settled and await message.extend() is False, "there is no lease to extend"
        again = await soon(anext(messages))
        assert (again.id, again.attempts) == (message.id, 0)


@on_loop
async def test_who_waits_for_longer_than_a_pop_may_asks_again() -> None:
    async with served("http") as (server, heap), aclosing(heap.pop()) as messages:
        waiting = asyncio.ensure_future(anext(messages))
        heaps = server._server._context.host.engine.heaps  # type: ignore[union-attr]
        await soon(until(lambda: heaps.waiting_count() > 0))
        server.pass_time(30_000)
        await settle()
        await heap.enqueue("late")
        assert (await soon(waiting)).data == "late"


@each_way
@on_loop
async def test_what_is_more_than_the_server_takes_at_once_is_said_in_parts(way: str) -> None:
    async with served(way, *range(8), max_claim=3) as (server, heap):
        async with aclosing(heap.pop(prefetch=8)) as messages:
            found = [await soon(anext(messages)) for _ in range(8)]
            for message in found:
                await message.__aenter__()
            server.pass_time(LEASE_MS - 1)
            await soon(until_extended(server, heap, 8))
            assert await asyncio.gather(*(message.ack() for message in found[:4])) == [True] * 4
            assert not any(message.lost for message in found)
        stats = await heap.stats()
        assert (stats.total_acks, stats.ready_messages, stats.in_flight_messages) == (4, 4, 0)
