"""Bytes of requests that are not carried out yet, of all connections together: unfinished heads, bodies and messages.

Two pools. Bytes of connections that have shown a good key count against `TOPICS_MAX_INCOMING_BYTES`; all others share
a pool that is small and fixed. A connection that would make its pool too full is refused, which frees what it held, so
those that came before it can always finish. Waiting for room instead could block for ever: each of the waiting holds
what the others wait for.
"""

from __future__ import annotations

from typing import Final

from topics.errors import Throttled
from topics.limits import SECOND_MS, UNKNOWN_INCOMING_BYTES_MAX
from topics.settings import Settings

RETRY_MS: Final = 1 * SECOND_MS


class Pool:
    def __init__(self, limit: str, bytes_max: int) -> None:
        self.limit = limit
        self.bytes_max = bytes_max
        self.bytes = 0

    def check(self, more_bytes: int) -> None:
        if self.bytes + more_bytes > self.bytes_max:
            raise Throttled(
                f"the server holds {self.bytes} bytes of unfinished requests, and {self.bytes_max} is the maximum; "
                "try again later",
                limit=self.limit,
                max=self.bytes_max,
                retry_after_ms=RETRY_MS,
            )


class HeldBytes:
    def __init__(self, known_bytes_max: int, unknown_bytes_max: int = UNKNOWN_INCOMING_BYTES_MAX) -> None:
        self.known = Pool("max_incoming_bytes", known_bytes_max)
        self.unknown = Pool("unknown_incoming_bytes", unknown_bytes_max)
        self._peak_bytes = 0

    @classmethod
    def of(cls, settings: Settings) -> HeldBytes:
        """One body fits in any case."""
        return cls(max(settings.max_incoming_bytes, settings.max_body_bytes))

    def share(self) -> Share:
        return Share(self)

    def grew(self) -> None:
        self._peak_bytes = max(self._peak_bytes, self.known.bytes + self.unknown.bytes)

    def take_peak(self) -> int:
        """The most bytes that were held at a time since the last call."""
        peak_bytes, self._peak_bytes = self._peak_bytes, self.known.bytes + self.unknown.bytes
        return peak_bytes


class Share:
    """What one connection holds."""

    __slots__ = ("_held", "_pool", "bytes")

    def __init__(self, held: HeldBytes) -> None:
        self._held = held
        self._pool = held.unknown
        self.bytes = 0

    def set(self, count: int, known: bool) -> None:
        """Hold this many bytes from now on. Changes nothing and raises `Throttled` when the pool is too full."""
        pool = self._held.known if known else self._held.unknown
        more_bytes = count - (self.bytes if pool is self._pool else 0)
        if more_bytes > 0:
            pool.check(more_bytes)
        self._pool.bytes -= self.bytes
        pool.bytes += count
        self._pool = pool
        self.bytes = count
        self._held.grew()

    def expect(self, count: int) -> None:
        """Check that so many more bytes would fit now, before the client sends them."""
        self._pool.check(count)

    def release(self) -> None:
        self._pool.bytes -= self.bytes
        self.bytes = 0
