"""A client's heaps in each of their forms: in this process, over HTTP, and over gRPC."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import topics
from tests.contract.sdk import WallClock
from topics import testing

FORMS = ("embedded", "http", "grpc")
GUARD_S = 30

each_form = pytest.mark.parametrize("form", FORMS)


@asynccontextmanager
async def opened(form: str, directory: Path) -> AsyncIterator[topics.Client]:
    if form == "embedded":
        async with topics.open(directory) as client:
            yield client
        return
    async with testing.server(clock=WallClock(), no_grpc=form != "grpc") as server:
        how = {"grpc": server.grpc_address} if form == "grpc" else {}
        async with server.client(**how) as client:
            yield client


def on_heap(scenario: Callable[[topics.Heap], Coroutine[Any, Any, None]]) -> Any:
    """A test with a heap `jobs` of its own, that dies at the second failure, in each form."""

    @each_form
    def test(form: str, tmp_path: Path) -> None:
        async def run() -> None:
            async with asyncio.timeout(GUARD_S), opened(form, tmp_path) as client:
                heap = client.heap("jobs", consumer="me")
                await heap.create(partitions=2, max_retries=1)
                await scenario(heap)

        asyncio.run(run())

    test.__name__ = scenario.__name__
    return test


async def until(heap: topics.Heap, holds: Callable[[topics.HeapStats], bool]) -> topics.HeapStats:
    while not holds(stats := await heap.stats()):
        await asyncio.sleep(0)
    return stats
