"""What is live in a stretch of a log, against a look at every record, however the records lie."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.rig import Rig
from topics.core import live
from topics.core.run import MemoryRun


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
