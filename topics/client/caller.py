"""Calls: one request to the server, tried again where that is safe, within the time it has.

What is tried again depends on what is known of the first try:

    refused        429, not ready, shutting down: nothing was done            tried again
    not sent       no connection could be made: nothing was done              tried again
    unanswered     sent, and then the connection or the time was lost         only if it is `repeatable`
    stale          unanswered on a connection that had been idle              the same, at once and on a new connection

A call is repeatable when doing it twice is the same as doing it once: reads, and writes that carry a key the server
knows them by. All else ends in `ConnectionFailed` or `TimedOut` with `detail.sent`, because only the caller can know
what to do. Between tries the wait is what the server asks for and a random part that doubles.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from topics.client import tracing
from topics.client.address import Address
from topics.client.backoff import Backoff
from topics.client.connection import Abandoned, Answer, Connection
from topics.client.pool import Pool, not_open
from topics.client.refusal import refusal, retry_after_ms
from topics.client.requesthead import RequestHead
from topics.errors import (
    ConnectionFailed,
    InvalidRequest,
    NotReady,
    RequestTimeout,
    ShuttingDown,
    Throttled,
    TimedOut,
    TopicsError,
    Unavailable,
)
from topics.limits import SECOND_MS

WAITING_MAX: Final = 256
"""Connections for those who wait for news, beside the ones for calls, so that waiting holds nothing up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOptions:
    """How a client calls; `topics.connect` has the same names, and the defaults."""

    timeout_ms: int
    """For a whole call, with all its tries; the `wait_ms` of a read comes on top."""
    connect_timeout_ms: int
    read_timeout_ms: int
    """For the next byte of an answer."""
    attempts_max: int
    connections_max: int
    compress: bool
    """Bodies above 1 KiB are sent as gzip, and answers asked for as gzip: for slow links."""

    def __post_init__(self) -> None:
        for name in ("timeout_ms", "connect_timeout_ms", "read_timeout_ms", "attempts_max", "connections_max"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                expected = "a whole number, at least 1"
                raise InvalidRequest(f"{name} must be {expected}, not {value!r}", field=name, expected=expected)


class Caller:
    def __init__(self, address: Address, key: str | None, options: CallOptions, tls: ssl.SSLContext | None) -> None:
        self.address = address
        self._options = options
        self._tls = tls
        self._head = RequestHead(address, key, options.compress)
        self._calls: Pool | None = None
        self._waits: Pool | None = None
        self.reached = False
        """Whether a server has answered anything yet: before, it may be a wrong address."""

    def open(self) -> None:
        """Get ready, on the running loop. Connections are made when they are needed."""
        options = self._options
        connect_s = options.connect_timeout_ms / SECOND_MS
        self._calls = Pool(self.address, options.connections_max, connect_s, self._tls)
        self._waits = Pool(self.address, WAITING_MAX, connect_s, self._tls)

    async def heard_out(self, seconds_max: float) -> None:
        """Returns when the answers to calls that were cancelled have come, as far as somebody wants to know them."""
        for pool in (self._calls, self._waits):
            if pool is not None:
                await pool.heard_out(seconds_max)

    async def close(self) -> None:
        """Cut all connections; calls that are under way get `ShuttingDown`."""
        pools = (self._calls, self._waits)
        self._calls = self._waits = None
        for pool in pools:
            if pool is not None:
                await pool.close()

    @property
    def is_open(self) -> bool:
        return self._calls is not None

    @property
    def connection_count(self) -> int:
        return sum(len(pool) for pool in (self._calls, self._waits) if pool is not None)

    async def call(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        repeatable: bool,
        wait_ms: int = 0,
        headers: Mapping[str, str] | None = None,
        abandoned: Abandoned | None = None,
    ) -> Answer:
        """The answer to a request, below 300; anything else is raised.

        With `abandoned`, an answer that comes although the call was cancelled goes there.
        """
        options = self._options
        wait_s = wait_ms / SECOND_MS
        deadline_s = asyncio.get_running_loop().time() + options.timeout_ms / SECOND_MS + wait_s
        message = self._head.message(method, path, body, {**tracing.current(), **(headers or {})})
        backoff = Backoff()
        attempt_count = 0
        while True:
            attempt_count += 1
            at_least_ms = 0
            try:
                answer = await self._try(message, repeatable, wait_s, deadline_s, abandoned)
                self.reached = True
                if answer.status < 300:
                    return answer
                error = refusal(answer)
                at_least_ms = retry_after_ms(answer, error)
                again = was_refused(error) or (repeatable and type(error) is Unavailable)
            except (ConnectionFailed, TimedOut) as failure:
                error = failure
                again = repeatable or not failure.detail["sent"]
            pause_s = backoff.next_s(at_least_ms)
            late = asyncio.get_running_loop().time() + pause_s >= deadline_s
            if not again or late or attempt_count >= options.attempts_max:
                raise error
            await asyncio.sleep(pause_s)

    async def _try(
        self, message: bytes, repeatable: bool, wait_s: float, deadline_s: float, abandoned: Abandoned | None
    ) -> Answer:
        pool = self._waits if wait_s else self._calls
        if pool is None:
            raise not_open(self.address)
        silence_s = self._options.read_timeout_ms / SECOND_MS + wait_s
        while True:
            connection = await pool.take(deadline_s)
            was_idle = connection.used
            try:
                return await connection.exchange(message, silence_s, deadline_s, abandoned)
            except ConnectionFailed:
                stale = was_idle and not connection.answer_begun
                if not (stale and repeatable):
                    raise
                pool.drop_idle()
            finally:
                pool.give(connection)

    @asynccontextmanager
    async def stream(
        self,
        path: str,
        silence_ms: int,
        headers: dict[str, str],
        on_answer: Callable[[Answer], None] = lambda answer: None,
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """The body of a GET as it comes, from one try; a status above 299 is raised. `on_answer` gets its head."""
        pool = self._waits
        if pool is None:
            raise not_open(self.address)
        options = self._options
        deadline_s = asyncio.get_running_loop().time() + options.timeout_ms / SECOND_MS
        connection: Connection = await pool.take(deadline_s)
        try:
            message = self._head.message("GET", path, b"", headers)
            answer = await connection.stream(message, options.read_timeout_ms / SECOND_MS, deadline_s)
            if answer.status != 200:
                raise refusal(answer)
            on_answer(answer)
            yield connection.parts(silence_ms / SECOND_MS)
        finally:
            connection.cut()
            pool.give(connection)


def was_refused(error: TopicsError) -> bool:
    """Whether the server turned a request away for now, before anything was done."""
    if isinstance(error, Throttled):
        # A cap of the server's does not go away by waiting, but requests under way do.
        return error.detail.get("limit") in (None, "max_inflight_per_key")
    return isinstance(error, NotReady | ShuttingDown | RequestTimeout)


def may_pass(error: TopicsError) -> bool:
    """Whether trying again later may help: the server is away, busy or restarting."""
    return was_refused(error) or isinstance(error, ConnectionFailed | TimedOut) or type(error) is Unavailable
