"""A client in each of its forms: with the engine in this process, and over HTTP to a server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import topics
from topics import testing
from topics.clock import SystemClock

FORMS = ("embedded", "remote")

each_form = pytest.mark.parametrize("form", FORMS)


@asynccontextmanager
async def opened(form: str, directory: Path, **settings: int) -> AsyncIterator[topics.Client]:
    if form == "embedded":
        async with topics.open(directory, **settings) as client:
            yield client
    else:
        async with testing.server(directory, **settings) as server, server.client() as client:
            yield client


class WallClock(testing.SimClock):
    """A test server's clock that goes by itself, for what is about time in both forms."""

    def now_ms(self) -> int:
        return SystemClock().now_ms()

    def ticks_ns(self) -> int:
        return SystemClock().ticks_ns()


@asynccontextmanager
async def opened_in_time(form: str, directory: Path) -> AsyncIterator[topics.Client]:
    """The same, with time that passes in both."""
    if form == "embedded":
        async with topics.open(directory) as client:
            yield client
    else:
        async with testing.server(directory, clock=WallClock()) as server, server.client() as client:
            yield client


async def written_at_two_times(topic: topics.Topic) -> tuple[int, int]:
    """Records of at least two times; the first and the last of them."""
    await topic.write(1)
    early = (await topic.diff()).records[0].ts
    while (last := (await topic.diff()).records[-1]).ts == early:
        await topic.write(last.seq + 1)
    return early, last.ts
