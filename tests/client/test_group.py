"""A consumer group whose server goes away; the rest is in tests/contract/test_sdk_group.py."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from tests.client.rig import on_loop, settle, soon
from topics import errors, testing
from topics.client import backoff


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff, "FIRST_MS", 1)
    monkeypatch.setattr(backoff, "LONGEST_MS", 1)


@on_loop
async def test_a_loop_goes_on_when_the_server_is_back_and_its_ack_counts() -> None:
    async with testing.server() as server, server.client(attempts_max=1) as client:
        orders = client.topic("orders")
        await orders.write_many([{"data": number} for number in (1, 2)])
        group = orders.group("billing")
        async with aclosing(group.consume(1)) as batches:
            assert (await soon(anext(batches))).first_seq == 1
            await server.stop()
            waiting = asyncio.ensure_future(anext(batches))
            await settle()
            await server.start()
            assert (await soon(waiting)).first_seq == 2
            assert (await group.state()).committed_seq == 1, "the batch before was acked"
            await server.stop()
        await server.start()
        server.pass_time(60_001)
        assert (await group.take()).first_seq == 2, "what nobody could be told of comes again when its claim is over"


@on_loop
async def test_a_loop_asks_again_when_nothing_came() -> None:
    async with testing.server() as server, server.client() as client:
        orders = client.topic("orders")
        await orders.create()
        async with aclosing(orders.group("billing").consume()) as batches:
            waiting = asyncio.ensure_future(anext(batches))
            while not await orders.groups():
                await settle()
            await settle()
            server.pass_time(30_000)
            await settle()
            assert not waiting.done(), "there is no such thing as an empty batch"
            await orders.write("late")
            assert [record.data for record in (await soon(waiting)).records] == ["late"]


@on_loop
async def test_a_loop_ends_with_its_client() -> None:
    async with testing.server() as server:
        async with server.client() as client:
            orders = client.topic("orders")
            await orders.create()
            batches = orders.group("billing").consume()
            waiting = asyncio.ensure_future(anext(batches))
            while not await orders.groups():
                await settle()
        with pytest.raises(errors.ShuttingDown, match="client"):
            await soon(waiting)


@on_loop
async def test_what_names_nothing_is_refused_before_it_is_sent() -> None:
    async with testing.server() as server, server.client() as client:
        orders = client.topic("orders")
        await orders.write(1)
        group = orders.group("billing")
        await group.take()
        with pytest.raises(errors.InvalidRequest, match="upto_seq goes with a batch; by seq, give the seq alone"):
            await group.ack(1, upto_seq=1)
        with pytest.raises(errors.InvalidRequest, match="group must be a name, not ''"):
            await orders.group("").take()
        assert (await group.extend(1)).extended == 1, "for as long as the topic says"
        assert (await group.state()).committed_seq == 0
