from __future__ import annotations

import pytest

from topics.errors import InvalidRequest
from topics.wire.duration import SECONDS_MAX, Duration, duration_ms, optional_ms, seconds


@pytest.mark.parametrize(
    ("given", "expected_ms"),
    [
        (0, 0),
        (1, 1000),
        (1.5, 1500),
        (0.0001, 1),
        (2.0005, 2001),
        ("1.5s", 1500),
        ("0.000000001s", 1),
        (" 30s ", 30_000),
        ("2", 2000),
        (SECONDS_MAX, SECONDS_MAX * 1000),
    ],
)
def test_seconds_as_numbers_and_as_text(given: Duration, expected_ms: int) -> None:
    assert duration_ms("x", given) == expected_ms


@pytest.mark.parametrize(
    "given", [-1, -0.5, "-1s", "1m", "", "s", "1.5.5s", "١s", True, float("nan"), float("inf"), SECONDS_MAX + 1, "1e3"]
)
def test_what_is_no_duration_is_refused_by_name(given: Duration) -> None:
    with pytest.raises(InvalidRequest, match="backoff must be seconds") as refused:
        duration_ms("backoff", given)
    assert refused.value.detail["field"] == "backoff"


def test_nothing_is_nothing_and_the_way_back_is_short() -> None:
    assert optional_ms("x", None) is None
    assert (seconds(300_000), seconds(1500), seconds(0)) == (300, 1.5, 0)
