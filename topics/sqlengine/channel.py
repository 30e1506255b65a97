"""Frames between the engine and a query process: kind, number of a scan, length, bytes.

Both ends block; neither uses a timeout, because a process that may open no more files may not poll either. An end that
closes, or a process that dies, ends a read with `ChannelClosed`.
"""

from __future__ import annotations

import socket
import struct
from enum import IntEnum
from typing import NamedTuple

Buffer = bytes | bytearray | memoryview

STOP = struct.Struct("<Q")
"""On the second socket of a query process: the number of a query that should stop."""

_HEAD = struct.Struct("<BIQ")
_JOINED_BYTES = 64 * 1024
"""A frame up to this size is sent in one call."""
_SKIPPED_BYTES = 64 * 1024


class Kind(IntEnum):
    READY = 1
    """Process: started and confined."""
    QUERY = 2
    """Engine: run this."""
    OPEN = 3
    """Process: begin a scan and send its first batches."""
    NEXT = 4
    """Process: send the next batches of a scan."""
    BATCHES = 5
    """Engine: batches of a scan, more can follow."""
    LAST = 6
    """Engine: the last batches of a scan; empty when it has none left."""
    FAILED = 7
    """Engine: the scan failed, the engine knows why."""
    ANSWER = 8
    """Process: the result."""
    REFUSED = 9
    """Process: why there is no result."""


class Head(NamedTuple):
    kind: Kind
    number: int
    """Of a scan. In ANSWER and REFUSED: 1 when the process should be replaced, else 0."""
    length: int


class ChannelClosed(Exception):
    """The other end is gone."""


class Channel:
    def __init__(self, end: socket.socket) -> None:
        self._socket = end

    def send(self, kind: Kind, number: int = 0, *parts: Buffer) -> None:
        length = sum(len(part) for part in parts)
        head = _HEAD.pack(kind, number, length)
        try:
            if length <= _JOINED_BYTES:
                self._socket.sendall(b"".join((head, *parts)))
                return
            self._socket.sendall(head)
            for part in parts:
                self._socket.sendall(part)
        except OSError as error:
            raise ChannelClosed(str(error)) from error

    def head(self) -> Head:
        kind, number, length = _HEAD.unpack(self.read(_HEAD.size))
        return Head(Kind(kind), number, length)

    def read(self, length: int) -> bytearray:
        body = bytearray(length)
        self.read_into(memoryview(body))
        return body

    def read_into(self, view: memoryview) -> None:
        at = 0
        try:
            while at < len(view):
                count = self._socket.recv_into(view[at:])
                if not count:
                    raise ChannelClosed("the other end closed the channel")
                at += count
        except OSError as error:
            raise ChannelClosed(str(error)) from error

    def skip(self, length: int) -> None:
        """Read and discard, a piece at a time."""
        piece = bytearray(min(length, _SKIPPED_BYTES))
        while length:
            part = memoryview(piece)[: min(length, len(piece))]
            self.read_into(part)
            length -= len(part)

    def close(self) -> None:
        self._socket.close()
