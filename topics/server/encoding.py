"""Compressed bodies, both ways: gzip, and nothing else."""

from __future__ import annotations

import zlib

from topics.errors import InvalidRequest, PayloadTooLarge, UnsupportedMediaType
from topics.limits import KIB

GZIP_LEVEL = 1
"""The fastest, which already finds most of what repeats in JSON."""

ASIDE_BYTES_MIN = 64 * KIB
"""What is larger than this when it is not compressed takes longer to (un)compress than a turn of the loop should: about
half a millisecond. It belongs on a thread, where zlib lets go of the interpreter."""

MEMBERS_MAX = 16
"""Parts a gzip body may be joined of. Each costs a copy of what follows it, so many empty ones would cost a lot."""

_GZIP_WBITS = 16 + zlib.MAX_WBITS
_GZIP_NAMES = ("gzip", "x-gzip")


def is_gzip(content_encoding: str) -> bool:
    """Whether a request's body is compressed; `UnsupportedMediaType` for an encoding that we do not know."""
    name = content_encoding.strip().lower()
    if name in _GZIP_NAMES:
        return True
    if name in ("", "identity"):
        return False
    raise UnsupportedMediaType(
        f"Content-Encoding {content_encoding!r} is not known: send gzip or leave it out", expected="gzip"
    )


def accepts_gzip(accept_encoding: str) -> bool:
    """Whether the client takes gzip: by name, or by `*`, and not with a weight of nought."""
    by_star = False
    for item in accept_encoding.lower().split(","):
        name, _, parameters = item.partition(";")
        name = name.strip()
        if name in _GZIP_NAMES:
            return _weight(parameters) > 0
        if name == "*":
            by_star = _weight(parameters) > 0
    return by_star


def _weight(parameters: str) -> float:
    name, _, value = parameters.partition("=")
    if name.strip() != "q":
        return 1.0
    try:
        return float(value)
    except ValueError:
        return 0.0


def gzip(body: bytes) -> bytes:
    packer = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, _GZIP_WBITS)
    return packer.compress(body) + packer.flush()


def gunzip_if_small(body: bytes, bytes_max: int) -> bytes | None:
    """The same as `gunzip` as long as it does not take long; None when it would."""
    if len(body) > ASIDE_BYTES_MIN:
        return None
    most = min(bytes_max, ASIDE_BYTES_MIN)
    try:
        return gunzip(body, most)
    except PayloadTooLarge:
        if most == bytes_max:
            raise
        return None


def gunzip(body: bytes, bytes_max: int) -> bytes:
    """All members of a gzip body, or an error before more than `bytes_max` are made of it."""
    parts: list[bytes] = []
    total_bytes = 0
    for _ in range(MEMBERS_MAX):
        member = zlib.decompressobj(_GZIP_WBITS)
        try:
            # One byte beyond the bound tells a body that is too large from one that just fits.
            part = member.decompress(body, bytes_max - total_bytes + 1)
        except zlib.error as error:
            raise InvalidRequest(f"the body is not gzip, as Content-Encoding says: {error}", expected="gzip") from None
        parts.append(part)
        total_bytes += len(part)
        if total_bytes > bytes_max:
            raise PayloadTooLarge(
                f"the body has more than {bytes_max} bytes when decompressed", max_bytes=bytes_max, encoding="gzip"
            )
        if not member.eof:
            raise InvalidRequest("the gzip body ends in the middle: its end is missing", expected="gzip")
        body = member.unused_data
        if not body:
            return b"".join(parts)
    raise InvalidRequest(f"the gzip body is joined of more than {MEMBERS_MAX} parts", expected="one part")
