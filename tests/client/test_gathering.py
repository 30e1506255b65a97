from __future__ import annotations

import asyncio
from typing import Self

import pytest

from tests.client.rig import on_loop, settle, soon, take
from topics.client.gathering import Gathering


class Counted:
    """Numbers, and a note of what was asked for."""

    def __init__(self, numbers: list[int], error: Exception | None = None) -> None:
        self.numbers = list(numbers)
        self.error = error
        self.closed = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> int:
        await asyncio.sleep(0)
        if self.numbers:
            return self.numbers.pop(0)
        if self.error is not None:
            raise self.error
        raise StopAsyncIteration

    async def aclose(self) -> None:
        self.closed = True


class Silent(Counted):
    async def __anext__(self) -> int:
        await asyncio.Event().wait()
        raise AssertionError


@on_loop
async def test_each_source_keeps_its_order_and_all_end_it() -> None:
    sources = [Counted([1, 2, 3]), Counted([10, 20, 30])]
    gathering = Gathering(2, *sources)
    found = [number async for number in gathering]
    assert [number for number in found if number < 10] == [1, 2, 3]
    assert [number for number in found if number >= 10] == [10, 20, 30]
    assert all(source.closed for source in sources)
    await gathering.aclose()


@on_loop
async def test_a_slow_reader_holds_its_sources_up() -> None:
    source = Counted(list(range(100)))
    gathering = Gathering(3, source)
    assert await take(gathering, 1) == [0]
    await settle()
    # One read, three in the queue, one in the hand of the task.
    assert len(source.numbers) == 95
    await gathering.aclose()
    assert source.closed


@on_loop
async def test_nothing_begins_before_it_is_asked_for() -> None:
    source = Counted([1])
    gathering = Gathering(3, source)
    await settle()
    assert source.numbers == [1]
    assert await take(gathering, 1) == [1]
    await gathering.aclose()


@on_loop
async def test_an_error_comes_behind_what_came_before_it() -> None:
    gathering = Gathering(3, Counted([1], LookupError("lost")), Silent([]))
    assert await take(gathering, 1) == [1]
    with pytest.raises(LookupError, match="lost"):
        await soon(anext(gathering))
    await gathering.aclose()


@on_loop
async def test_a_source_may_come_later() -> None:
    gathering: Gathering[int] = Gathering(3, Silent([]))
    waiting = asyncio.ensure_future(anext(gathering))
    await settle()
    gathering.add(Counted([7]))
    assert await soon(waiting) == 7
    await gathering.aclose()


@on_loop
async def test_closing_leaves_no_task_behind() -> None:
    before = asyncio.all_tasks()
    gathering = Gathering(1, Counted(list(range(9))), Silent([]))
    await take(gathering, 2)
    await gathering.aclose()
    await gathering.aclose()
    assert asyncio.all_tasks() == before
    with pytest.raises(StopAsyncIteration):
        await soon(anext(gathering))
