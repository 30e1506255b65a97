from __future__ import annotations

from topics.limits import MIB
from topics.server.intake.freed import burst_is_over, trimmer
from topics.server.intake.held import HeldBytes


def test_burst_is_over_once_when_most_of_it_is_freed() -> None:
    held = HeldBytes(100 * MIB)
    share = held.share()
    share.set(60 * MIB, True)
    assert not burst_is_over(held)
    share.set(40 * MIB, True)
    assert not burst_is_over(held)
    share.set(10 * MIB, True)
    assert burst_is_over(held)
    share.release()
    assert not burst_is_over(held)


def test_small_requests_are_no_burst() -> None:
    held = HeldBytes(100 * MIB)
    share = held.share()
    share.set(31 * MIB, True)
    share.release()
    assert not burst_is_over(held)


def test_memory_is_given_back_where_the_library_can() -> None:
    trim = trimmer()
    assert trim is None or trim() in (0, 1)
