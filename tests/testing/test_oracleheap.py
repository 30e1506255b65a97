"""The oracle itself, by hand: what it says is what the specification says."""

from __future__ import annotations

import pytest

from topics.testing.oracleheap import End, OracleHeap


def heap(**fields: object) -> OracleHeap:
    return OracleHeap(lambda attempts, token: 500, lease_ms=100, **fields)  # type: ignore[arg-type]


def test_the_best_comes_first_and_among_equals_the_oldest() -> None:
    low = heap(partitions=2)
    high = heap(partitions=2, takes_highest=True)
    for oracle in (low, high):
        for now_ms, (place, priority) in enumerate([((0, 1), 5), ((1, 1), 1), ((0, 2), 5), ((1, 2), 9)]):
            oracle.enqueue(place, priority, now_ms)
    assert [message.place for message in low.ready(9)] == [(1, 1), (0, 1), (0, 2), (1, 2)]
    assert [message.place for message in high.ready(9)] == [(1, 2), (0, 1), (0, 2), (1, 1)]
    assert [low.rank(message, 9) for message in low.ready(9)] == [1, 2, 3, 4]


def test_a_lease_that_runs_out_is_an_attempt_and_a_rest() -> None:
    oracle = heap(max_retries=1)
    oracle.enqueue((0, 1), 1, 0)
    oracle.popped((0, 1), "a", 1, 0, 100)
    assert oracle.is_held((0, 1), 1, 100) and not oracle.is_held((0, 1), 1, 101)
    assert oracle.counts(101) == (0, 0, 0, 1)
    assert oracle.ready(600) == [] and len(oracle.ready(601)) == 1


def test_a_message_dies_once_it_failed_more_often_than_it_may() -> None:
    oracle = heap(max_retries=0)
    oracle.enqueue((0, 1), 1, 0)
    oracle.popped((0, 1), "a", 1, 0, 100)
    oracle.nack((0, 1), 50, 0)
    assert oracle.ready(50) == [] and oracle.counts(50) == (0, 1, 0, 0)
    assert [message.end for message in oracle.bury(50)] == [End.DEAD_LETTER]
    assert oracle.counts(50) == (0, 0, 1, 0)


def test_what_nobody_saw_is_no_attempt() -> None:
    oracle = heap(max_retries=0)
    oracle.enqueue((0, 1), 1, 0)
    oracle.popped((0, 1), "a", 1, 0, 100)
    oracle.give_back((0, 1))
    assert [message.attempts for message in oracle.ready(0)] == [0]


def test_it_refuses_what_cannot_be() -> None:
    oracle = heap()
    oracle.enqueue((0, 1), 1, 0, delay_ms=10)
    with pytest.raises(AssertionError, match="was popped"):
        oracle.popped((0, 1), "a", 1, 9, 100)
    with pytest.raises(AssertionError, match="next place"):
        oracle.enqueue((0, 3), 1, 0)
    rash = OracleHeap(lambda attempts, token: 1001)
    rash.enqueue((0, 1), 1, 0)
    rash.popped((0, 1), "a", 1, 0, 100)
    with pytest.raises(AssertionError, match="not up to 1000"):
        rash.nack((0, 1), 0, None)
