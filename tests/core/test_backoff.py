from __future__ import annotations

import pytest

from topics.core.backoff import backoff_ms

TOKENS = [(7 << 40) + count for count in range(1, 4001)]
"""As a heap gives them out: one after the other."""


@pytest.mark.parametrize(
    ("attempts", "bound_ms"),
    [(1, 1000), (2, 2000), (3, 4000), (9, 256_000), (10, 300_000), (11, 300_000), (4_000_000_000, 300_000)],
)
def test_chance_spreads_over_all_of_the_bound(attempts: int, bound_ms: int) -> None:
    rests = [backoff_ms(attempts, token) for token in TOKENS]
    assert 0 <= min(rests) < bound_ms * 0.01 and bound_ms * 0.99 < max(rests) <= bound_ms
    tenths = [sum(tenth * bound_ms / 10 <= rest < (tenth + 1) * bound_ms / 10 for rest in rests) for tenth in range(10)]
    assert min(tenths) > 330 and max(tenths) < 470


def test_the_same_lease_rests_as_long_after_a_crash() -> None:
    assert [backoff_ms(3, token) for token in TOKENS] == [backoff_ms(3, token) for token in TOKENS]
