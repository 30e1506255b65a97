"""Who waits for a group, and when its lines are looked at because of time."""

from __future__ import annotations

import pytest

from topics.engine import groupline
from topics.engine.groupline import Lines

KEY = (7, "g")


def test_a_line_is_looked_at_for_the_earliest_time_alone() -> None:
    lines = Lines()
    for when_ms in (30, 20, 10, 25):
        lines.wake_at(KEY, when_ms)
    assert lines.next_deadline_ms() == 10 and lines.take_due(9) is None
    assert lines.take_due(10) == (KEY, None)
    assert lines.take_due(30) is None, "whoever looked planned anew, or had no reason to"
    lines.wake_at(KEY, 40)
    assert lines.take_due(40) == (KEY, None) and lines.next_deadline_ms() is None


def test_times_that_stand_for_nothing_do_not_become_more_and_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groupline, "DEADLINES_SLACK", 10)
    lines = Lines()
    other = (8, "g")
    lines.wake_at(other, 700)
    for when_ms in range(5000, 600, -1):
        lines.wake_at(KEY, when_ms)
        assert len(lines._deadlines) <= 2 * 2 + 10 + 1
    assert lines.take_due(699) == (KEY, None) and lines.take_due(699) is None
    assert lines.take_due(5000) == (other, None) and lines.next_deadline_ms() is None
