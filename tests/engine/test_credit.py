"""Credit: a share of the processor while others want it, and all that they leave."""

from __future__ import annotations

import pytest

from tests.engine.routerrig import ready
from topics.engine import credit
from topics.engine.credit import CREDIT_NS_MAX, FRESH_NS, PAUSE_S, SHARE, SLICE_NS, SLICE_NS_MIN, Credit
from topics.testing import SimClock


class WorkingClock(SimClock):
    def __init__(self) -> None:
        super().__init__()
        self.computed_ns = 0

    def cpu_ns(self) -> int:
        return self.computed_ns

    def compute(self, ns: int) -> None:
        self.computed_ns += ns
        self.rest(ns)

    def rest(self, ns: int) -> None:
        self.set_ticks_ns(self.ticks_ns() + ns)


class Shared:
    """Work without an end, on a processor that others want, too."""

    def __init__(self) -> None:
        self.clock = WorkingClock()
        self.credit = Credit(self.clock)

    def slices(self, count: int, computed_ns: int = 0, rested_ns: int = 0) -> int:
        """How long so many slices take, when others compute and rest for so long between two of them."""
        took_ns = 0
        for _ in range(count):
            self.clock.compute(computed_ns)
            self.clock.rest(rested_ns)
            until_ns = self.credit.begin(fresh=False)
            slice_ns = 0 if until_ns is None else until_ns - self.clock.ticks_ns()
            self.clock.compute(slice_ns)
            self.credit.end()
            took_ns += slice_ns
        return took_ns

    def exhaust(self) -> None:
        self.slices(20, SLICE_NS)
        assert self.credit._balance_ns < SLICE_NS


def test_a_slice_is_bounded() -> None:
    assert Shared().slices(1) == SLICE_NS
    assert Shared().slices(1, 0, 100 * SLICE_NS) == SLICE_NS


def test_others_keep_most_of_what_they_want() -> None:
    shared = Shared()
    shared.exhaust()
    took_ns = shared.slices(1000, SLICE_NS)
    assert 0.9 < took_ns * SHARE / (1000 * SLICE_NS) < 1.1


def test_little_credit_is_saved_and_the_next_slice_comes_later() -> None:
    shared = Shared()
    shared.exhaust()
    slices = [shared.slices(1, SLICE_NS) for _ in range(20)]
    assert min(each for each in slices if each) >= SLICE_NS_MIN and 0 in slices
    shared.slices(20, SLICE_NS)
    while shared.slices(1, SLICE_NS):
        pass
    assert shared.credit.pause_s(fresh=False) == PAUSE_S


def test_what_nobody_wants_is_taken() -> None:
    shared = Shared()
    shared.exhaust()
    assert shared.slices(100, 0, SLICE_NS) == 100 * SLICE_NS
    half = shared.slices(100, SLICE_NS // 2, SLICE_NS // 2)
    assert 0.45 < half / (100 * SLICE_NS) < 0.6, "what they leave, and a share of what they take"


def test_a_slice_is_nearly_free_when_others_had_little_to_do_after_it() -> None:
    shared = Shared()
    assert shared.slices(100, SLICE_NS // 1000) == 100 * SLICE_NS > CREDIT_NS_MAX
    assert shared.credit.pause_s(fresh=False) == 0


def test_work_that_had_caught_up_begins_at_once_whatever_it_owes() -> None:
    shared = Shared()
    shared.exhaust()
    while shared.slices(1, SLICE_NS):
        pass
    assert shared.credit.begin(fresh=False) is None and shared.credit.pause_s(fresh=False) == PAUSE_S
    assert shared.credit.pause_s(fresh=True) == 0
    until_ns = shared.credit.begin(fresh=True)
    assert until_ns is not None and until_ns - shared.clock.ticks_ns() == SLICE_NS


def test_the_rest_of_a_pass_is_paid_for() -> None:
    shared = Shared()
    shared.exhaust()
    shared.credit.begin(fresh=True)
    shared.clock.compute(SLICE_NS)
    shared.credit.end()
    first = shared.slices(1, SLICE_NS)
    assert first <= FRESH_NS - SLICE_NS + SLICE_NS // SHARE
    assert shared.slices(SHARE, SLICE_NS) <= 2 * SLICE_NS


def test_a_pump_that_had_caught_up_needs_no_credit(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = ready("ab", "ac")
    forwarding = rig.engine.forwarding
    forwarding._credit._balance_ns = 0
    rig.driver.wait(rig.submit("a", 1))
    monkeypatch.setattr(credit, "SLICE_NS", 0)
    assert forwarding.pump() and rig.log("b").head_seq == 1 and rig.log("c").head_seq == 0
    forwarding._credit._balance_ns = 0
    assert forwarding.pump() and rig.log("c").head_seq == 0, "the rest of a round is paid for"
