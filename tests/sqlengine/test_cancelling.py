"""A query is ended from the loop, whether it has begun, has not yet, or is over."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.client.rig import on_loop, soon
from topics.errors import QueryTooExpensive, ShuttingDown
from topics.sqlengine.cancelling import Cancelling


class Query:
    """What hears that it should end, as often as it is told."""

    def __init__(self) -> None:
        self.told = asyncio.Semaphore(0)

    def interrupt(self) -> None:
        self.told.release()


@on_loop
async def test_what_has_not_begun_when_it_is_ended_never_begins() -> None:
    cancelling = Cancelling(asyncio.get_running_loop())
    query = Query()
    cancelling.cancel(ShuttingDown("closing"))
    with pytest.raises(ShuttingDown, match="closing"):
        cancelling.running_on(query)
    cancelling.over()


@on_loop
async def test_a_query_is_told_again_until_it_is_over_and_the_first_reason_counts() -> None:
    cancelling = Cancelling(asyncio.get_running_loop())
    query = Query()
    cancelling.running_on(query)
    cancelling.check()
    cancelling.after(0, QueryTooExpensive("too long"))
    for _ in range(3):
        await soon(query.told.acquire())
    cancelling.cancel(ShuttingDown("closing"))
    with pytest.raises(QueryTooExpensive, match="too long"):
        cancelling.check()
    cancelling.over()


@on_loop
async def test_what_is_over_is_not_ended() -> None:
    cancelling = Cancelling(asyncio.get_running_loop())
    query = Query()
    cancelling.running_on(query)
    cancelling.over()
    cancelling.cancel(ShuttingDown("closing"))
    assert cancelling.reason is None and query.told.locked()


@on_loop
async def test_what_goes_wrong_in_a_scan_is_kept_and_its_early_end_is_not() -> None:
    cancelling = Cancelling(asyncio.get_running_loop())

    def scan() -> Iterator[int]:
        with cancelling.failing():
            yield 1
            raise ValueError("a bad block")

    left, read = scan(), scan()
    assert next(left) == 1
    left.close()  # type: ignore[attr-defined]
    assert cancelling.error is None
    with pytest.raises(ValueError, match="a bad block") as raised:
        list(read)
    assert cancelling.error is raised.value
