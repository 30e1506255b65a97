"""Threads for the plain functions of a worker: as many as it does jobs at a time, kept for the next job.

Unlike those of `concurrent.futures` they do not hold up the end of the program: a job whose function is still running
then was given back, and somebody else does it.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, NamedTuple


class _Call(NamedTuple):
    work: Callable[[], Any]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]


class Threads:
    def __init__(self, count_max: int) -> None:
        self._count_max = count_max
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._count = 0
        self._busy_count = 0

    async def call(self, function: Callable[[Any], Any], argument: object) -> Any:
        """What the function returns or raises, called in a thread. Who is cancelled meanwhile does not stop it."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        context = contextvars.copy_context()
        self._busy_count += 1
        if self._busy_count > self._count and self._count < self._count_max:
            self._count += 1
            threading.Thread(target=self._serve, name=f"topics job {self._count}", daemon=True).start()
        self._calls.put(_Call(lambda: context.run(function, argument), loop, future))
        try:
            return await future
        finally:
            self._busy_count -= 1

    def close(self) -> None:
        """Let the threads end when they have nothing left to do."""
        for _ in range(self._count):
            self._calls.put(None)

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            if call.future.cancelled():
                continue
            result, error = _outcome(call.work)
            with contextlib.suppress(RuntimeError):
                # The loop may be closed by now, and then nobody waits.
                call.loop.call_soon_threadsafe(_settle, call.future, result, error)


def _outcome(work: Callable[[], Any]) -> tuple[Any, Exception | None]:
    try:
        return work(), None
    except BaseException as error:
        if isinstance(error, Exception) and not isinstance(error, StopIteration):
            return None, error
        # What ends a thread or an iteration ends neither the worker nor its loop.
        failure = RuntimeError(f"the function raised {error!r}")
        failure.__cause__ = error
        return None, failure


def _settle(future: asyncio.Future[Any], result: object, error: Exception | None) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)
