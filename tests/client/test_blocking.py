from __future__ import annotations

import asyncio
import gc
import inspect
import threading
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.client.rig import GUARD_SECONDS
from topics.client.blocking import Face, Portal, blocking, iterating


class Counter:
    """Counts, and remembers what happened to it."""

    def __init__(self) -> None:
        self.threads: set[int] = set()
        self.begun = threading.Event()
        self.ended = threading.Event()

    async def add(self, left: int, *, right: int = 1) -> int:
        """The sum."""
        await asyncio.sleep(0)
        self.threads.add(threading.get_ident())
        return left + right

    async def fail(self) -> None:
        raise LookupError("no")

    async def hang(self) -> None:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.ended.set()

    async def count(self, upto: int) -> AsyncIterator[int]:
        """From 0 on."""
        try:
            for number in range(upto):
                yield number
        finally:
            self.ended.set()


class PlainCounter(Face[Counter]):
    add = blocking(Counter.add)
    fail = blocking(Counter.fail)
    hang = blocking(Counter.hang)
    count = iterating(Counter.count)


@pytest.fixture
def portal() -> Iterator[Portal]:
    portal = Portal()
    yield portal
    portal.close()


def test_a_coroutine_gives_its_result(portal: Portal) -> None:
    counter = PlainCounter(Counter(), portal)
    assert counter.add(2, right=3) == 5
    assert threading.get_ident() not in counter._behind.threads


def test_all_calls_run_on_one_loop(portal: Portal) -> None:
    counter = PlainCounter(Counter(), portal)
    callers = [threading.Thread(target=counter.add, args=(1,)) for _ in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert len(counter._behind.threads) == 1


def test_an_error_is_raised_where_the_call_was_made(portal: Portal) -> None:
    with pytest.raises(LookupError, match="no"):
        PlainCounter(Counter(), portal).fail()


def test_an_async_iterator_becomes_an_iterator(portal: Portal) -> None:
    counter = PlainCounter(Counter(), portal)
    assert list(counter.count(3)) == [0, 1, 2]


def test_an_iterator_that_is_let_go_ends_the_one_behind_it(portal: Portal) -> None:
    counter = PlainCounter(Counter(), portal)
    for number in counter.count(100):
        if number == 2:
            break
    gc.collect()
    assert counter._behind.ended.wait(GUARD_SECONDS)


def test_an_iterator_outlives_its_portal_in_peace(portal: Portal) -> None:
    counter = PlainCounter(Counter(), portal)
    numbers = counter.count(100)
    assert next(numbers) == 0
    portal.close()
    assert counter._behind.ended.is_set()
    del numbers
    gc.collect()


def test_closing_ends_what_others_still_wait_for(portal: Portal) -> None:
    counter = PlainCounter(Counter(), portal)
    refused: list[BaseException] = []

    def hang() -> None:
        try:
            counter.hang()
        except BaseException as error:
            refused.append(error)

    caller = threading.Thread(target=hang, daemon=True)
    caller.start()
    assert counter._behind.begun.wait(GUARD_SECONDS)
    portal.close()
    caller.join(GUARD_SECONDS)
    assert counter._behind.ended.is_set()
    assert [type(error).__name__ for error in refused] == ["CancelledError"]


def test_a_portal_starts_again_after_its_end(portal: Portal) -> None:
    counter = PlainCounter(Counter(), portal)
    assert counter.add(1) == 2
    portal.close()
    portal.close()
    assert counter.add(2) == 3


def test_signatures_and_words_are_those_of_the_original() -> None:
    assert inspect.signature(PlainCounter.add) == inspect.signature(Counter.add)
    assert PlainCounter.add.__doc__ == "The sum."
    assert inspect.signature(PlainCounter.count).return_annotation == "Iterator[int]"
    assert inspect.signature(PlainCounter.count).parameters == inspect.signature(Counter.count).parameters
