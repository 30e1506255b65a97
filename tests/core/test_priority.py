from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topics.core.priority import AGE_CAP_MS, RECENCY_FLOOR_MS, age, effective, recency

NOW_MS = 1_748_470_000_000


@pytest.mark.parametrize(
    ("idle_s", "expected"), [(0, 500), (15, 354), (30, 250), (60, 125), (120, 31), (300, 0), (3600, 0)]
)
def test_the_documented_decay(idle_s: int, expected: int) -> None:
    assert recency(idle_s * 1000) == expected
    assert effective(None, True, NOW_MS, NOW_MS - idle_s * 1000) == expected


@given(st.integers(0, RECENCY_FLOOR_MS - 1))
def test_recency_is_within_a_point_of_the_formula(idle_ms: int) -> None:
    assert abs(recency(idle_ms) - 500 * 2 ** (-idle_ms / 30_000)) <= 1


@given(st.integers(-1000, 400_000), st.integers(0, 400_000))
def test_recency_never_rises_while_idle(idle_ms: int, more_ms: int) -> None:
    assert recency(idle_ms + more_ms) <= recency(idle_ms) <= 500


@given(st.integers(-1000, 20_000), st.integers(0, 20_000))
def test_age_never_falls_while_waiting(waited_ms: int, more_ms: int) -> None:
    assert 0 <= age(waited_ms) <= age(waited_ms + more_ms) <= 1000


def test_age_climbs_by_100_a_second_up_to_1000() -> None:
    assert [age(ms) for ms in (0, 9, 10, 1000, 2500, AGE_CAP_MS, 60_000)] == [0, 0, 1, 100, 250, 1000, 1000]


def test_a_manual_priority_replaces_recency_and_age_still_counts() -> None:
    assert effective(10, True, NOW_MS, NOW_MS) == 10
    assert effective(10, True, NOW_MS, NOW_MS, NOW_MS - 1000) == 110
    assert effective(0, True, NOW_MS, NOW_MS) == 0
    assert effective(5000, True, NOW_MS) == 1000
    assert effective(-5000, False, NOW_MS) == -1000


def test_without_priority_and_without_auto_only_age_counts() -> None:
    assert effective(None, False, NOW_MS, NOW_MS) == 0
    assert effective(None, False, NOW_MS, NOW_MS, NOW_MS - 3000) == 300
    assert effective(None, True, NOW_MS) == 0


def test_a_clock_that_went_back_counts_as_now() -> None:
    assert effective(None, True, NOW_MS, NOW_MS + 5000, NOW_MS + 5000) == 500
