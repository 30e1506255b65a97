"""Bytes that come in pieces, as from a socket: in two, and a few inputs byte by byte, which takes as long as all else.

Where an input is cut, and whether it is one of the few, is told by its bytes: it is the same each time it is run.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

ONE_BY_ONE_EVERY: Final = 64


def one_in(number: int, data: bytes) -> bool:
    """Whether an input is among the one in so many that get a closer look."""
    return crc32(data) % number == 0


def cuttings(data: bytes) -> list[list[bytes]]:
    """Ways in which an input comes, beside whole: in two pieces, and for a few in pieces of a byte."""
    number = crc32(data)
    at = number % (len(data) + 1)
    found = [[data[:at], data[at:]]]
    if number % ONE_BY_ONE_EVERY == 0:
        found.append([data[at : at + 1] for at in range(len(data))])
    return found
