"""The cursor of a list: base64 of `{"after": name}`, opaque to clients."""

from __future__ import annotations

import binascii
from base64 import b64decode, urlsafe_b64encode

import msgspec

from topics.errors import InvalidRequest
from topics.jsontext import NOT_UNDERSTOOD


class _Cursor(msgspec.Struct):
    after: str


_decoder = msgspec.json.Decoder(_Cursor)


def encode_cursor(after: str) -> str:
    return urlsafe_b64encode(msgspec.json.encode(_Cursor(after))).decode()


def decode_cursor(text: str) -> str:
    """The name a page begins behind; an empty cursor is the beginning."""
    if not text:
        return ""
    try:
        return _decoder.decode(b64decode(text.encode(), altchars=b"-_", validate=True)).after
    except (binascii.Error, UnicodeError, *NOT_UNDERSTOOD):
        raise InvalidRequest(
            "cursor is not one that a list returned", field="cursor", expected="next_cursor of the page before"
        ) from None
