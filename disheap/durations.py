"""Durations as callers give them: seconds, or a `timedelta`."""

from __future__ import annotations

from datetime import timedelta

Seconds = float | timedelta


def milliseconds(given: Seconds) -> int:
    seconds = given.total_seconds() if isinstance(given, timedelta) else given
    return round(seconds * 1000)


def optional_ms(given: Seconds | None) -> int | None:
    return None if given is None else milliseconds(given)
