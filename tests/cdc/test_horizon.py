"""The horizon beside a model: ids are given and transactions end in any order, and none that is readable is missing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from topics.cdc.horizon import Horizon, Mark


def test_a_mark_counts_when_all_before_it_have_ended() -> None:
    horizon = Horizon()
    assert (horizon.noted, horizon.ended(100)) == (0, 0)
    horizon.note(Mark(5, 10))
    assert horizon.noted == 5 and horizon.ended(9) == 0
    horizon.note(Mark(8, 12))
    assert horizon.ended(10) == 5 and horizon.ended(11) == 5 and horizon.ended(12) == 8
    assert horizon.noted == 8


# A step: a transaction begins, the given one writes, the given one ends, or the reader looks.
steps = st.lists(st.tuples(st.sampled_from(["begin", "write", "end", "look"]), st.integers(0, 5)), max_size=60)


@given(steps)
def test_what_may_be_read_is_all_there(script: list[tuple[str, int]]) -> None:
    horizon = Horizon()
    next_transaction, given_id = 1, 0
    running: dict[int, list[int]] = {}
    committed: set[int] = set()
    read: set[int] = set()
    for what, choice in script:
        some = list(running)[choice % len(running)] if running else None
        if what == "begin":
            running[next_transaction] = []
            next_transaction += 1
        elif what == "write" and some is not None:
            given_id += 1
            running[some].append(given_id)
        elif what == "end" and some is not None:
            committed.update(running.pop(some))
        elif what == "look":
            before = horizon.settled
            if given_id > horizon.noted:
                horizon.note(Mark(given_id, next_transaction))
                next_transaction += 1
            upto = horizon.ended(min(running, default=next_transaction))
            assert upto >= before
            read |= {each for each in committed if before < each <= upto}
            assert all(each in read for each in committed if each <= upto)
            assert not any(each <= upto for ids in running.values() for each in ids), "it may still be rolled back"
    running.clear()
