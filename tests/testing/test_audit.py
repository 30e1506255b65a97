"""What an audit says of a disk that does not hold what it must: which log, what it holds, what it should."""

from __future__ import annotations

import pytest

from topics.core.commands import Append, Command, Configure, Delete
from topics.core.dedupe import IdempotencyKey
from topics.core.match import parse_match
from topics.core.records import Records
from topics.testing.audit import audit, probe
from topics.testing.clock import SimClock
from topics.testing.fakedisk import FakeDisk
from topics.testing.workload import Rig


def written() -> Rig:
    rig = Rig(FakeDisk(), SimClock())
    rig.do(Configure("t", {"durability": "fsync", "idempotency_window_ms": 60_000}))
    rig.do(Append("t", Records.of([{"data": number, "tag": f"n{number}"} for number in range(1, 6)])))
    return rig


def check(rig: Rig) -> None:
    audit(rig.history, rig.driver.engine, power_lost=False, now_ms=rig.clock.now_ms())


def test_records_that_are_not_there_are_told_as_ranges_of_seqs() -> None:
    rig = written()
    check(rig)
    # Behind the history's back.
    rig.driver.do(Delete("t", 0, 2, None))
    rig.driver.do(Delete("t", 0, None, parse_match("n4")))
    with pytest.raises(AssertionError) as caught:
        check(rig)
    assert str(caught.value).startswith("t/0 (epoch ")
    assert "(fsync): holds 2-3, 5 (head 5, " in str(caught.value)
    assert str(caught.value).endswith("where it must hold 1-5")
    rig.driver.do(Delete("t", 0, 6, None))
    with pytest.raises(AssertionError, match=r"holds nothing \(head 5"):
        check(rig)


def test_a_key_is_asked_for_again_as_long_as_its_window_lasts() -> None:
    rig = written()
    rig.do(Append("t", Records.of([{"data": 6}]), dedupe_key=IdempotencyKey("once")))
    asked: list[Command] = []

    def do(command: Command) -> object:
        asked.append(command)
        return rig.driver.do(command)

    probe(rig.history, do, rig.clock.now_ms())
    assert len(asked) == 1
    probe(rig.history, do, rig.clock.now_ms() + 60_000)
    assert len(asked) == 1, "what was so long ago may be written again"
