from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from topics.client.moment import moment_ms
from topics.errors import InvalidRequest

MOMENT = datetime(2126, 1, 1, tzinfo=UTC)
MOMENT_MS = 4_922_899_200_000


def test_a_moment_is_milliseconds_whatever_its_zone() -> None:
    assert moment_ms(MOMENT) == MOMENT_MS
    assert moment_ms(MOMENT.astimezone(timezone(timedelta(hours=-5)))) == MOMENT_MS
    assert moment_ms(datetime(1970, 1, 1, tzinfo=UTC)) == 0


def test_a_part_of_a_millisecond_is_never_too_early() -> None:
    assert moment_ms(MOMENT + timedelta(microseconds=1)) == MOMENT_MS + 1
    assert moment_ms(MOMENT + timedelta(microseconds=1000)) == MOMENT_MS + 1
    assert moment_ms(MOMENT + timedelta(microseconds=999_999)) == MOMENT_MS + 1000


def test_what_is_no_datetime_is_left_as_it_is() -> None:
    assert moment_ms(5) == 5
    assert moment_ms(None) is None


def test_a_moment_needs_a_zone() -> None:
    with pytest.raises(InvalidRequest, match="due must have a time zone, not 2126-01-01T00:00:00") as caught:
        moment_ms(datetime(2126, 1, 1), "due")
    assert caught.value.detail["field"] == "due"
