"""A WebSocket as a client has it: the handshake, frames out of bytes, and masked frames into them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from struct import pack, unpack_from

from topics.testing.sim.http import request_bytes

TEXT, CLOSE, PING, PONG = 1, 8, 9, 10
_HEAD = b"\r\n\r\n"
_KEY = "c2ltdWxhdGVkIGNsaWVudA=="
"""Any sixteen bytes will do."""


def handshake(path: str) -> bytes:
    headers = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
    return request_bytes("GET", path, headers=headers | {"Sec-WebSocket-Key": _KEY})


def frame(payload: bytes, chance: random.Random, opcode: int = TEXT) -> bytes:
    """A whole message, masked as those of clients are."""
    size, mask = len(payload), chance.randbytes(4)
    head = pack(">BB", 0x80 | opcode, 0x80 | size) if size < 126 else pack(">BBH", 0x80 | opcode, 0xFE, size)
    masked = bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload))
    return head + mask + masked


class SocketReader:
    """Takes what the server sends. `is_open` once it has agreed; `is_refused` when it answers anything else."""

    def __init__(self) -> None:
        self._rest = b""
        self.is_open = False
        self.is_refused = False

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """The frames that are whole now, each with its opcode."""
        self._rest += data
        if not self.is_open:
            head, found, rest = self._rest.partition(_HEAD)
            if not found:
                return
            self.is_open = head.startswith(b"HTTP/1.1 101")
            self.is_refused = not self.is_open
            self._rest = rest
        while self.is_open and (taken := self._frame()) is not None:
            yield taken

    def _frame(self) -> tuple[int, bytes] | None:
        rest = self._rest
        if len(rest) < 2:
            return None
        opcode, size, at = rest[0] & 0x0F, rest[1], 2
        if size >= 126:
            at = 4 if size == 126 else 10
            if len(rest) < at:
                return None
            (size,) = unpack_from(">H" if at == 4 else ">Q", rest, 2)
        if len(rest) < at + size:
            return None
        self._rest = rest[at + size :]
        return opcode, rest[at : at + size]
