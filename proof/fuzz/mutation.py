"""Changes of an input: small ones at chance places, and pieces of others put into it.

Inputs are made by the million, and a decoder may take no longer than one of these: a number by chance is a float that
is cut off, and what can be made beforehand is.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

SIBLINGS: Final = 8
"""Inputs that have their first changes in common."""
SHARED_MAX: Final = 4
"""Changes that siblings have in common, at most."""
OWN_MAX: Final = 2
"""Changes that are one's own, at most; there is one at least."""
PIECE_BYTES_MAX: Final = 64
REPEATS_MAX: Final = 256

EDGES: Final = (0, 1, 2, 7, 8, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 2**63 - 1, 2**64 - 1)
"""Numbers at which lengths and counts go wrong."""
FORMATS: Final = tuple(map(struct.Struct, ("<B", "<H", "<I", "<Q", ">H", ">I", ">Q")))
EDGE_BYTES: Final = tuple(form.pack(edge % (1 << 8 * form.size)) for form in FORMATS for edge in EDGES)
NUMBERS: Final = (b"0", b"-1", b"1e999", b"9" * 40, b"18446744073709551616", b"0x10", b"NaN", b"1.5", b"00")
DIGITS: Final = re.compile(rb"\d*")
BYTES: Final = tuple(bytes([byte]) for byte in range(256))

Draw = Callable[[], float]
"""A number from nought up to one, by chance."""
Change = Callable[[Draw, bytes, Sequence[bytes], Sequence[bytes]], bytes]
"""Takes the chance, an input, other inputs and the words of the language."""


def siblings(
    chance: Random, data: bytes, others: Sequence[bytes], words: Sequence[bytes], bytes_max: int
) -> list[bytes]:
    """Other inputs, made of one; none longer than it may be."""
    draw = chance.random
    for _ in range(int(draw() * (SHARED_MAX + 1))):
        data = CHANGES[int(draw() * len(CHANGES))](draw, data, others, words)
    data = data[:bytes_max]
    made = []
    for _ in range(SIBLINGS):
        other = data
        for _ in range(1 + int(draw() * OWN_MAX)):
            other = CHANGES[int(draw() * len(CHANGES))](draw, other, others, words)
        made.append(other[:bytes_max])
    return made


def flip(draw: Draw, data: bytes, others: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """One bit."""
    if not data:
        return data
    at = int(draw() * len(data))
    return data[:at] + BYTES[data[at] ^ 1 << int(draw() * 8)] + data[at + 1 :]


def replace(draw: Draw, data: bytes, others: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """One byte."""
    at = int(draw() * (len(data) + 1))
    return data[:at] + BYTES[int(draw() * 256)] + data[at + 1 :]


def cut(draw: Draw, data: bytes, others: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """A piece is missing."""
    start, end = _piece(draw, data)
    return data[:start] + data[end:]


def end_early(draw: Draw, data: bytes, others: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    return data[: int(draw() * (len(data) + 1))]


def repeat(draw: Draw, data: bytes, others: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """A piece is there again, once or very often."""
    start, end = _piece(draw, data)
    times = 1 if draw() < 0.8 else int(draw() * REPEATS_MAX)
    return data[:end] + data[start:end] * times + data[end:]


def move(draw: Draw, data: bytes, others: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """A piece stands elsewhere."""
    start, end = _piece(draw, data)
    rest = data[:start] + data[end:]
    at = int(draw() * (len(rest) + 1))
    return rest[:at] + data[start:end] + rest[at:]


def splice(draw: Draw, data: bytes, others: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """The beginning of one and the end of another."""
    other = others[int(draw() * len(others))]
    return data[: int(draw() * (len(data) + 1))] + other[int(draw() * (len(other) + 1)) :]


def borrow(draw: Draw, data: bytes, others: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """A piece of another, in place of what stands there or between."""
    other = others[int(draw() * len(others))]
    start, end = _piece(draw, other)
    at = int(draw() * (len(data) + 1))
    return data[:at] + other[start:end] + data[at + (end - start if draw() < 0.5 else 0) :]


def say(draw: Draw, data: bytes, others: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """A word, in place of what stands there or between."""
    some = words or NUMBERS
    word = some[int(draw() * len(some))]
    at = int(draw() * (len(data) + 1))
    return data[:at] + word + data[at + (len(word) if draw() < 0.5 else 0) :]


def count(draw: Draw, data: bytes, others: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """A number in digits, at an edge."""
    at = int(draw() * (len(data) + 1))
    digits = DIGITS.match(data, at)
    return data[:at] + NUMBERS[int(draw() * len(NUMBERS))] + data[digits.end() if digits else at :]


def measure(draw: Draw, data: bytes, others: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """A number in binary, at an edge or near what stands there."""
    at = int(draw() * (len(data) + 1))
    form = FORMATS[int(draw() * len(FORMATS))]
    if draw() < 0.5 and at + form.size <= len(data):
        near = form.unpack_from(data, at)[0] + int(draw() * 33) - 16
        number = form.pack(near % (1 << 8 * form.size))
    else:
        number = EDGE_BYTES[int(draw() * len(EDGE_BYTES))]
    return data[:at] + number + data[at + len(number) :]


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


def _piece(draw: Draw, data: bytes) -> tuple[int, int]:
    start = int(draw() * (len(data) + 1))
    return start, min(len(data), start + int(draw() * PIECE_BYTES_MAX))
