"""Who gets the next free process, and what becomes of processes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.client.rig import on_loop, soon
from topics import errors
from topics.sqlengine import querypool
from topics.sqlengine.querypool import QueryPool

LONG_MS = 600_000


class Process:
    """Starts at once, and does nothing."""

    def __init__(self) -> None:
        self.usable = True
        self.closed = self.killed = self.started = False

    def start(self) -> None:
        self.started = True

    def kill(self) -> None:
        self.killed = True

    def close(self) -> None:
        self.closed = True


class Failing(Process):
    def start(self) -> None:
        raise OSError("no memory for a process")


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as made:
        yield made


def pool_of(threads: ThreadPoolExecutor, size: int, make: Any = Process) -> QueryPool:
    return QueryPool(size, make, threads)


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@on_loop
async def test_key_that_floods_does_not_keep_another_key_waiting(threads: ThreadPoolExecutor) -> None:
    pool = pool_of(threads, 2)
    running = [await pool.take("flood", LONG_MS) for _ in range(2)]
    order: list[str] = []

    async def ask(owner: str) -> None:
        process = await pool.take(owner, LONG_MS)
        order.append(owner)
        running.append(process)

    asking = [asyncio.ensure_future(ask("flood")) for _ in range(10)]
    await turns()
    asking += [asyncio.ensure_future(ask("quiet")), asyncio.ensure_future(ask("calm"))]
    await turns()
    pool.give("flood", running.pop(0))
    await turns()
    assert order == ["quiet"]
    pool.give("flood", running.pop(0))
    await turns()
    assert order == ["quiet", "calm"]
    for owner in ("quiet", "calm", *["flood"] * 10):
        pool.give(owner, running.pop(0))
        await turns()
    await soon(asyncio.gather(*asking))
    assert order[2:] == ["flood"] * 10
    pool.close()


@on_loop
async def test_keys_take_turns_at_the_only_process(threads: ThreadPoolExecutor) -> None:
    pool = pool_of(threads, 1)
    process = await pool.take("flood", LONG_MS)
    order: list[str] = []

    async def ask(owner: str) -> None:
        taken = await pool.take(owner, LONG_MS)
        order.append(owner)
        pool.give(owner, taken)

    asking = [asyncio.ensure_future(ask(owner)) for owner in ["flood"] * 4 + ["quiet", "quiet"]]
    await turns()
    pool.give("flood", process)
    await soon(asyncio.gather(*asking))
    assert order == ["quiet", "flood", "quiet", "flood", "flood", "flood"]
    assert pool._served == {} and not pool._running, "keys that left are forgotten"
    pool.close()


@on_loop
async def test_one_key_alone_uses_all_processes(threads: ThreadPoolExecutor) -> None:
    pool = pool_of(threads, 3)
    taken = [await pool.take("only", LONG_MS) for _ in range(3)]
    assert len(set(map(id, taken))) == 3
    pool.give("only", taken[1])
    assert await pool.take("only", LONG_MS) is taken[1], "a process that runs is used again"
    pool.close()


@on_loop
async def test_queries_of_one_key_take_their_turns_in_order(threads: ThreadPoolExecutor) -> None:
    pool = pool_of(threads, 1)
    process = await pool.take("k", LONG_MS)
    order: list[int] = []

    async def ask(number: int) -> None:
        taken = await pool.take("k", LONG_MS)
        order.append(number)
        pool.give("k", taken)

    asking = [asyncio.ensure_future(ask(number)) for number in range(4)]
    await turns()
    pool.give("k", process)
    await soon(asyncio.gather(*asking))
    assert order == [0, 1, 2, 3]
    pool.close()


@on_loop
async def test_query_that_no_process_is_free_for_is_throttled(threads: ThreadPoolExecutor) -> None:
    pool = pool_of(threads, 1)
    process = await pool.take("a", LONG_MS)
    with pytest.raises(errors.Throttled, match="TOPICS_SQL_QUERIES_MAX is 1") as refused:
        await pool.take("b", 1)
    assert refused.value.detail == {"limit": "sql_queries_max", "max": 1}
    pool.give("a", process)
    assert await pool.take("b", 1) is process, "the one that gave up keeps nothing"
    pool.close()


@on_loop
async def test_queries_that_wait_are_bounded(threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(querypool, "QUERIES_WAITING_PER_KEY_MAX", 2)
    monkeypatch.setattr(querypool, "QUERIES_WAITING_MAX", 3)
    pool = pool_of(threads, 1)
    await pool.take("a", LONG_MS)
    asking = [asyncio.ensure_future(pool.take("a", LONG_MS)) for _ in range(2)]
    await turns()
    with pytest.raises(errors.Throttled, match="too many queries wait"):
        await pool.take("a", LONG_MS)
    asking.append(asyncio.ensure_future(pool.take("b", LONG_MS)))
    await turns()
    with pytest.raises(errors.Throttled, match="too many queries wait"):
        await pool.take("c", LONG_MS)
    pool.close()
    for each in asking:
        with pytest.raises(errors.ShuttingDown):
            await each
    with pytest.raises(errors.ShuttingDown):
        await pool.take("a", LONG_MS)


@on_loop
async def test_client_that_leaves_gives_its_turn_on(threads: ThreadPoolExecutor) -> None:
    pool = pool_of(threads, 1)
    process = await pool.take("a", LONG_MS)
    first = asyncio.ensure_future(pool.take("b", LONG_MS))
    second = asyncio.ensure_future(pool.take("c", LONG_MS))
    await turns()
    pool.give("a", process)
    # Its turn has come, and it does not know yet.
    first.cancel()
    await asyncio.wait({first})
    assert first.cancelled()
    assert await soon(second) is process
    third = asyncio.ensure_future(pool.take("d", LONG_MS))
    await turns()
    third.cancel()
    await asyncio.wait({third})
    pool.give("c", process)
    assert await pool.take("e", LONG_MS) is process
    pool.close()


@on_loop
async def test_worn_process_is_replaced_ahead_of_the_next_query(threads: ThreadPoolExecutor) -> None:
    pool = pool_of(threads, 1)
    worn: Any = await pool.take("a", LONG_MS)
    worn.usable, worn.started = False, True
    pool.give("a", worn)
    fresh: Any = await pool.take("a", LONG_MS)
    assert fresh is not worn and worn.killed
    threads.submit(lambda: None).result()
    assert worn.closed and fresh.started
    pool.give("a", fresh)
    fresh.usable = False
    assert await pool.take("a", LONG_MS) is not fresh, "one that died while nobody used it"
    pool.close()


@on_loop
async def test_process_that_cannot_start_ahead_is_not_used(threads: ThreadPoolExecutor) -> None:
    pool = pool_of(threads, 1, Failing)
    worn: Any = await pool.take("a", LONG_MS)
    worn.usable, worn.started = False, True
    pool.give("a", worn)
    threads.submit(lambda: None).result()
    fresh: Any = await pool.take("a", LONG_MS)
    assert fresh.killed
    pool.close()


@on_loop
async def test_process_that_never_started_is_not_replaced_ahead(threads: ThreadPoolExecutor) -> None:
    pool = pool_of(threads, 1)
    failed: Any = await pool.take("a", LONG_MS)
    failed.usable = False
    pool.give("a", failed)
    assert pool._idle == []
    pool.close()


@on_loop
async def test_free_processes_end_but_for_one(threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(querypool, "IDLE_SECONDS", 0)
    pool = pool_of(threads, 2)
    taken: list[Any] = [await pool.take("a", LONG_MS) for _ in range(2)]
    for process in taken:
        pool.give("a", process)
    while not taken[1].closed:
        await asyncio.sleep(0)
    assert not taken[0].killed
    assert await pool.take("a", LONG_MS) is taken[0]
    pool.give("a", taken[0])
    pool.close()
    assert taken[0].killed
    late: Any = Process()
    pool._running["a"] += 1
    pool.give("a", late)
    assert late.killed, "the pool is closed"
