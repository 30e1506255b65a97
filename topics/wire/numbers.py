"""Numbers of a request that have a range."""

from __future__ import annotations

from topics.core.names import shorten
from topics.errors import InvalidRequest


def whole(field: str, value: int | None, most: int) -> int:
    """A whole number from 0 to `most`; 0 when it is not given."""
    if value is None:
        return 0
    if not 0 <= value <= most:
        expected = f"a whole number from 0 to {most}"
        shown = shorten(value)
        raise InvalidRequest(f"{field} must be {expected}, not {shown}", field=field, value=shown, expected=expected)
    return value
