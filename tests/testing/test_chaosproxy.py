from __future__ import annotations

import asyncio

import pytest

from tests.client.rig import on_loop
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
