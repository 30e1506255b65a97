"""Which records of a log are in memory only, range by range."""

from __future__ import annotations

import pytest

from tests.core.rig import Rig
from topics.core.hole import Hole
from topics.core.volatile import Volatile
from topics.errors import Throttled
from topics.limits import VOLATILE_RANGES_MAX
from topics.model import Reason


def ranges(*pairs: tuple[int, int], begin: int = 0) -> Volatile:
    found = Volatile(list(pairs))
    if begin:
        found.begin(begin)
    return found


def test_open_range_holds_every_later_seq() -> None:
    found = ranges(begin=3)
    assert 2 not in found and 3 in found and 10**9 in found
    assert (found.stored_upto(2), found.stored_upto(7)) == (2, 2)


def test_range_ends_before_the_first_stored_seq() -> None:
    found = ranges(begin=3)
    found.end(6)
    assert found.ranges == [(3, 5)] and found.last_seq() == 5
    assert (found.stored_upto(5), found.stored_upto(6)) == (2, 6)


def test_range_without_a_record_leaves_nothing() -> None:
    found = ranges(begin=3)
    found.end(3)
    assert found.ranges == [] and found.last_seq() == 0


def test_range_that_follows_on_another_makes_it_longer() -> None:
    found = ranges((3, 5), begin=6)
    assert len(found.ranges) == 1
    found.end(8)
    assert found.ranges == [(3, 7)]


@pytest.mark.parametrize(
    ("first", "last", "parts"),
    [(1, 2, [(1, 2)]), (1, 9, [(1, 2), (6, 7), (9, 9)]), (3, 5, []), (4, 6, [(6, 6)]), (8, 8, []), (9, 12, [(9, 12)])],
)
def test_stored_parts_leave_volatile_seqs_out(first: int, last: int, parts: list[tuple[int, int]]) -> None:
    assert list(ranges((3, 5), (8, 8)).stored_parts(first, last)) == parts


def test_holes_of_the_image_include_ranges_and_overlaps() -> None:
    found = ranges((3, 5), (8, 9), begin=12)
    holes = [Hole(5, 6, Reason.SOURCE_TRIM), Hole(10, 10, Reason.RESTART)]
    assert found.with_holes(holes, 4, 11) == [
        Hole(4, 6, Reason.MIXED),
        Hole(8, 9, Reason.RESTART),
        Hole(10, 10, Reason.RESTART),
    ]


def test_ranges_below_the_floor_are_forgotten() -> None:
    found = ranges((3, 5), (8, 9))
    found.forget_below(6)
    assert found.ranges == [(8, 9)]


def test_change_that_would_exceed_the_ranges_is_refused() -> None:
    rig = Rig()
    for number in range(VOLATILE_RANGES_MAX):
        rig.configure(durability="ephemeral")
        rig.write_numbers(number)
        rig.configure(durability="fsync")
        rig.write_numbers(number)
    before = rig.view()
    with pytest.raises(Throttled, match="delete the oldest records first"):
        rig.configure(durability="ephemeral")
    assert rig.view() == before and rig.machine.topic("t").config.durability == "fsync"
    rig.delete(before_seq=3)
    rig.configure(durability="ephemeral")


def test_refused_alias_leaves_the_topic_as_it_was() -> None:
    rig = Rig()
    rig.configure("other", alias="taken")
    rig.configure("t")
    updated_ms = rig.machine.topic("t").updated_ms
    rig.now_ms += 5
    with pytest.raises(Exception, match="taken"):
        rig.configure("t", alias="taken")
    assert rig.machine.topic("t").updated_ms == updated_ms
