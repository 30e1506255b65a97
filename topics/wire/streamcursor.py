"""The composite cursor of a watch: where a stream stands in each of its topics, in the `id` of an event.

    base64url of {"jobs":5210,"events":88130}     a position in each topic, by its key
    … with "$epochs":{"jobs":7} in it             those that belong to a later life of the topic than the first
    base64url of {"$session":"x3k…","$at":17}     a checkpoint, when there are too many topics for each to be named

Opaque to clients, who hand back what they got. No topic's name begins with `$`.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Mapping

import msgspec

from topics.errors import InvalidRequest
from topics.limits import U64_MAX

EPOCHS = "$epochs"
SESSION = "$session"
AT = "$at"

_ENCODED_CHARS_MAX = 1 << 20
_IN_URLS = bytes.maketrans(b"+/", b"-_")
_decoder = msgspec.json.Decoder(dict[str, int | str | dict[str, int]])


class Positions(msgspec.Struct, frozen=True):
    """A seq for each key, and the epoch of those whose topic was made anew since the watch began."""

    seqs: dict[str, int]
    epochs: dict[str, int] = {}


class Checkpoint(msgspec.Struct, frozen=True):
    """A place in what one session has sent."""

    session: str
    at: int


def encode_positions(seqs: Mapping[str, int], epochs: Mapping[str, int] | None = None) -> bytes:
    fields: dict[str, object] = {**seqs, EPOCHS: epochs} if epochs else dict(seqs)
    return _pack(msgspec.json.encode(fields))


def encode_checkpoint(session: str, at: int) -> bytes:
    return _pack(msgspec.json.encode({SESSION: session, AT: at}))


def decode_stream_cursor(text: str, field: str = "cursor") -> Positions | Checkpoint:
    """What an `id` stands for, or `InvalidRequest`."""
    try:
        if len(text) > _ENCODED_CHARS_MAX:
            raise ValueError
        found = _decoder.decode(b64decode(text.encode() + b"=" * (-len(text) % 4), altchars=b"-_", validate=True))
        return _checkpoint(found) if AT in found or SESSION in found else _positions(found)
    except (binascii.Error, msgspec.DecodeError, UnicodeError, ValueError):
        expected = "the id of an event, as it was sent"
        raise InvalidRequest(f"{field} is not one that a stream sent", field=field, expected=expected) from None


def _checkpoint(found: dict[str, int | str | dict[str, int]]) -> Checkpoint:
    session, at = found.get(SESSION), found.get(AT)
    if not isinstance(session, str) or not isinstance(at, int) or at < 0:
        raise ValueError
    return Checkpoint(session, at)


def _positions(found: dict[str, int | str | dict[str, int]]) -> Positions:
    epochs = found.pop(EPOCHS, {})
    if not isinstance(epochs, dict):
        raise ValueError
    seqs = {key: seq for key, seq in found.items() if isinstance(seq, int) and 0 <= seq <= U64_MAX}
    if len(seqs) < len(found):
        raise ValueError
    return Positions(seqs, epochs)


def _pack(text: bytes) -> bytes:
    return binascii.b2a_base64(text, newline=False).translate(_IN_URLS).rstrip(b"=")
