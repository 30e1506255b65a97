"""The loop stops a query: it asks the process first, and kills it when that does not help."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.client.rig import on_loop, soon
from topics.errors import QueryTooExpensive, ShuttingDown
from topics.sqlengine.cancelling import Cancelling


class Process:
    """Counts what it is asked."""

    def __init__(self) -> None:
        self.stopped: list[int] = []
        self.killed = asyncio.Event()

    def stop(self, number: int) -> None:
        self.stopped.append(number)

    def kill(self) -> None:
        self.killed.set()


def cancelling_of(process: Process) -> Cancelling:
    return Cancelling(asyncio.get_running_loop(), process, 7)


@on_loop
async def test_cancelled_query_does_not_begin() -> None:
    cancelling = cancelling_of(Process())
    cancelling.check()
    cancelling.cancel(ShuttingDown("closing"))
    with pytest.raises(ShuttingDown, match="closing"):
        cancelling.check()
    cancelling.over()


@on_loop
async def test_process_that_does_not_stop_is_killed() -> None:
    process = Process()
    cancelling = cancelling_of(process)
    cancelling.after(0, QueryTooExpensive("too long"))
    await soon(process.killed.wait())
    assert process.stopped == [7]
    cancelling.cancel(ShuttingDown("closing"))
    with pytest.raises(QueryTooExpensive, match="too long"):
        cancelling.check()
    cancelling.over()


@on_loop
async def test_query_that_ended_is_not_stopped() -> None:
    process = Process()
    cancelling = cancelling_of(process)
    cancelling.over()
    cancelling.cancel(ShuttingDown("closing"))
    assert cancelling.reason is None and process.stopped == []


@on_loop
async def test_process_that_stopped_in_time_lives() -> None:
    process = Process()
    cancelling = cancelling_of(process)
    cancelling.cancel(ShuttingDown("closing"))
    cancelling.over()
    assert process.stopped == [7]
    assert cancelling._timer is not None and cancelling._timer.cancelled()


@on_loop
async def test_error_of_a_scan_is_remembered_and_its_early_end_is_not() -> None:
    cancelling = cancelling_of(Process())

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
