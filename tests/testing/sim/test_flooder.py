"""The simulator sees floods beside a quiet client, bodies without a key, and requests that overtake each other."""

from __future__ import annotations

import pytest

from tests.testing.sim.test_planted import (
    Plant,
    bodies_come_before_their_key,
    pipelined_requests_overtake,
    turns_do_not_end,
)
from topics.testing.sim.verdict import live
from topics.testing.sim.world import furnished

SEEDS = 60


@pytest.mark.parametrize(
    ("plant", "rule"),
    [
        (turns_do_not_end, "flood: pipelined requests"),
        (turns_do_not_end, "flood: chunks"),
        (turns_do_not_end, "flood: frames"),
        (bodies_come_before_their_key, "memory: "),
        (pipelined_requests_overtake, "pipeline: "),
    ],
)
def test_planted_flood_is_found(plant: Plant, rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    furnished()
    plant(monkeypatch)
    assert any(rule in violation for seed in range(1, SEEDS + 1) for violation in live(seed).violations)
