from __future__ import annotations

import numpy as np
import pytest

from topics.core.run import U64
from topics.errors import BackupInterrupted
from topics.limits import BACKUP_FLAGS_MAX
from topics.storage.pins import Pins


def pins(*numbers: int, held_bytes_max: int = 1000) -> Pins:
    made = Pins(held_bytes_max)
    made.hold(numbers)
    return made


def offsets(*values: int) -> U64:
    return np.array(values, np.uint64)


def never(number: int) -> None:
    raise AssertionError(f"segment {number} was removed")


def test_what_is_not_pinned_is_nobodys_business() -> None:
    held = pins(1, 2)
    assert held.segments() == [1, 2] and held.holds(2) and not held.holds(3)
    assert not held.defer(3, 10)
    held.note_flags(3, offsets(1))
    assert len(held.unset_flags(3)) == 0 and held.held_bytes == 0


def test_a_segment_goes_once_it_is_copied_if_somebody_wanted_that() -> None:
    held = pins(1, 2)
    assert held.defer(1, 10) and held.held_bytes == 10
    assert held.take_deferred() == []
    removed: list[int] = []
    held.copied(1, removed.append)
    held.copied(2, never)
    assert removed == [1] and held.held_bytes == 0 and held.segments() == []
    assert not held.defer(2, 10), "from now on it is removed as ever"


def test_a_removal_that_fails_is_left_to_whoever_ends_the_backup() -> None:
    held = pins(1)
    held.defer(1, 10)

    def fail(number: int) -> None:
        raise OSError

    with pytest.raises(OSError):
        held.copied(1, fail)
    assert held.take_deferred() == [1] and held.held_bytes == 0


def test_flags_are_noted_until_the_segment_is_copied() -> None:
    held = pins(1)
    held.note_flags(1, offsets(5, 6))
    held.note_flags(1, offsets(9))
    assert held.unset_flags(1).tolist() == [5, 6, 9]
    held.copied(1, never)
    assert len(held.unset_flags(1)) == 0


def test_an_interruption_lets_everything_go_and_says_why_first() -> None:
    held = pins(1, 2)
    held.check()
    held.defer(1, 10)
    held.interrupt("reason one")
    held.interrupt("reason two")
    with pytest.raises(BackupInterrupted, match="reason one") as interrupted:
        held.check()
    assert interrupted.value.detail == {"reason": "reason one"}
    assert held.segments() == [] and not held.defer(2, 10)
    assert held.take_deferred() == [1]


def test_holding_more_bytes_than_allowed_is_the_end() -> None:
    held = pins(1, 2, held_bytes_max=10)
    assert held.defer(1, 10)
    held.check()
    assert held.defer(2, 1)
    with pytest.raises(BackupInterrupted, match="11 bytes"):
        held.check()
    assert held.take_deferred() == [1, 2]


def test_noting_more_flags_than_allowed_is_the_end() -> None:
    held = pins(1, 2)
    held.note_flags(1, np.zeros(BACKUP_FLAGS_MAX, np.uint64))
    held.check()
    held.note_flags(2, offsets(1))
    with pytest.raises(BackupInterrupted):
        held.check()


def test_flags_of_copied_segments_do_not_count() -> None:
    held = pins(1, 2)
    held.note_flags(1, np.zeros(BACKUP_FLAGS_MAX, np.uint64))
    held.copied(1, never)
    held.note_flags(2, offsets(1))
    held.check()
