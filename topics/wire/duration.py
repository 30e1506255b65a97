"""Durations of the `/v1` wire: seconds as a number, or as text with an `s` behind it, `1.5` or `"1.5s"`."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

from topics.core.names import shorten
from topics.errors import InvalidRequest
from topics.limits import SECOND_MS

Duration = int | float | str

SECONDS_MAX: Final = 315_576_000_000
"""Ten thousand years, as the contract has it."""

_TEXT = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)s?", re.ASCII)
_EXPECTED: Final = 'seconds, 0 or more, such as 1.5 or "1.5s"'


def duration_ms(field: str, value: Duration) -> int:
    """Whole milliseconds; a part of one counts as a whole one."""
    match value:
        case bool():
            raise _refuse(field, value)
        case str():
            found = _TEXT.fullmatch(value.strip())
            if found is None:
                raise _refuse(field, value)
            seconds = Fraction(found[1])
        case _:
            # Not a number, and none that ends, compare as false.
            if not 0 <= value <= SECONDS_MAX:
                raise _refuse(field, value)
            seconds = Fraction(str(value))
    return -int(-seconds * SECOND_MS // 1)


def optional_ms(field: str, value: Duration | None) -> int | None:
    return None if value is None else duration_ms(field, value)


def seconds(ms: int) -> int | float:
    """The other way round: as short as it can be said."""
    return ms // SECOND_MS if ms % SECOND_MS == 0 else ms / SECOND_MS


def _refuse(field: str, value: object) -> InvalidRequest:
    return InvalidRequest(
        f"{field} must be {_EXPECTED}, not {shorten(repr(value))}",
        field=field,
        value=shorten(value),
        expected=_EXPECTED,
    )
