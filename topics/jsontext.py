"""A Python value as JSON text, or an error that says why it is none."""

from __future__ import annotations

import math

import msgspec

from topics.errors import InvalidRequest
from topics.limits import NESTING_MAX

NOT_UNDERSTOOD = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What a decoder of msgspec raises for bytes that are not the JSON it is for."""

_raw_decoder = msgspec.json.Decoder(msgspec.Raw)


def encode(value: object, field: str) -> bytes:
    """The text of a value; `field` is what an error calls it."""
    try:
        text = msgspec.json.encode(value)
        # A `Raw` is text already, and text has no NaN.
        if b"null" in text and _holds_nan(msgspec.to_builtins(value, enc_hook=lambda raw: None)):
            raise ValueError("NaN and infinities are not JSON numbers")
        # A `Raw` inside is passed on unread by the encoder; what goes into the log must be one JSON value.
        _raw_decoder.decode(text)
        text.decode()
        return text.strip(b" \t\r\n")
    except RecursionError:
        raise too_deep(field) from None
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidRequest(f"{field} cannot be written as JSON: {error}", field=field, expected="JSON") from None


def too_deep(field: str) -> InvalidRequest:
    expected = f"nested at most {NESTING_MAX} deep"
    return InvalidRequest(f"{field} must be {expected}", field=field, expected=expected)


def _holds_nan(value: object) -> bool:
    """Whether the encoder wrote a null for a float that JSON cannot hold."""
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, dict):
        return any(map(_holds_nan, value.values()))
    return isinstance(value, list | tuple) and any(map(_holds_nan, value))
