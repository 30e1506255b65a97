"""Ranges on their own: what commands never do to them, but facts after a repair might."""

from __future__ import annotations

from topics.core import groupranges
from topics.core.groupranges import ACKED, CLAIMED, FREE, Ranges


def shown(ranges: Ranges) -> list[tuple[int, int, int, str]]:
    return [(found.first, found.last, found.state, found.consumer) for found in ranges]


def claimed(*lasts: int) -> Ranges:
    """A claim of `a` up to each of these."""
    ranges = Ranges(1)
    for token, last in enumerate(lasts, 1):
        ranges.grow(last, CLAIMED, 100, "a", token)
    return ranges


def test_what_is_done_is_not_handed_out_with_what_lies_around_it() -> None:
    ranges = claimed(5)
    ranges.ack(3, 3)
    ranges.claim(1, 5, 200, "b", 7)
    assert shown(ranges) == [(1, 2, CLAIMED, "b"), (3, 3, ACKED, ""), (4, 5, CLAIMED, "b")]
    assert {found.deliveries for found in ranges if found.state == CLAIMED} == {2}


def test_what_was_given_back_is_nobody_s_to_keep() -> None:
    ranges = claimed(2, 4)
    ranges.free(1, 2, 0, 50)
    ranges.keep(1, 4, 300)
    assert shown(ranges) == [(1, 2, FREE, ""), (3, 4, CLAIMED, "a")]
    assert ranges.next_due_ms() == 300
    ranges.expire(100)
    assert shown(ranges)[1] == (3, 4, CLAIMED, "a"), "it was kept for longer"


def test_what_is_planned_does_not_grow_with_what_is_over() -> None:
    """A claim that is kept again and again leaves its old deadlines behind, and they are thrown out."""
    ranges = claimed(1, 2, 3)
    ranges.free(2, 2, 0, 50)
    for due_ms in range(1000, 6000):
        ranges.keep(1, 1, due_ms)
        assert len(ranges._due) + len(ranges._free) <= 2 * len(ranges) + groupranges._SLACK
    assert ranges.next_due_ms() == 100, "the third one's"
    ranges.expire(5998)
    assert [found.state for found in ranges] == [CLAIMED, FREE, FREE]
    taken = [ranges.take_free() for _ in range(3)]
    assert [found and found.first for found in taken] == [2, 3, None]
    ranges.expire(5999)
    assert shown(ranges)[0] == (1, 1, FREE, "a")
