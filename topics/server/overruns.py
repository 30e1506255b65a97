"""A line in the log when retention took what an archive or a group needed: at most one in a while, with how many."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from topics.core.totals import Totals
from topics.server.logs import fields

LOOK_S = 1.0

log = logging.getLogger(__name__)


class Overruns:
    def __init__(self, totals: Callable[[], Totals | None]) -> None:
        """`totals` is None while there is no engine."""
        self._totals = totals
        self._told_count = 0
        self._timer: asyncio.TimerHandle | None = None

    def look(self) -> None:
        """Tell what has been taken since the last look."""
        totals = self._totals()
        if totals is None or totals.overrun_count == self._told_count:
            return
        taken_count, self._told_count = totals.overrun_count - self._told_count, totals.overrun_count
        log.error(
            "records were evicted that an archive or a group had not got: it is too far behind for protect_max_bytes",
            extra=fields(topic=totals.overrun_topic, records=taken_count),
        )

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = loop.call_later(LOOK_S, self._look_and_arm, loop)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.look()

    def _look_and_arm(self, loop: asyncio.AbstractEventLoop) -> None:
        self.look()
        self.start(loop)
