"""What the client's tests share: a test on an event loop, a guard against one that never ends, an address of nobody."""

from __future__ import annotations

import asyncio
import functools
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

GUARD_SECONDS = 60
"""Below the longest wait of a read, so that a wake-up that was missed shows."""
TURNS = 20


def on_loop(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run an async test to its end."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


def closed_port() -> str:
    """An address that nobody listens at."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{taken.getsockname()[1]}"


async def soon(work: Awaitable[T]) -> T:
    """The result of work that nothing should keep waiting."""
    return await asyncio.wait_for(work, GUARD_SECONDS)


async def take(events: AsyncIterator[T], count: int) -> list[T]:
    """The next events of a stream."""
    return [await soon(anext(events)) for _ in range(count)]


async def settle() -> None:
    """Let everything that can run do so, until all that is left are waits."""
    for _ in range(TURNS):
        await asyncio.sleep(0)


async def take_kept(events: AsyncGenerator[T, None], count: int) -> list[T]:
    """The next events of a stream, all of them done with, and the end of it."""
    taken = await take(events, count)
    more = asyncio.ensure_future(anext(events))
    await settle()
    more.cancel()
    await asyncio.gather(more, return_exceptions=True)
    await events.aclose()
    return taken
