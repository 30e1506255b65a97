"""How an HTTP connection ends, and when: its deadlines, draining, and the time that a client has for its last answer.

The server ends its side first when the client may still be sending, and throws away what still comes: closing at once
would destroy the last answer before the client reads it.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque

from topics.errors import RequestTimeout, TopicsError
from topics.server.connections import NEVER_NS, SECOND_NS, Connections
from topics.server.exchange import Exchange
from topics.server.httpoptions import HttpOptions
from topics.server.requestparser import Part, RequestParser


class EndingProtocol(asyncio.Protocol, ABC):
    """The base of `HttpProtocol`: its state as far as its end depends on it."""

    _transport: asyncio.Transport
    _parser: RequestParser

    def __init__(self, options: HttpOptions, connections: Connections) -> None:
        self._options = options
        self._connections = connections
        self.deadline_ns = connections.idle_deadline_ns
        self._part_since_ns = 0
        # Exchanges, and what has not become one yet.
        self._pending: deque[Exchange] = deque()
        self._waiting: deque[Exchange] = deque()
        self._unread = b""
        self._blocked = False
        self._write_paused = False
        self._unsent_bytes = 0
        """What the client had not read when it was last looked at."""
        self._deaf = False
        self._lingers = False
        self._client_ended = False
        self._ended = False

    @property
    def receiving(self) -> bool:
        """Whether a request has begun to come."""
        return self._parser.part is not Part.NOTHING

    @abstractmethod
    def _refuse(self, error: TopicsError) -> None: ...

    def expire(self) -> None:
        if self._ended or self._write_paused:
            if 0 < self._transport.get_write_buffer_size() < self._unsent_bytes:
                self._await_client(self._options.write_timeout_s)
            else:
                self.abort()
        elif not self.receiving:
            self._end()
        else:
            part = self._parser.part.name.lower()
            self._refuse(RequestTimeout(f"the {part} of the request did not come in time", expected="a faster client"))

    def drain(self) -> None:
        if not self._pending and not self._waiting and not self._unread and not self.receiving:
            self._end()

    def abort(self) -> None:
        self._transport.abort()

    def _end(self) -> None:
        """All answers are written: close, but once the client has ended too if it may still be sending."""
        self._deaf = True
        if not self._ended:
            self._ended = True
            self._await_client(self._options.linger_timeout_s)
            if self._lingers and not self._client_ended and not self._transport.is_closing():
                self._transport.write_eof()
                self._transport.resume_reading()
                return
        elif not self._client_ended:
            return
        self._transport.close()

    def _await_client(self, timeout_s: float) -> None:
        """The client has so long to read, and again as long whenever it has read something."""
        self._unsent_bytes = self._transport.get_write_buffer_size()
        self.deadline_ns = self._connections.now_ns + _ns(timeout_s)

    def _set_deadline(self) -> None:
        options = self._options
        if self._write_paused or self._ended:
            return
        if self._blocked:
            self.deadline_ns = NEVER_NS
        elif self._parser.part is Part.HEAD:
            self.deadline_ns = self._part_since_ns + _ns(options.header_timeout_s)
        elif self._parser.part is Part.BODY:
            allowed_s = options.body_timeout_s + self._parser.body_bytes / options.body_bytes_per_s_min
            self.deadline_ns = self._part_since_ns + _ns(allowed_s)
        else:
            self.deadline_ns = NEVER_NS if self._pending else self._connections.idle_deadline_ns


def _ns(seconds: float) -> int:
    return int(seconds * SECOND_NS)
