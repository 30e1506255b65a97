"""What the server does by the clock, with one timer: each second, and some of it each minute.

Each second it takes a sample of everything, ends streams whose key or session is over, copies the audit log into its
topic, and gives the memory of large requests that are over back to the system. Each minute it notes which managed keys
were used, as one fact for all of them, so that no request ever costs one.
"""

from __future__ import annotations

import asyncio
from typing import Final

from topics.core.accountcommands import NoteKeysUsed
from topics.errors import TopicsError
from topics.server.answers import keep
from topics.server.context import Context
from topics.server.intake.freed import burst_is_over, trimmer
from topics.server.managedkeys import KEY_START

BEAT_S: Final = 1.0
MINUTE_BEATS: Final = 60


class Upkeep:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._timer: asyncio.TimerHandle | None = None
        self._beats = 0
        self._trim = trimmer()

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = loop.call_later(BEAT_S, self._beat, loop)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _beat(self, loop: asyncio.AbstractEventLoop) -> None:
        self.start(loop)
        self._beats += 1
        context = self._context
        if self._trim is not None and burst_is_over(context.held):
            # On a thread: the library may look at much memory, and holds no lock of Python's meanwhile.
            loop.run_in_executor(None, self._trim)
        host, observer, audit = context.host, context.observer, context.audit
        if host is None or observer is None or audit is None or context.draining:
            return
        context.open_streams.sweep()
        keep(context, observer.beat(host.engine))
        keep(context, audit.mirror())
        if self._beats % MINUTE_BEATS == 0:
            self.note_used_keys()

    def note_used_keys(self) -> None:
        """Remember when managed keys were last used."""
        context = self._context
        used, context.quota.used = context.quota.used, set()
        key_ids = tuple(key_id.removeprefix(KEY_START) for key_id in used if key_id.startswith(KEY_START))
        if key_ids and context.host is not None:
            try:
                context.host.decide(NoteKeysUsed(key_ids))
            except TopicsError:
                # A log that takes no writes has worse to tell; the next minute tries again.
                context.quota.used |= used
