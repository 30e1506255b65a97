"""A server that is away: whoever reads without end waits for it, once it was there.

    it was never there     it may be a wrong address: the error is raised, after as many tries as any call has
    it went away           waited for, however long that takes, a little longer before each try
    it refuses             no reason to wait: the error is raised

The program is told of it by `on_outage`, with why, and with None when the server is back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from topics.client.backoff import Backoff
from topics.errors import TopicsError
from topics.limits import SECOND_MS

OnOutage = Callable[[TopicsError | None], None]
"""Told by each reader when its server went away, with why, and with None when it is back."""


class Outage:
    def __init__(
        self,
        may_pass: Callable[[TopicsError], bool],
        was_there: Callable[[], bool] = lambda: True,
        on_outage: OnOutage = lambda error: None,
        *,
        attempts_max: int = 1,
    ) -> None:
        """`attempts_max` is how often somebody who was never there is tried here; 1 where the calls do that."""
        self._may_pass = may_pass
        self._was_there = was_there
        self._on_outage = on_outage
        self._attempts_left = attempts_max
        self._backoff = Backoff()
        self._away = False

    async def wait(self, error: TopicsError) -> None:
        """What was tried failed: wait before the next try, or raise the error."""
        if not self._may_pass(error):
            raise error
        if self._was_there():
            self._tell(error)
        else:
            self._attempts_left -= 1
            if self._attempts_left <= 0:
                raise error
        await self.pause(int(error.detail.get("retry_after_ms", 0)))

    async def pause(self, at_least_ms: int = 0) -> None:
        """A while, longer each time."""
        await asyncio.sleep(self._backoff.next_s(min(at_least_ms, SECOND_MS)))

    def answered(self) -> None:
        """The server is back, which does not mean yet that it works."""
        self._tell(None)

    def over(self) -> None:
        """It works: begin again with short waits."""
        self._backoff.reset()
        self._tell(None)

    def _tell(self, error: TopicsError | None) -> None:
        if (error is not None) != self._away:
            self._away = not self._away
            self._on_outage(error)
