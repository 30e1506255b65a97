"""Flags that are a length of time."""

from __future__ import annotations

from topics.errors import InvalidRequest
from topics.settings import Unit, parse_number


def milliseconds(flag: str, given: str) -> int:
    """`500ms`, `10s` or `1h` in milliseconds."""
    number = parse_number(given, Unit.MS)
    if number is None:
        expected = "a duration like 500ms, 10s or 1h"
        raise InvalidRequest(f"--{flag}={given}: expected {expected}", field=flag, expected=expected)
    return number
