from __future__ import annotations

from topics.core.schedule import Schedule


def due(schedule: Schedule, now_ms: int) -> list[tuple[int, list[int]]]:
    return [(due_ms, list(seqs)) for due_ms, seqs in schedule.take_due(now_ms)]


def test_what_is_due_comes_in_order_of_its_time_and_only_once() -> None:
    schedule = Schedule()
    schedule.add(30, [1, 2])
    schedule.add(10, [7])
    schedule.add(30, [3])
    assert (schedule.next_ms(), schedule.count) == (10, 4)
    assert due(schedule, 9) == []
    assert due(schedule, 29) == [(10, [7])]
    assert (schedule.next_ms(), schedule.count) == (30, 3)
    assert due(schedule, 30) == [(30, [1, 2, 3])]
    assert (schedule.next_ms(), schedule.count) == (None, 0)


def test_a_time_can_be_planned_again_after_it_was_due() -> None:
    schedule = Schedule()
    schedule.add(10, [1])
    assert due(schedule, 20) == [(10, [1])]
    schedule.add(10, [2])
    assert due(schedule, 20) == [(10, [2])]
