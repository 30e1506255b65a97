"""Flags that are a length of time, or a moment."""

from __future__ import annotations

from datetime import datetime

from topics.client.moment import moment_ms as ms_of
from topics.errors import InvalidRequest
from topics.settings import Unit, parse_number


def milliseconds(flag: str, given: str) -> int:
    """`500ms`, `10s` or `1h` in milliseconds. Only 0 needs no unit: a bare number could be seconds or milliseconds."""
    number = parse_number(given, Unit.MS)
    if number and not given[-1].isalpha():
        number = None
    if number is None:
        expected = "a duration with a unit, like 500ms, 10s or 1h"
        raise InvalidRequest(f"--{flag}={given}: expected {expected}", field=flag, expected=expected)
    return number


def moment_ms(flag: str, given: str) -> int:
    """A date and a time of day, in milliseconds since 1970; without a zone it is meant in the one of this machine."""
    try:
        return ms_of(datetime.fromisoformat(given).astimezone())
    except (ValueError, OverflowError, OSError):
        expected = "a time like 2026-11-15T12:00 or 2026-11-15T12:00Z"
        raise InvalidRequest(f"--{flag}={given}: expected {expected}", field=flag, expected=expected) from None
