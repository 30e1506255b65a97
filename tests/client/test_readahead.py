from __future__ import annotations

import asyncio
from typing import Self

import pytest

from tests.client.rig import on_loop, settle, soon, take
from topics.client.readahead import ReadAhead


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
async def test_it_keeps_the_order_and_ends_with_its_source() -> None:
    source = Counted([1, 2, 3])
    stream = ReadAhead(2, source)
    assert [number async for number in stream] == [1, 2, 3]
    assert source.closed
    with pytest.raises(StopAsyncIteration):
        await soon(anext(stream))
    await stream.aclose()


@on_loop
async def test_a_slow_reader_holds_its_source_up() -> None:
    source = Counted(list(range(100)))
    stream = ReadAhead(3, source)
    assert await take(stream, 1) == [0]
    await settle()
    # One read, three in the queue, one in the hand of the task.
    assert len(source.numbers) == 95
    await stream.aclose()
    assert source.closed


@on_loop
async def test_nothing_begins_before_it_is_asked_for() -> None:
    source = Counted([1])
    stream = ReadAhead(3, source)
    await settle()
    assert source.numbers == [1]
    assert await take(stream, 1) == [1]
    await stream.aclose()


@on_loop
async def test_an_error_comes_behind_what_came_before_it() -> None:
    stream = ReadAhead(3, Counted([1], LookupError("lost")))
    await take(stream, 1)
    for _ in range(2):
        with pytest.raises(LookupError, match="lost"):
            await soon(anext(stream))
    await stream.aclose()


@on_loop
async def test_closing_leaves_no_task_behind() -> None:
    for source in (Counted(list(range(9))), Silent([])):
        before = asyncio.all_tasks()
        stream = ReadAhead(1, source)
        parked = asyncio.create_task(anext(stream))
        await settle()
        parked.cancel()
        await asyncio.gather(parked, return_exceptions=True)
        await stream.aclose()
        await stream.aclose()
        assert asyncio.all_tasks() == before
        assert source.closed
        with pytest.raises(StopAsyncIteration):
            await soon(anext(stream))


@on_loop
async def test_closing_before_anything_is_asked_for_asks_for_nothing() -> None:
    source = Counted([1, 2])
    stream = ReadAhead(1, source)
    await stream.aclose()
    with pytest.raises(StopAsyncIteration):
        await soon(anext(stream))
    assert source.numbers == [1, 2]
