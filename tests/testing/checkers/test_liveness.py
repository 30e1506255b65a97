"""What must end in its time, and what a late or missing answer is called."""

from __future__ import annotations

from typing import Any

import pytest

from tests.testing.checkers.histories import Making, rules
from topics.testing.checkers.liveness import SLACK_MS, check_liveness

WITHIN_MS = 400
MOST_MS = 500 + SLACK_MS


def broken(took_ms: int, answer: dict[str, Any] | None, brings: bool = True) -> list[str]:
    made = Making()
    asked = {"for": "waits for a job", "within_ms": WITHIN_MS, "brings": brings}
    made.call("claim", asked, answer, sent_ms=1000, done_ms=1000 + took_ms)
    made.call("claim", {}, {"grants": []}, done_ms=10**9)
    return rules(check_liveness, made.history)


@pytest.mark.parametrize("answer", [{"grants": [{"item": 1}]}, {"records": [(1, 1)]}])
def test_answer_in_its_time_breaks_nothing(answer: dict[str, Any]) -> None:
    assert broken(MOST_MS, answer) == []
    assert broken(MOST_MS + 1, answer) == ["late"]


def test_call_without_an_answer_is_never_done() -> None:
    assert broken(MOST_MS, None) == ["never"]


def test_wait_in_vain_ends_with_nothing() -> None:
    assert broken(MOST_MS, {"grants": []}, brings=False) == []
    assert broken(MOST_MS, {"grants": []}) == ["answer"]
    assert broken(MOST_MS, {"grants": [{"item": 1}]}, brings=False) == ["answer"]
