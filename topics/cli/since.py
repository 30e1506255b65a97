"""`--since`: a time to begin at, as a person says it: so long ago, or a date and a time of day."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from cyclopts import Parameter

from topics.clock import Clock, SystemClock
from topics.errors import InvalidRequest
from topics.settings import Unit, parse_number

SinceFlag = Annotated[
    str | None,
    Parameter(
        help="Begin at this time instead: 10m is ten minutes ago; or 2026-11-15T12:00, here unless it names a zone.",
        show_default=False,
    ),
]

EXPECTED = "so long ago, like 30s, 10m or 2h, or a time like 2026-11-15T12:00 or 2026-11-15T12:00Z"


def since_ms(given: str, clock: Clock | None = None) -> int:
    """The time that is meant, in milliseconds since 1970. One that is still to come is a slip of the pen."""
    now_ms = (clock or SystemClock()).now_ms()
    ago_ms = _ago_ms(given)
    time_ms = _moment_ms(given) if ago_ms is None else now_ms - ago_ms
    if time_ms > now_ms:
        raise InvalidRequest(f"--since={given} is still to come; expected {EXPECTED}", field="since")
    return max(time_ms, 0)


def _ago_ms(given: str) -> int | None:
    """A length of time. Whoever says how long ago something was says `10m`; a bare number could be anything."""
    if given.isdecimal():
        return None
    return parse_number(f"{given}in" if given.endswith("m") else given, Unit.MS)


def _moment_ms(given: str) -> int:
    """A moment by the calendar; what names no zone is meant in the one of this machine."""
    try:
        return round(datetime.fromisoformat(given).timestamp() * 1_000_000) // 1000
    except (ValueError, OverflowError, OSError):
        raise InvalidRequest(f"--since={given}: expected {EXPECTED}", field="since", expected=EXPECTED) from None
