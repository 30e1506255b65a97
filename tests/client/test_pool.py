from __future__ import annotations

import asyncio

import pytest

from tests.client.rig import on_loop, settle, soon
from tests.client.scripted import Side, answering, keep_answering, scripted
from topics.client import pool as pools
from topics.client.address import Address
from topics.client.connection import Connection
from topics.client.pool import Pool
from topics.errors import ConnectionFailed, ShuttingDown, TimedOut

QUESTION = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


def far() -> float:
    return asyncio.get_running_loop().time() + 60


async def use(pool: Pool) -> Connection:
    connection = await soon(pool.take(far()))
    await connection.exchange(QUESTION, 60, far())
    return connection


@on_loop
async def test_the_connection_used_last_is_used_next() -> None:
    async with scripted(keep_answering) as server:
        pool = Pool(server.address, 4, 5, None)
        first, second = await use(pool), await use(pool)
        pool.give(first)
        pool.give(second)
        assert await use(pool) is second
        assert (server.connection_count, len(pool)) == (2, 2)
        await pool.close()


@on_loop
async def test_with_all_taken_callers_wait_in_order() -> None:
    async with scripted(keep_answering) as server:
        pool = Pool(server.address, 1, 5, None)
        taken = await use(pool)
        waiting = [asyncio.create_task(pool.take(far())) for _ in range(3)]
        await settle()
        for task in waiting:
            pool.give(taken)
            assert await soon(task) is taken
        with pytest.raises(TimedOut, match="all 1 connections") as late:
            await pool.take(asyncio.get_running_loop().time() + 0.01)
        assert late.value.detail == {"sent": False}
        pool.give(taken)
        assert (await use(pool)) is taken
        await pool.close()


@on_loop
async def test_who_gives_up_waiting_takes_nothing_with_them() -> None:
    async with scripted(keep_answering) as server:
        pool = Pool(server.address, 1, 5, None)
        taken = await use(pool)
        waiting = asyncio.create_task(pool.take(far()))
        await settle()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        pool.give(taken)
        assert await use(pool) is taken
        await pool.close()


@on_loop
async def test_a_dead_connection_is_not_handed_out() -> None:
    async with scripted(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), keep_answering) as server:
        pool = Pool(server.address, 4, 5, None)
        first = await use(pool)
        pool.give(first)
        await soon(first.closed())
        assert await use(pool) is not first
        assert len(pool) == 1
        await pool.close()


@on_loop
async def test_an_old_idle_connection_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scripted(keep_answering) as server:
        pool = Pool(server.address, 4, 5, None)
        first = await use(pool)
        pool.give(first)
        monkeypatch.setattr(pools, "IDLE_S_MAX", -1.0)
        assert await use(pool) is not first
        await soon(first.closed())
        await pool.close()


@on_loop
async def test_closing_ends_every_call_and_every_socket() -> None:
    async def silent(side: Side) -> None:
        await side.request()
        await side.ended()

    async with scripted(silent) as server:
        pool = Pool(server.address, 2, 5, None)
        connections = [await pool.take(far()) for _ in range(2)]
        asking = [asyncio.create_task(each.exchange(QUESTION, 60, far())) for each in connections]
        waiting = asyncio.create_task(pool.take(far()))
        await settle()
        await soon(pool.close())
        for call in asking:
            with pytest.raises(ShuttingDown):
                await call
        for each in connections:
            pool.give(each)
        with pytest.raises(ShuttingDown):
            await soon(waiting)
        with pytest.raises(ShuttingDown):
            await pool.take(far())
        assert len(pool) == 0


@on_loop
async def test_nobody_there() -> None:
    async with scripted(keep_answering) as server:
        address = server.address
    pool = Pool(address, 1, 5, None)
    for _ in range(2):
        with pytest.raises(ConnectionFailed, match=r"cannot connect to http://127\.0\.0\.1:\d+: ") as failed:
            await soon(pool.take(far()))
        assert failed.value.detail == {"sent": False}
    nowhere = Pool(Address("no-such-host.invalid", 80, tls=False), 1, 5, None)
    with pytest.raises(ConnectionFailed, match=r"no-such-host\.invalid"):
        await nowhere.take(far())


@on_loop
async def test_a_server_that_does_not_take_the_connection_in_time() -> None:
    async with scripted(keep_answering) as server:
        pool = Pool(server.address, 1, 0.0, None)
        with pytest.raises(TimedOut, match="did not take the connection in time") as late:
            await soon(pool.take(far()))
        assert late.value.detail == {"sent": False}
        assert len(pool) == 0


@on_loop
async def test_a_connection_that_is_made_while_the_client_is_closed_is_not_kept() -> None:
    ended = asyncio.Event()

    async def note_the_end(side: Side) -> None:
        await side.ended()
        ended.set()

    async with scripted(note_the_end) as server:
        pool = Pool(server.address, 1, 5, None)
        taking = asyncio.create_task(pool.take(far()))
        await asyncio.sleep(0)
        await pool.close()
        with pytest.raises(ShuttingDown, match="the client is closed"):
            await soon(taking)
        await soon(ended.wait())
        assert len(pool) == 0
