"""A connection's side of a stream: it tells the outlet what happens, and outlives what the outlet does wrong.

An outlet that raises has a bug. It is logged, and the connection dropped: the client comes back and goes on from its
last event, which beats a stream that may have lost one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from topics.server.streaming import Duplex, Outlet, Stream, StreamResponse, Upgrade

log = logging.getLogger(__name__)


class Attachment:
    """Of one response and its stream, from `open` to `close`."""

    __slots__ = ("_outlet", "_response", "duplex", "stream")

    def __init__(self, response: StreamResponse, stream: Stream) -> None:
        self._response = response
        self._outlet: Outlet = response.outlet
        self.stream = stream
        self.duplex: Duplex | None = response.outlet if isinstance(response, Upgrade) else None
        """Whose the client's bytes are; None when HTTP goes on behind the stream."""

    def open(self) -> None:
        self._response.stream = self.stream
        self._guard(lambda: self._outlet.opened(self.stream))

    def filled(self) -> None:
        self.stream.full = True
        self._guard(self._outlet.filled)

    def drained(self) -> None:
        self.stream.full = False
        self._guard(self._outlet.drained)

    def expired(self) -> None:
        self._guard(self._outlet.expired)

    def stopping(self) -> None:
        self._guard(self._outlet.stopping)

    def received(self, data: bytes) -> None:
        duplex = self.duplex
        assert duplex is not None
        self._guard(lambda: duplex.received(data))

    def close(self) -> None:
        self.stream.detach()
        close_quietly(self._response)

    def _guard(self, tell: Callable[[], None]) -> None:
        try:
            tell()
        except Exception:
            log.exception("a stream failed and its connection is dropped")
            self.stream.abort()


def close_quietly(response: StreamResponse) -> None:
    """Close a stream, also one that was never opened, whatever its outlet makes of it."""
    try:
        response.close()
    except Exception:
        log.exception("the end of a stream failed")
