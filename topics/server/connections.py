"""The open connections of a server: one coarse timer for all their deadlines, and the way to end them.

A connection writes its next deadline into `deadline_ns` and nothing else; once a second all are looked at. So a request
costs no timer, and a deadline is kept to within a second. Deadlines count from `now_ns`, the time of the last look.
The `Date` of answers is of that time, too.

A connection that comes when there are as many as may be is dropped at once: what it would take is not for connections.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from typing import Final, Protocol

from topics.clock import Clock
from topics.limits import INCOMING_BYTES_DEFAULT
from topics.server.heading import Heading
from topics.server.intake.held import HeldBytes
from topics.server.intake.turns import Turns
from topics.server.logs import fields

SECOND_NS: Final = 1_000_000_000
TICK_S: Final = 1.0
NEVER_NS: Final = 2**63
"""A deadline that does not come."""

log = logging.getLogger(__name__)


class Connection(Protocol):
    deadline_ns: int

    def expire(self) -> None:
        """The deadline has passed."""

    def drain(self) -> None:
        """End now if idle, else after the requests in flight."""

    def abort(self) -> None:
        """End at once, whatever is lost."""


class Connections:
    def __init__(
        self,
        clock: Clock,
        heading: Heading,
        idle_timeout_s: float,
        connections_max: int | None = None,
        held: HeldBytes | None = None,
        turns: Turns | None = None,
    ) -> None:
        self.clock = clock
        self.held = held or HeldBytes(INCOMING_BYTES_DEFAULT)
        self.turns = turns or Turns()
        self.heading = heading
        self._connections_max = connections_max
        self._dropped_count = 0
        """Since the last look."""
        self.draining = False
        self._idle_timeout_ns = int(idle_timeout_s * SECOND_NS)
        self._open: dict[Connection, None] = {}
        """In the order in which they came, which is the order in which they are ended."""
        self._empty: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._id_prefix = secrets.token_hex(4)
        self._id_count = 0
        self._read_clock()

    def __len__(self) -> int:
        return len(self._open)

    def start(self) -> None:
        """Keep deadlines from now on; needs the running loop."""
        assert self._timer is None, "started already"
        self._schedule()

    def stop(self) -> None:
        """Keep no deadlines any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._tell_dropped()

    def add(self, connection: Connection) -> str:
        """Takes charge of a connection, and names it."""
        self._open[connection] = None
        if self._connections_max is not None and len(self._open) > self._connections_max:
            self._dropped_count += 1
            connection.abort()
        self._id_count += 1
        return f"{self._id_prefix}-{self._id_count:x}"

    def remove(self, connection: Connection) -> None:
        self._open.pop(connection, None)
        if not self._open and self._empty is not None and not self._empty.done():
            self._empty.set_result(None)

    def tick(self) -> None:
        """Look at every deadline."""
        now_ns = self._read_clock()
        for connection in [each for each in self._open if each.deadline_ns <= now_ns]:
            connection.expire()
        self._tell_dropped()

    async def drain(self, timeout_s: float) -> int:
        """End all connections once their requests are answered; returns how many had to be cut off.

        The listeners are closed already. A connection that comes or sends nevertheless is answered, and ended.
        """
        self.draining = True
        for connection in list(self._open):
            connection.drain()
        if await self._wait_empty(timeout_s):
            return 0
        late = list(self._open)
        for connection in late:
            connection.abort()
        await self._wait_empty(None)
        return len(late)

    async def _wait_empty(self, timeout_s: float | None) -> bool:
        if not self._open:
            return True
        self._empty = asyncio.get_running_loop().create_future()
        done, _ = await asyncio.wait([self._empty], timeout=timeout_s)
        return bool(done)

    def _tell_dropped(self) -> None:
        if self._dropped_count:
            log.warning(
                "connections were dropped: as many are open as the limit of open files allows",
                extra=fields(dropped=self._dropped_count, connections_max=self._connections_max),
            )
            self._dropped_count = 0

    def _read_clock(self) -> int:
        self.heading.set_time(self.clock.now_ms())
        self.now_ns = self.clock.ticks_ns()
        self.idle_deadline_ns = self.now_ns + self._idle_timeout_ns
        return self.now_ns

    def _schedule(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(TICK_S, self._timed_tick)

    def _timed_tick(self) -> None:
        self._schedule()
        self.tick()
