"""A time that a program names: a `datetime` that knows its time zone, or milliseconds since 1970."""

from __future__ import annotations

from datetime import datetime
from typing import Final, TypeVar

from topics.errors import InvalidRequest
from topics.limits import SECOND_MS

Other = TypeVar("Other")

_MICROSECONDS: Final = 1000
"""In a millisecond."""


def moment_ms(moment: datetime | Other, field: str = "not_before") -> int | Other:
    """Milliseconds since 1970, never before the moment; what is no `datetime` is left as it is."""
    if not isinstance(moment, datetime):
        return moment
    if moment.tzinfo is None:
        message = f"{field} must have a time zone, not {moment.isoformat()}: which midnight is meant?"
        raise InvalidRequest(message, field=field, expected="a datetime with tzinfo")
    whole_ms = int(moment.replace(microsecond=0).timestamp()) * SECOND_MS
    return whole_ms + -(-moment.microsecond // _MICROSECONDS)
