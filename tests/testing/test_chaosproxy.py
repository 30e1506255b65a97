from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest

from tests.client.rig import on_loop, settle
from topics import connect, errors, testing
from topics.testing import Fault


@pytest.mark.parametrize(
    ("fault", "done"),
    [(Fault.LOSE, 1), (Fault.TRUNCATE, 1), (Fault.REPEAT, 2), (Fault.DELAY, 1), (Fault.PASS, 1)],
)
@on_loop
async def test_what_each_fault_does_to_a_write(fault: Fault, done: int) -> None:
    async with (
        testing.server() as server,
        testing.chaos_proxy(server.url, weights={fault: 1}) as proxy,
        connect(proxy.url) as client,
        server.client() as straight,
    ):
        if fault in (Fault.LOSE, Fault.TRUNCATE):
            with pytest.raises(errors.ConnectionFailed):
                await client.topic("orders").write(1)
        else:
            await client.topic("orders").write(1)
        assert (await straight.topic("orders").state()).head_seq == done
        assert proxy.faults == {fault: 1}
        proxy.calm()
        assert (await client.topic("orders").write(2)).first_seq == done + 1


@on_loop
async def test_a_cut_request_is_not_carried_out() -> None:
    async with (
        testing.server() as server,
        testing.chaos_proxy(server.url, seed=1, weights={Fault.CUT: 1}) as proxy,
        connect(proxy.url) as client,
        server.client() as straight,
    ):
        for _ in range(20):
            with pytest.raises(errors.ConnectionFailed):
                await client.topic("orders").write(1)
        assert [state async for state in straight.topics()] == []


@on_loop
async def test_a_server_that_is_away() -> None:
    async with (
        testing.server() as server,
        testing.chaos_proxy(server.url, weights={Fault.PASS: 1}) as proxy,
        connect(proxy.url, attempts_max=1) as client,
    ):
        orders = client.topic("orders")
        await orders.write(1)
        proxy.down = True
        proxy.cut_all()
        for _ in range(2):
            # The first may go by the connection that is cut; the second has none, and finds nobody.
            with pytest.raises(errors.ConnectionFailed):
                await orders.write(2)
        proxy.down = False
        assert (await orders.write(2)).first_seq == 2


@on_loop
async def test_the_same_seed_does_the_same() -> None:
    drawn = []
    for _ in range(2):
        async with (
            testing.server() as server,
            testing.chaos_proxy(server.url, seed=3) as proxy,
            connect(proxy.url, attempts_max=20) as client,
        ):
            for number in range(50):
                await client.topic("orders").write(number, idempotency_key=str(number))
            drawn.append(dict(proxy.faults))
    assert drawn[0] == drawn[1] and len(drawn[0]) > 3


@on_loop
async def test_nothing_is_left_behind() -> None:
    async with testing.server() as server:
        before = asyncio.all_tasks()
        async with testing.chaos_proxy(server.url) as proxy, connect(proxy.url, attempts_max=20) as client:
            await client.topic("orders").create()
        left = {task for task in asyncio.all_tasks() - before if "chaosproxy" in repr(task)}
        assert left == set()


@asynccontextmanager
async def called(url: str) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port, limit=1 << 20)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


@on_loop
async def test_messages_may_come_in_any_pieces() -> None:
    async with testing.server() as server, testing.chaos_proxy(server.url, weights={Fault.PASS: 1}) as proxy:
        body = json.dumps({"records": [{"data": "x" * 300_000}]}).encode()
        head = "POST /v0/topics/t HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        message = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
        async with called(proxy.url) as (reader, writer):
            for piece in (message[:20], message[20:200_000], message[200_000:]):
                writer.write(piece)
                await writer.drain()
                await settle()
            assert (await reader.readline()).startswith(b"HTTP/1.1 201 ")
        async with called(proxy.url) as (reader, writer):
            writer.write(b"POST /v0/topics/t/diff HTTP/1.1\r\nHost: localhost\r\n\r\n")
            answer = await reader.readuntil(b'"caught_up":true')
            assert answer.count(b"x" * 300_000) == 1, "a large answer comes whole"


@on_loop
async def test_a_client_that_leaves_in_the_middle_of_its_request_has_asked_nothing() -> None:
    async with (
        testing.server() as server,
        testing.chaos_proxy(server.url, weights={Fault.PASS: 1}) as proxy,
        server.client() as straight,
    ):
        async with called(proxy.url) as (reader, writer):
            writer.write(b"POST /v0/topics/t HTTP/1.1\r\nContent-Length: 99\r\n\r\n{")
            writer.write_eof()
            assert await reader.read() == b""
        assert [state async for state in straight.topics()] == []


@on_loop
async def test_a_stream_that_ends_ends_behind_the_proxy_as_well() -> None:
    async with (
        testing.server() as server,
        testing.chaos_proxy(server.url, weights={Fault.PASS: 1}) as proxy,
        called(proxy.url) as (reader, writer),
    ):
        writer.write(b"GET /v0/backup HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert (await reader.read()).endswith(b"0\r\n\r\n")
