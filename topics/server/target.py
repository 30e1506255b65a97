"""What a request line asks for: from `/v0/topics/a%20b?touch=false` to a path and a query."""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

from topics.errors import InvalidRequest

_AUTHORITY_END = re.compile(rb"[/?#]")
_HEX = frozenset(b"0123456789abcdefABCDEF")


def parse_target(target: bytes) -> tuple[str, str]:
    """The decoded path and the query as it came. `http://host/path` and `*` are forms of a target too.

    An escaped slash is no separator but part of a name, so it stays `%2F`: the one escape that is not decoded.
    """
    text = target.partition(b"#")[0]
    if not text.startswith(b"/"):
        text = _without_authority(text)
    path, _, query = text.partition(b"?")
    if b"%" in path:
        path = _decode(path)
    if b"\0" in path:
        raise _refuse(target, "has a NUL in it")
    try:
        return path.decode(), query.decode()
    except UnicodeDecodeError as error:
        raise _refuse(target, f"is not UTF-8 when decoded ({error.reason} at byte {error.start})") from None


def authority_in(target: bytes) -> str | None:
    """The `host:port` of a target like `http://host:port/path`; None when it has none."""
    if target.startswith(b"/"):
        return None
    _, separator, rest = target.partition(b"://")
    return _AUTHORITY_END.split(rest, 1)[0].decode("latin-1") if separator else None


def _without_authority(text: bytes) -> bytes:
    if text == b"*":
        return text
    scheme, separator, rest = text.partition(b"://")
    if not separator or scheme.lower() not in (b"http", b"https"):
        raise _refuse(text, "is neither a path nor an http address")
    cut = min((at for at in (rest.find(b"/"), rest.find(b"?")) if at >= 0), default=len(rest))
    local = rest[cut:]
    return local if local.startswith(b"/") else b"/" + local


def _decode(path: bytes) -> bytes:
    at = path.find(b"%")
    while at >= 0:
        digits = path[at + 1 : at + 3]
        if len(digits) != 2 or not _HEX.issuperset(digits):
            raise _refuse(path, f"has a % at byte {at} that two hex digits must follow")
        at = path.find(b"%", at + 3)
    # Escaping the escape first keeps it through the decoding.
    return unquote_to_bytes(path.replace(b"%2F", b"%252F").replace(b"%2f", b"%252F"))


def _refuse(target: bytes, what: str) -> InvalidRequest:
    # The query is not shown: a token may be in it.
    shown = target.partition(b"?")[0][:200].decode("latin-1")
    return InvalidRequest(f"the request target {shown!r} {what}", expected="a path like /v0/topics")
