"""The event loop that a command runs its work on, and the two signals that end it.

Ctrl-C and SIGTERM both cancel the work, so that what it has open is closed in order: a directory is let go of, a bench
topic is removed, a cursor is shown again. Ctrl-C then is a `KeyboardInterrupt` as ever, SIGTERM is `Terminated`.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")


class Terminated(Exception):
    """SIGTERM came, and the work has been cancelled."""


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it runs; the loop of the standard library serves the same, more slowly."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end, or until a signal."""
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(_until_terminated(work))


@contextmanager
def reader_of_stdout() -> Iterator[asyncio.Future[None]]:
    """Fails with `BrokenPipeError` as soon as nobody reads stdout any more, also while there is nothing to print."""
    loop = asyncio.get_running_loop()
    gone: asyncio.Future[None] = loop.create_future()
    descriptor = sys.stdout.fileno()

    def fail() -> None:
        loop.remove_reader(descriptor)
        gone.set_exception(BrokenPipeError())

    watched = not sys.stdout.isatty()
    try:
        if watched:
            # Nobody ever sends anything to the writing end of a pipe, so what can be "read" there is its end.
            loop.add_reader(descriptor, fail)
    except PermissionError:
        # A file, which has no other end.
        watched = False
    try:
        yield gone
    finally:
        gone.cancel()
        if watched:
            loop.remove_reader(descriptor)


async def while_read(work: Coroutine[Any, Any, None]) -> None:
    """Work that prints what comes, until it ends or nobody reads that any more, which is a `BrokenPipeError`."""
    running = asyncio.create_task(work)
    with reader_of_stdout() as gone:
        try:
            done, _ = await asyncio.wait({running, gone}, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.gather(*done)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def _until_terminated(work: Coroutine[Any, Any, T]) -> T:
    loop = asyncio.get_running_loop()
    task = asyncio.create_task(work)
    told: list[int] = []

    def terminate() -> None:
        told.append(signal.SIGTERM)
        task.cancel()

    loop.add_signal_handler(signal.SIGTERM, terminate)
    try:
        return await task
    except asyncio.CancelledError:
        # Ctrl-C cancels this wait; the work has to come to its end first.
        task.cancel()
        await asyncio.wait({task})
        if told:
            raise Terminated from None
        raise
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
