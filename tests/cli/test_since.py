from __future__ import annotations

from datetime import UTC, datetime

import pytest

from topics import errors
from topics.cli.since import since_ms
from topics.testing import SimClock

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
NOW_MS = int(NOW.timestamp() * 1000)


@pytest.mark.parametrize(
    ("given", "ago_ms"),
    [
        ("500ms", 500),
        ("30s", 30_000),
        ("10m", 600_000),
        ("1.5h", 5_400_000),
        ("2d", 172_800_000),
        ("0s", 0),
        ("2026-11-15T11:59Z", 60_000),
        ("2026-11-15T12:59+01:00", 60_000),
        ("2026-11-15T11:59:59.500Z", 500),
        ("2026-11-15 11:00", 3_600_000),
        ("2026-11-15", 43_200_000),
        ("20261115", 43_200_000),
    ],
)
def test_so_long_ago_or_a_moment(given: str, ago_ms: int) -> None:
    assert since_ms(given, SimClock(NOW_MS)) == NOW_MS - ago_ms


def test_before_all_time_is_the_beginning() -> None:
    assert since_ms("1000000d", SimClock(NOW_MS)) == 0
    assert since_ms("1960-01-01", SimClock(NOW_MS)) == 0


@pytest.mark.parametrize("given", ["", "soon", "10 parsecs", "-10m", "1600000000000", "2026-13-01", "12:00"])
def test_what_is_no_time(given: str) -> None:
    with pytest.raises(errors.InvalidRequest, match="expected so long ago, like 30s, 10m or 2h, or a time like"):
        since_ms(given, SimClock(NOW_MS))


def test_what_is_still_to_come() -> None:
    with pytest.raises(errors.InvalidRequest, match="2026-11-15T12:01Z is still to come"):
        since_ms("2026-11-15T12:01Z", SimClock(NOW_MS))
