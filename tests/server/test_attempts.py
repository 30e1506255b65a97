"""Who fails waits: twice as long each time, up to a bound, and not for ever."""

from __future__ import annotations

import pytest

from topics.errors import Throttled
from topics.server.attempts import FORGOTTEN_MS, NAMES_MAX, Attempts
from topics.testing import SimClock


def waits_ms(attempts: Attempts, name: str = "a") -> int:
    try:
        attempts.check(name)
    except Throttled as refused:
        return int(refused.detail["retry_after_ms"])
    return 0


def test_the_wait_doubles_up_to_a_bound() -> None:
    clock = SimClock()
    attempts = Attempts(clock, "sign-ins", 3, 5000)
    seen = []
    for _ in range(7):
        attempts.failed("a")
        seen.append(waits_ms(attempts))
        clock.advance(seen[-1])
        assert waits_ms(attempts) == 0
    assert seen == [0, 0, 1000, 2000, 4000, 5000, 5000]
    assert waits_ms(attempts, "b") == 0


def test_a_success_forgets_and_so_does_time() -> None:
    clock = SimClock()
    attempts = Attempts(clock, "sign-ins", 1, 60_000)
    attempts.failed("a")
    attempts.succeeded("a")
    assert waits_ms(attempts) == 0
    for _ in range(5):
        attempts.failed("a")
    clock.advance(FORGOTTEN_MS + 1)
    attempts.failed("a")
    assert waits_ms(attempts) == 1000


def test_only_so_many_names_are_remembered() -> None:
    attempts = Attempts(SimClock(), "sign-ins", 1, 60_000)
    for number in range(NAMES_MAX + 5):
        attempts.failed(f"n{number}")
    assert waits_ms(attempts, "n0") == 0 and waits_ms(attempts, f"n{NAMES_MAX}") > 0


def test_the_refusal_says_how_long() -> None:
    attempts = Attempts(SimClock(), "sign-ins", 1, 60_000)
    attempts.failed("a")
    with pytest.raises(Throttled, match="try again in 1 s"):
        attempts.check("a")


def test_attempts_under_way_count_as_failed() -> None:
    clock = SimClock()
    attempts = Attempts(clock, "sign-ins", 5, 60_000)
    for _ in range(5):
        attempts.begin("a")
    with pytest.raises(Throttled):
        attempts.begin("a")
    attempts.begin("b")
    for _ in range(4):
        attempts.end("a", failed=True)
    attempts.end("a", failed=False)
    attempts.begin("a")
    attempts.end("a", failed=True)
    with pytest.raises(Throttled):
        attempts.begin("a")
    clock.advance(1000)
    attempts.begin("a")
    with pytest.raises(Throttled):
        attempts.begin("a")


def test_attempts_that_end_well_leave_nothing_behind() -> None:
    attempts = Attempts(SimClock(), "sign-ins", 2, 60_000)
    for _ in range(50):
        attempts.begin("a")
        attempts.end("a", failed=False)
    assert not attempts._failures


def test_success_keeps_count_of_attempts_under_way() -> None:
    attempts = Attempts(SimClock(), "sign-ins", 2, 60_000)
    attempts.begin("a")
    attempts.begin("a")
    attempts.end("a", failed=False)
    attempts.succeeded("a")
    attempts.begin("a")
    with pytest.raises(Throttled):
        attempts.begin("a")
