"""Scans of a query process: its tables live in the engine and come through the channel, some batches at a time.

While the query works on batches, the engine prepares the next ones: each scan asks one step ahead. DuckDB may read
several tables in turn, so batches of another scan than the expected one are kept until that scan asks. Arrow pulls on
threads of its own; a lock makes them one reader of the channel.
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import Lock
from typing import Any

import pyarrow as pa

from topics.sqlengine.channel import Channel, Head, Kind
from topics.sqlengine.querymessages import Open, encode


class ScanFailed(Exception):
    """The engine knows why, or the query has ended."""


class Feed:
    """The scans of one query."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._lock = Lock()
        self._number = 0
        self._finished = False
        """Arrow may pull at a scan after the query has ended; what arrives then is not for it."""
        self._asked: set[int] = set()
        """Scans whose next batches are on their way."""
        self._closed: set[int] = set()
        self._arrived: dict[int, tuple[Kind, Any]] = {}
        self.error: BaseException | None = None
        """Why a scan ended early. DuckDB would only repeat it in its own words."""

    def scan(self, opening: Open) -> Iterator[Any]:
        """The record batches of a table, from its beginning."""
        with self._lock:
            self._check()
            self._number += 1
            number = self._number
            self._channel.send(Kind.OPEN, number, encode(opening))
            self._asked.add(number)
        try:
            more = True
            while more:
                more, body = self._next(number)
                if body is not None:
                    yield from pa.ipc.open_stream(body)
        except GeneratorExit:
            raise
        except BaseException as error:
            self.error = error
            raise
        finally:
            with self._lock:
                self._closed.add(number)
                self._arrived.pop(number, None)

    def finish(self) -> None:
        """Read and discard what is still on its way. Only then is the engine free to read an answer."""
        with self._lock:
            self._finished = True
            self._closed |= self._asked
            while self._asked:
                self._receive()

    def _check(self) -> None:
        if self._finished:
            raise ScanFailed

    def _next(self, number: int) -> tuple[bool, Any]:
        """Whether there can be more after these, and the batches as a stream, None when there are none."""
        with self._lock:
            self._check()
            while number not in self._arrived:
                self._receive()
            kind, body = self._arrived.pop(number)
            if kind is Kind.BATCHES:
                self._channel.send(Kind.NEXT, number)
                self._asked.add(number)
        if kind is Kind.FAILED:
            raise ScanFailed
        if isinstance(body, MemoryError):
            raise body
        return kind is Kind.BATCHES, body

    def _receive(self) -> None:
        head = self._channel.head()
        self._asked.discard(head.number)
        if head.number in self._closed:
            self._channel.skip(head.length)
        else:
            self._arrived[head.number] = head.kind, self._body(head)

    def _body(self, head: Head) -> Any:
        if not head.length:
            return None
        try:
            body = pa.allocate_buffer(head.length)
        except MemoryError as error:
            # The frame has to be read all the same: what follows it is behind it.
            self._channel.skip(head.length)
            return error
        self._channel.read_into(memoryview(body))
        return body
