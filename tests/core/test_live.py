"""What is live in a stretch of a log, against a look at every record, however the records lie."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.rig import Rig
from topics.core import live
from topics.core.commands import Delete
from topics.core.match import parse_match
from topics.core.run import MemoryRun
from topics.model import Deleted


@st.composite
def logs(draw: st.DrawFn) -> Rig:
    """Batches large enough for blocks and small enough for the tail, with deletes of every kind among them."""
    rig = Rig()
    rig.configure("t")
    for _ in range(draw(st.integers(1, 5))):
        count = draw(st.sampled_from([1, 3, 20, 600]))
        rig.write(
            *({"data": 0, "tag": f"t{draw(st.integers(0, 3))}" if count < 30 else f"t{at % 3}"} for at in range(count))
        )
        match draw(st.integers(0, 3)):
            case 0:
                rig.delete(match=f"t{draw(st.integers(0, 3))}")
            case 1:
                rig.delete(before_seq=draw(st.integers(1, rig.log().next_seq)))
            case 2:
                log = rig.log()
                log.delete_seqs(draw(st.lists(st.integers(1, log.next_seq + 3), max_size=12)))
            case _:
                pass
    return rig


@settings(max_examples=60, deadline=None)
@given(logs(), st.data())
def test_seqs_counts_and_ends_are_those_of_the_records(rig: Rig, data: st.DataObject) -> None:
    log = rig.log()
    alive = rig.seqs(limit=10_000)
    start = data.draw(st.integers(1, log.next_seq))
    end = data.draw(st.integers(start, log.next_seq + 1))
    between = [seq for seq in alive if start <= seq < end]
    assert list(live.live_seqs(log, start, end - 1)) == between
    if log.low <= end:
        assert live.live_between(log, max(start, log.low), end)[0] == len(between)
    assert live.count_from(log, start) == len([seq for seq in alive if seq >= start])
    assert live.last_live(log, max(start, log.low), end) == (between[-1] if between else None)
    assert log.count == len(alive)


def test_deleting_single_records_drops_runs_that_hold_nothing_any_more() -> None:
    rig = Rig()
    rig.write(*({"data": 0} for _ in range(600)))
    rig.write(*({"data": 0} for _ in range(600)))
    log = rig.log()
    log.delete_seqs(range(1, 601))
    assert [(run.first_seq, run.last_seq) for run in log.runs] == [(601, 1200)]
    log.delete_seqs([601, 601, 5000, 1])
    assert log.count == 599
    assert isinstance(log.runs[0], MemoryRun) and log.runs[0].live_count == 599


def test_a_tail_that_holds_nothing_any_more_is_not_frozen() -> None:
    rig = Rig()
    rig.write_numbers(1, 2, 3)
    log = rig.log()
    log.delete_seqs([1, 2, 3])
    log.freeze_tail()
    assert log.runs == [] and log.head_seq == 3
    assert rig.write_numbers(4).first_seq == 4


@given(data=st.data())
def test_the_first_live_seqs_are_those_that_are_listed_first(data: st.DataObject) -> None:
    rig = Rig()
    rig.configure("t")
    for _ in range(data.draw(st.integers(1, 4))):
        rig.write(*({"data": 0} for _ in range(data.draw(st.integers(1, 9)))), topic="t")
        if data.draw(st.booleans()):
            rig.log("t").freeze_tail()
    log = rig.log("t")
    log.delete_seqs(data.draw(st.lists(st.integers(1, log.head_seq))))
    start, last = data.draw(st.integers(1, log.head_seq)), data.draw(st.integers(0, log.head_seq))
    limit = data.draw(st.integers(1, 12))
    assert live.first_live_seqs(log, start, last, limit) == list(live.live_seqs(log, start, last))[:limit]


def test_the_last_live_one_may_lie_in_an_earlier_run() -> None:
    rig = Rig()
    for _ in range(3):
        rig.write_numbers(1, 2, 3)
        rig.log().freeze_tail()
    log = rig.log()
    log.delete_seqs([4, 5, 7, 8])
    assert [live.last_live(log, 1, end) for end in (6, 7, 9, 10)] == [3, 6, 6, 9]
    assert live.last_live(log, 4, 6) is None


def test_passing_more_than_there_is_passes_all() -> None:
    rig = Rig()
    rig.write_numbers(10, 11)
    rig.log().freeze_tail()
    rig.write_numbers(12)
    log = rig.log()
    assert [live.pass_live(log, count, 0) for count in (0, 1, 3, 99)] == [(1, 0, 0), (2, 1, 2), (4, 3, 6), (4, 3, 6)]
    assert live.pass_live(log, 0, 99) == (4, 3, 6)


def test_what_a_delete_would_take_is_counted() -> None:
    rig = Rig()
    rig.write(*({"data": number, "tag": "ab"[number % 2]} for number in range(6)))
    log = rig.log()
    assert [live.count_named(log, below, None) for below in (0, 1, 4, 7)] == [0, 0, 3, 6]
    assert [live.count_named(log, below, parse_match("a")) for below in (1, 4, 7)] == [0, 2, 3]
    rig.delete(before_seq=3)
    assert (live.count_named(log, 2, None), live.count_named(log, 4, None)) == (0, 1)


@pytest.mark.parametrize(("before_seq", "match", "count"), [(3, None, 2), (99, None, 3), (None, "a", 1), (1, "a", 0)])
def test_a_dry_run_counts_and_deletes_nothing(before_seq: int | None, match: str | None, count: int) -> None:
    rig = Rig()
    rig.write({"data": 1, "tag": "a"}, {"data": 22}, {"data": 333, "tag": "a:b"})
    before = rig.scan(), rig.view()
    found = None if match is None else parse_match(match)
    outcome = rig.step(Delete("t", 0, before_seq, found, dry_run=True))
    assert outcome.reply == Deleted(
        topic="t", partition=0, deleted=count, earliest_seq=1, head_seq=3, count=3, bytes=6, dry_run=True
    )
    assert outcome.facts == [] and not outcome.must_sync and (rig.scan(), rig.view()) == before
    assert rig.delete(before_seq=before_seq, match=match).deleted == count
