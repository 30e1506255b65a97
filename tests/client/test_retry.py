from __future__ import annotations

import random

import pytest

from topics.client.retry import Retry
from topics.errors import InvalidRequest


class Most(random.Random):
    """Always the longest wait that may be."""

    def uniform(self, a: float, b: float) -> float:
        return b


def test_the_wait_doubles_with_each_delivery_up_to_the_most() -> None:
    retry = Retry(1000, 5000, Most())
    assert [retry.delay_ms(deliveries) for deliveries in (1, 2, 3, 4, 10_000)] == [1000, 2000, 4000, 5000, 5000]


def test_no_two_jobs_wait_alike() -> None:
    retry = Retry(1000, 300_000, random.Random(1))
    waits = [retry.delay_ms(1) for _ in range(100)]
    assert len(set(waits)) > 50 and min(waits) >= 0 and max(waits) <= 1000


def test_zero_is_at_once() -> None:
    assert Retry(0).delay_ms(7) == 0


@pytest.mark.parametrize(("first", "most", "field"), [(-1, 10, "retry_ms"), (1, 10**9, "retry_ms_max")])
def test_what_is_no_wait_is_refused_by_name(first: int, most: int, field: str) -> None:
    with pytest.raises(InvalidRequest, match="a whole number from 0") as refused:
        Retry(first, most)
    assert refused.value.detail["field"] == field
