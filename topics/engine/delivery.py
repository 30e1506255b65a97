"""When watchers are told, on the loop.

What lets readers see more, a flush or a report of the WAL, goes through `along`: those who watch are told before it
returns, without another turn of the loop. The writers are answered first, as there may be thousands to tell. But where
telling takes no longer than answering, it goes first: the watcher has waited for this, the writer has only begun to.

All else, a watcher that has just come or what a pump left for later, is the next turn's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from topics.engine.turn import Turn
from topics.engine.watch import Watch


class Delivery:
    def __init__(self, turn: Turn, watch: Watch, loop: asyncio.AbstractEventLoop) -> None:
        self._watch = watch
        self._loop = loop
        self._showing = False
        """Whether something goes on that may let readers see more."""
        self._wanted = False
        """Whether it has, and nobody was told yet."""
        watch.wanted = self._want
        turn.before_answers = self._pump_if_brief

    def along(self, work: Callable[[], None]) -> None:
        """Do what may let readers see more, and tell those who watch."""
        self._showing = True
        try:
            work()
        finally:
            self._showing = False
            if self._wanted:
                self._pump()

    def _want(self) -> None:
        if self._showing:
            self._wanted = True
        else:
            self._loop.call_soon(self._pump)

    def _pump_if_brief(self) -> None:
        if self._wanted and self._watch.is_brief():
            self._pump()

    def _pump(self) -> None:
        self._wanted = False
        try:
            self._watch.pump()
        except Exception as error:
            # A bug, and none of the writers': what they wait for goes on.
            self._loop.call_exception_handler({"message": "delivering failed", "exception": error})
