"""Changes of an input: small ones at chance places, and pieces of others put into it."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

CHANGES_MAX: Final = 6
"""Changes that are made one after the other, at most."""
PIECE_BYTES_MAX: Final = 64
REPEATS_MAX: Final = 256

EDGES: Final = (0, 1, 2, 7, 8, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 2**63 - 1, 2**64 - 1)
"""Numbers at which lengths and counts go wrong."""
NUMBERS: Final = (b"0", b"-1", b"1e999", b"9" * 40, b"18446744073709551616", b"0x10", b"NaN", b"1.5", b"00")
FORMATS: Final = ("<B", "<H", "<I", "<Q", ">H", ">I", ">Q")

Change = Callable[[Random, bytes, Sequence[bytes], Sequence[bytes]], bytes]
"""Takes the chance, an input, other inputs and the words of the language."""


def mutated(chance: Random, data: bytes, others: Sequence[bytes], words: Sequence[bytes], bytes_max: int) -> bytes:
    """Another input, made of one; never longer than it may be."""
    for _ in range(1 + chance.randrange(CHANGES_MAX)):
        data = chance.choice(CHANGES)(chance, data, others, words)
    return data[:bytes_max]


def flip(chance: Random, data: bytes, others: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """One bit."""
    if not data:
        return data
    at = chance.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]


def replace(chance: Random, data: bytes, others: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """One byte."""
    at = chance.randrange(len(data) + 1)
    return data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]


def cut(chance: Random, data: bytes, others: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """A piece is missing."""
    start, end = _piece(chance, data)
    return data[:start] + data[end:]


def end_early(chance: Random, data: bytes, others: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    return data[: chance.randrange(len(data) + 1)]


def repeat(chance: Random, data: bytes, others: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """A piece is there again, once or very often."""
    start, end = _piece(chance, data)
    times = 1 if chance.random() < 0.8 else chance.randrange(REPEATS_MAX)
    return data[:end] + data[start:end] * times + data[end:]


def move(chance: Random, data: bytes, others: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """A piece stands elsewhere."""
    start, end = _piece(chance, data)
    rest = data[:start] + data[end:]
    at = chance.randrange(len(rest) + 1)
    return rest[:at] + data[start:end] + rest[at:]


def splice(chance: Random, data: bytes, others: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """The beginning of one and the end of another."""
    other = chance.choice(others)
    return data[: chance.randrange(len(data) + 1)] + other[chance.randrange(len(other) + 1) :]


def borrow(chance: Random, data: bytes, others: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """A piece of another."""
    other = chance.choice(others)
    start, end = _piece(chance, other)
    at = chance.randrange(len(data) + 1)
    return data[:at] + other[start:end] + data[at + chance.choice((0, end - start)) :]


def say(chance: Random, data: bytes, others: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """A word, in place of what stands there or between."""
    word = chance.choice(words or NUMBERS)
    at = chance.randrange(len(data) + 1)
    return data[:at] + word + data[at + chance.choice((0, len(word))) :]


def count(chance: Random, data: bytes, others: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """A number in digits, at an edge."""
    at = chance.randrange(len(data) + 1)
    end = at
    while end < len(data) and data[end : end + 1].isdigit():
        end += 1
    return data[:at] + chance.choice(NUMBERS) + data[end:]


def measure(chance: Random, data: bytes, others: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """A number in binary, at an edge or near what stands there."""
    form = chance.choice(FORMATS)
    size = struct.calcsize(form)
    at = chance.randrange(len(data) + 1)
    if chance.random() < 0.5 and at + size <= len(data):
        value = struct.unpack_from(form, data, at)[0] + chance.randrange(-16, 17)
    else:
        value = chance.choice(EDGES)
    return data[:at] + struct.pack(form, value % (1 << 8 * size)) + data[at + size :]


CHANGES: Final[tuple[Change, ...]] = (
    flip,
    replace,
    cut,
    end_early,
    repeat,
    move,
    splice,
    borrow,
    say,
    say,
    count,
    measure,
)


def _piece(chance: Random, data: bytes) -> tuple[int, int]:
    start = chance.randrange(len(data) + 1)
    return start, min(len(data), start + chance.randrange(PIECE_BYTES_MAX))
