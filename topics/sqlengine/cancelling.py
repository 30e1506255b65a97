"""Stopping a query early: the loop decides why, the process is asked to stop, and killed when it does not.

A query that is inside one long step of DuckDB does not notice that it was asked, and the request is lost when it comes
before the query has begun. So the process has a moment; after that the kernel ends it, whatever it does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from topics.errors import TopicsError

GRACE_SECONDS: Final = 0.1
"""Starting another process takes a few times as long."""


class Stoppable(Protocol):
    def stop(self, number: int) -> None: ...

    def kill(self) -> None: ...


class Cancelling:
    def __init__(self, loop: asyncio.AbstractEventLoop, process: Stoppable, number: int) -> None:
        self._loop = loop
        self._process = process
        self._number = number
        self._timer: asyncio.TimerHandle | None = None
        self._over = False
        self.reason: TopicsError | None = None
        """Why the query was stopped; None while it was not."""
        self.error: BaseException | None = None
        """What went wrong in a scan."""

    # ---- on the loop

    def after(self, seconds: float, reason: TopicsError) -> None:
        """Stop the query when this time has passed; a later call takes the place of an earlier one."""
        if self.reason is not None:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(seconds, self.cancel, reason)

    def cancel(self, reason: TopicsError) -> None:
        """Stop the query now. The first reason counts."""
        if self._over or self.reason is not None:
            return
        self.reason = reason
        self._process.stop(self._number)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(GRACE_SECONDS, self._process.kill)

    def over(self) -> None:
        """The query has ended, for whatever reason."""
        self._over = True
        if self._timer is not None:
            self._timer.cancel()

    # ---- on the query's thread

    def check(self) -> None:
        if self.reason is not None:
            raise self.reason

    @contextmanager
    def failing(self) -> Iterator[None]:
        """Remember what goes wrong inside."""
        try:
            yield
        except GeneratorExit:
            raise
        except BaseException as error:
            self.error = error
            raise
