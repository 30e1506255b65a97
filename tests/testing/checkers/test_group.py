"""What a group's history must not show."""

from __future__ import annotations

from typing import Any

import pytest

from tests.testing.checkers.histories import Making
from topics.testing.checkers.group import check_groups

LEASE_MS = 100


def consume(making: Making, claim: str, granted_ms: int, first: int = 1, last: int = 2) -> None:
    answer = {
        "claim": claim,
        "first_seq": first,
        "last_seq": last,
        "records": [(seq, seq) for seq in range(first, last + 1)],
        "granted_ms": granted_ms,
        "deadline_ms": granted_ms + LEASE_MS,
        "committed_seq": 0,
        "gap": None,
    }
    making.call("consume", {"group": "g"}, answer)


def settle(making: Making, verb: str, claim: str, **answer: Any) -> None:
    making.call(verb, {"group": "g", "claim": claim, "first_seq": 1, "last_seq": 2}, answer)


def rules(making: Making) -> list[str]:
    return [violation.rule for violation in check_groups(making.end())]


@pytest.mark.parametrize(("granted_ms", "found"), [(50, ["group.live"]), (101, [])])
def test_what_somebody_has_nobody_else_gets(granted_ms: int, found: list[str]) -> None:
    making = Making(synced=True, leases_synced=True)
    consume(making, "a", 0)
    consume(making, "b", granted_ms, 2, 3)
    assert rules(making) == found


def test_a_claim_that_is_extended_is_somebodys_for_longer() -> None:
    making = Making(synced=True, leases_synced=True)
    consume(making, "a", 0)
    settle(making, "group_extend", "a", deadline_ms=300)
    consume(making, "b", 200)
    assert rules(making) == ["group.live"]


def test_a_claim_that_ran_out_and_came_back_was_nobodys_meanwhile() -> None:
    making = Making(synced=True, leases_synced=True)
    consume(making, "a", 0)
    consume(making, "b", 150)
    settle(making, "group_extend", "a", deadline_ms=400)
    assert rules(making) == []
