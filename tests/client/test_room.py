from __future__ import annotations

import asyncio

import pytest

from tests.client.rig import on_loop, settle, soon
from topics.client.room import Room


@on_loop
async def test_who_finds_no_room_waits_for_it() -> None:
    room = Room(10)
    await soon(room.take(6))
    await soon(room.take(4))
    waiting = asyncio.create_task(room.take(5))
    await settle()
    assert not waiting.done()
    room.give(4)
    await settle()
    assert not waiting.done()
    room.give(6)
    await soon(waiting)
    assert room.used_bytes == 5


@on_loop
async def test_small_ones_do_not_overtake_a_large_one() -> None:
    room = Room(10)
    await room.take(6)
    order: list[int] = []

    async def enter(size: int) -> None:
        await room.take(size)
        order.append(size)

    tasks = []
    for size in (8, 1, 2):
        tasks.append(asyncio.create_task(enter(size)))
        await settle()
    assert order == []
    room.give(6)
    await settle()
    assert order == [8, 1]
    room.give(8)
    await soon(asyncio.gather(*tasks))
    assert (order, room.used_bytes) == ([8, 1, 2], 3)


@on_loop
async def test_one_larger_than_all_room_gets_in_alone() -> None:
    room = Room(10)
    await soon(room.take(50))
    waiting = asyncio.create_task(room.take(1))
    await settle()
    assert not waiting.done()
    room.give(50)
    await soon(waiting)


@pytest.mark.parametrize("let_in_first", [False, True])
@on_loop
async def test_who_gives_up_leaves_their_room_to_the_next(let_in_first: bool) -> None:
    room = Room(10)
    await room.take(10)
    first, second = asyncio.create_task(room.take(10)), asyncio.create_task(room.take(10))
    await settle()
    if let_in_first:
        room.give(10)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    if not let_in_first:
        room.give(10)
    await soon(second)
    assert room.used_bytes == 10


@on_loop
async def test_who_is_cancelled_in_the_moment_in_which_room_is_given_takes_none() -> None:
    room = Room(10)
    await room.take(10)
    first, second = asyncio.create_task(room.take(10)), asyncio.create_task(room.take(10))
    await settle()
    first.cancel()
    room.give(10)
    with pytest.raises(asyncio.CancelledError):
        await soon(first)
    await soon(second)
    assert room.used_bytes == 10
    room.give(10)
    await soon(room.take(10))
