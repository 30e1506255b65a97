"""Ending a query early: somebody says why, on the loop, and the query's thread notices soon.

DuckDB forgets an interrupt that comes before a query has begun, so that whoever ends one interrupts again until it is
over. An error inside a scan would reach us as DuckDB's words about it; the error itself is kept here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from topics.errors import TopicsError

AGAIN_SECONDS = 0.05


class Interruptible(Protocol):
    def interrupt(self) -> None: ...


class Cancelling:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None
        self._connection: Interruptible | None = None
        self._over = False
        self.reason: TopicsError | None = None
        """Why it was ended; None while it was not."""
        self.error: BaseException | None = None
        """What went wrong in a scan."""

    # ---- on the loop

    def after(self, seconds: float, reason: TopicsError) -> None:
        """End it when this time is over."""
        self._timer = self._loop.call_later(seconds, self.cancel, reason)

    def cancel(self, reason: TopicsError) -> None:
        """End it now. The first reason counts."""
        if self._over:
            return
        if self.reason is None:
            self.reason = reason
        if self._connection is not None:
            self._connection.interrupt()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(AGAIN_SECONDS, self.cancel, self.reason)

    def over(self) -> None:
        """The query has ended, whichever way."""
        self._over = True
        self._connection = None
        if self._timer is not None:
            self._timer.cancel()

    # ---- on the query's thread

    def running_on(self, connection: Interruptible) -> None:
        self._connection = connection
        self.check()

    def check(self) -> None:
        if self.reason is not None:
            raise self.reason

    @contextmanager
    def failing(self) -> Iterator[None]:
        """Keep what goes wrong inside."""
        try:
            yield
        except GeneratorExit:
            raise
        except BaseException as error:
            self.error = error
            raise
