"""What caps and TTLs take: exactly what they may, told exactly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.testing.checkers.histories import Making, rules
from topics.testing.checkers import History
from topics.testing.checkers.liveness import SLACK_MS
from topics.testing.checkers.retention import RESTART_MS, check_retention

TTL_MS = 100


def broken(history: History) -> list[str]:
    return rules(check_retention, history)


def capped(rows: int, shown: int, gap: tuple[int, int, str] | None, **more: Any) -> list[str]:
    """So many were written, and of these the last ones are shown."""
    made = Making(capped=True, cap=2)
    seqs = [(seq, 100 + seq) for seq in range(1, rows + 1)]
    made.write(*seqs)
    if more:
        made.write((rows + 1, 200), **more)
    made.read(*seqs[rows - shown :], gap=gap, upto=rows)
    return broken(made.history)


def test_a_cap_keeps_as_many_as_it_says() -> None:
    assert capped(4, 2, (1, 2, "cap")) == []
    assert capped(4, 1, (1, 3, "cap")) == ["early"]
    assert capped(4, 3, (1, 1, "cap")) == ["cap"]


def test_a_write_that_may_be_under_way_may_have_taken_more() -> None:
    assert capped(4, 1, (1, 3, "cap"), unknown=True) == []
    assert capped(4, 1, (1, 3, "cap"), unknown=True, done_ms=-20_000) == ["early"], "it was long ago"


def test_what_a_restart_took_is_not_the_caps() -> None:
    assert capped(4, 1, (1, 3, "restart")) == []


def timed(read_ms: int, shown: bool, jumps: bool = False, **more: Any) -> list[str]:
    """A record that is written at 1000 and looked at later; with `jumps` the clock does so while it is read."""
    made = Making(capped=True, ttl_ms=TTL_MS)
    made.write((1, 101), wall_ms=1000, latest_ms=1000)
    answer: dict[str, Any] = {
        "records": [(1, 101, "")] if shown else [],
        "times": [1000] if shown else [],
        "gap": None if shown else (1, 1, "ttl"),
    }
    begun = made.call("noop", {}, {})
    if jumps:
        made.history.jumps.append(begun.done or 0)
    latest_ms = more.get("latest_ms", read_ms)
    made.call("read", {"from_seq": 0}, answer, sent=begun.sent, wall_ms=read_ms, latest_ms=latest_ms)
    return broken(made.history)


def test_a_record_is_there_for_as_long_as_it_is_kept() -> None:
    assert timed(1000 + TTL_MS, shown=True) == timed(1001 + TTL_MS, shown=False) == []
    assert timed(1000 + TTL_MS, shown=False) == ["early"]
    assert timed(1001 + TTL_MS, shown=True) == ["ttl"]


def test_a_clock_that_was_ahead_has_taken_it_for_good() -> None:
    assert timed(1000, shown=False, latest_ms=1001 + TTL_MS) == []


def test_a_clock_that_jumps_meanwhile_says_nothing() -> None:
    assert timed(1001 + TTL_MS, shown=True, jumps=True) == []


def steadily_timed(age_ms: int, shown: bool, died_ms: int = 0) -> list[str]:
    """The same behind a jump of the wall clock: the client's own clock counts."""
    made = Making(capped=True, ttl_ms=TTL_MS)
    jump = made.call("noop", {}, {})
    made.history.jumps.append(jump.done or 0)
    made.write((1, 101), sent_ms=0, done_ms=0, wall_ms=10**9, latest_ms=10**9)
    if died_ms:
        made.die()
        made.history.faults[-1] = replace(made.history.faults[-1], at_ms=died_ms)
    answer: dict[str, Any] = {
        "records": [(1, 101, "")] if shown else [],
        "times": [10**9] if shown else [],
        "gap": None if shown else (1, 1, "ttl"),
    }
    made.call("read", {"from_seq": 0}, answer, sent_ms=age_ms, done_ms=age_ms, wall_ms=0, latest_ms=10**9)
    return broken(made.history)


def test_behind_a_jump_the_steady_clock_counts_within_a_fifth() -> None:
    late_ms = TTL_MS * 5 // 4 + SLACK_MS
    assert steadily_timed(late_ms, shown=True) == steadily_timed(TTL_MS * 5 // 6, shown=False) == []
    assert steadily_timed(late_ms + 1, shown=True) == ["ttl"]
    assert steadily_timed(TTL_MS * 5 // 6 - 2, shown=False) == ["early"]


def test_time_that_a_server_was_down_is_not_counted() -> None:
    late_ms = TTL_MS * 5 // 4 + SLACK_MS
    assert steadily_timed(RESTART_MS + late_ms, shown=True, died_ms=1) == []
    assert steadily_timed(RESTART_MS + late_ms + 2, shown=True, died_ms=1) == ["ttl"]
    assert steadily_timed(5, shown=False, died_ms=1) == [], "it may have started with another time"
