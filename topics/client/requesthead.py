"""The bytes of a request: a head with what never changes made once, and the body, compressed if asked for."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Final

from topics import __version__
from topics.client.address import Address
from topics.errors import InvalidRequest
from topics.limits import KIB

COMPRESSED_BYTES_MIN: Final = 1 * KIB
_LEVEL: Final = 1
_NO_HEADERS: Mapping[str, str] = {}
_GZIP_WBITS = 16 + zlib.MAX_WBITS


class RequestHead:
    def __init__(self, address: Address, key: str | None, compress: bool) -> None:
        self._path = address.path
        self._compress = compress
        lines = [f"Host: {address.authority}", f"User-Agent: topics-python/{__version__}"]
        if key:
            lines.append(f"Authorization: Bearer {_checked(key)}")
        if compress:
            lines.append("Accept-Encoding: gzip")
        self._lines = "\r\n".join(lines)

    def message(self, method: str, path: str, body: bytes, headers: Mapping[str, str] = _NO_HEADERS) -> bytes:
        head = f"{method} {self._path}{path} HTTP/1.1\r\n{self._lines}\r\n"
        for name, value in headers.items():
            head += f"{name}: {value}\r\n"
        if body:
            if self._compress and len(body) >= COMPRESSED_BYTES_MIN:
                body = _gzip(body)
                head += "Content-Encoding: gzip\r\n"
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        elif method != "GET":
            head += "Content-Length: 0\r\n"
        return head.encode() + b"\r\n" + body


def _checked(key: str) -> str:
    """A key that can stand in a header; the error does not repeat it."""
    if not (key.isascii() and key.isprintable()) or " " in key:
        expected = "printable ASCII without spaces"
        raise InvalidRequest(f"key must be {expected}: check how it was read", field="key", expected=expected)
    return key


def _gzip(body: bytes) -> bytes:
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP_WBITS)
    return packer.compress(body) + packer.flush()
