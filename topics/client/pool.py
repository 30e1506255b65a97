"""The connections of a client: kept open between calls, as many as needed and no more than allowed.

A call takes a connection and gives it back. The one used last is taken first, so that those nobody needs grow old and
are closed before the server would close them. With all of them taken, calls wait in the order they came.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Final

from topics.client.address import Address
from topics.client.connection import Connection
from topics.errors import ConnectionFailed, NotReady, ShuttingDown, TimedOut

IDLE_S_MAX: Final = 60.0
"""Shorter than a server keeps a connection that says nothing."""


class Pool:
    def __init__(self, address: Address, connections_max: int, connect_s: float, tls: ssl.SSLContext | None) -> None:
        self._address = address
        self._connect_s = connect_s
        self._tls = tls
        self._slots = asyncio.Semaphore(connections_max)
        self._connections_max = connections_max
        self._idle: list[Connection] = []
        """Least recently used first."""
        self._open: set[Connection] = set()
        self._closed = False

    def __len__(self) -> int:
        return len(self._open)

    async def take(self, deadline_s: float) -> Connection:
        """A connection to ask one thing; `give` it back in any case."""
        if self._closed:
            raise ShuttingDown("the client is closed")
        if self._slots.locked():
            await self._wait_for_slot(deadline_s)
        else:
            await self._slots.acquire()
        try:
            return self._idle_connection() or await self._connect(deadline_s)
        except BaseException:
            self._slots.release()
            raise

    def give(self, connection: Connection) -> None:
        if connection.usable and not self._closed:
            connection.idle_since_s = asyncio.get_running_loop().time()
            self._idle.append(connection)
        elif connection.lingers and not self._closed:
            connection.on_lost(lambda: self._open.discard(connection))
        else:
            self._drop(connection)
        self._slots.release()

    def drop_idle(self) -> None:
        """Close those that wait, when one of them turned out to be dead: the rest is most likely dead, too."""
        while self._idle:
            self._drop(self._idle.pop())

    async def heard_out(self, seconds_max: float) -> None:
        """Wait for connections that hear the rest of an answer, but no longer than this."""
        ends = [asyncio.ensure_future(connection.closed()) for connection in self._open if connection.lingers]
        if ends:
            await asyncio.wait(ends, timeout=seconds_max)

    async def close(self) -> None:
        """Cut every connection, and return when their sockets are gone."""
        self._closed = True
        self._idle.clear()
        left = list(self._open)
        for connection in left:
            connection.refuse()
        for connection in left:
            await connection.closed()
        self._open.clear()

    async def _wait_for_slot(self, deadline_s: float) -> None:
        try:
            async with asyncio.timeout_at(deadline_s):
                await self._slots.acquire()
        except TimeoutError:
            raise TimedOut(
                f"all {self._connections_max} connections to {self._address} were busy until the time was over",
                sent=False,
            ) from None
        if self._closed:
            self._slots.release()
            raise ShuttingDown("the client is closed")

    def _idle_connection(self) -> Connection | None:
        now_s = asyncio.get_running_loop().time()
        while self._idle and now_s - self._idle[0].idle_since_s > IDLE_S_MAX:
            self._drop(self._idle.pop(0))
        while self._idle:
            connection = self._idle.pop()
            if connection.usable:
                return connection
            self._drop(connection)
        return None

    async def _connect(self, deadline_s: float) -> Connection:
        loop = asyncio.get_running_loop()
        address = self._address
        try:
            async with asyncio.timeout_at(min(loop.time() + self._connect_s, deadline_s)):
                _, connection = await loop.create_connection(
                    lambda: Connection(str(address)), address.host, address.port, ssl=self._tls
                )
        except TimeoutError:
            raise TimedOut(f"{address} did not take the connection in time", sent=False) from None
        except (OSError, ssl.SSLError) as error:
            # The system's own words for a name that leads nowhere, a port that is closed, a certificate nobody trusts.
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise ConnectionFailed(
                f"cannot connect to {address}: {reason}; is the server running there?", sent=False
            ) from error
        if self._closed:
            connection.cut()
            raise ShuttingDown("the client is closed")
        self._open.add(connection)
        return connection

    def _drop(self, connection: Connection) -> None:
        connection.cut()
        self._open.discard(connection)


def not_open(address: Address) -> NotReady:
    return NotReady(f"{address} is not connected: use the client inside `async with topics.connect(…)`")
