from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from topics.spark.offsets import move, place, put, ranges_between
from topics.spark.ranges import SeqRange
from topics.spark.server import PartitionState


def state(head_seq: int, topic: str = "t", partition: int = 0, epoch: int = 1, size: int = 10) -> PartitionState:
    return PartitionState(topic, epoch, head_seq, 1, head_seq, head_seq * size, "log", {}, partition)


def test_the_next_batch_goes_to_the_heads() -> None:
    start = move({}, [state(5), state(7, partition=1)], None)
    assert start == {"t": {"epoch": 1, "0": 5, "1": 7}}
    end = move(start, [state(9), state(7, partition=1), state(2, "u")], None)
    assert end == {"t": {"epoch": 1, "0": 9, "1": 7}, "u": {"epoch": 1, "0": 2}}
    assert start == {"t": {"epoch": 1, "0": 5, "1": 7}}, "offsets that were given out do not change"
    assert ranges_between(start, end, 100) == [SeqRange("t", 0, 5, 9, 1), SeqRange("u", 0, 0, 2, 1)]
    assert ranges_between(end, end, 100) == []


def test_it_stops_where_it_was_told_to() -> None:
    ends = {"t": {"epoch": 1, "0": 5}}
    assert move({}, [state(9), state(3, "later")], ends) == {"t": {"epoch": 1, "0": 5}, "later": {"epoch": 1, "0": 0}}


def test_a_topic_that_was_made_anew_is_read_from_its_beginning_and_told() -> None:
    start = {"t": {"epoch": 1, "0": 50}}
    end = move(start, [state(3, epoch=2)], None)
    assert end == {"t": {"epoch": 2, "0": 3}}
    assert ranges_between(start, end, 2) == [SeqRange("t", 0, 0, 1, 2, True), SeqRange("t", 0, 1, 3, 2)]


def test_a_topic_that_is_gone_keeps_its_place() -> None:
    start = {"t": {"epoch": 1, "0": 50}}
    assert move(start, [], None) == start


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=6), st.integers(1, 2000))
def test_no_more_rows_than_allowed_and_no_fewer_than_possible(news: list[int], rows_max: int) -> None:
    states = [state(count, partition=partition) for partition, count in enumerate(news)]
    end = move({}, states, None, rows_max)
    taken = [place(end, each) for each in states]
    assert sum(taken) == min(sum(news), rows_max)
    assert all(share <= count for share, count in zip(taken, news, strict=True))


def test_bytes_are_reckoned_by_what_is_there() -> None:
    states = [state(1000, size=100), state(1000, partition=1, size=300)]
    end = move({}, states, None, 0, 40_000)
    assert sum(place(end, each) * size for each, size in zip(states, (100, 300), strict=True)) <= 40_000
    assert sum(place(end, each) for each in states) == 200
    one = move({}, [state(10, size=1000)], None, 0, 1)
    assert place(one, state(10)) == 1, "there is always progress"
    assert place(move({}, states, None, 5, 40_000), states[0]) <= 5
    assert move({}, states, None, 0, 400_000) == {"t": {"epoch": 1, "0": 1000, "1": 1000}}, "all of it is not too much"


def test_put_forgets_another_life() -> None:
    offset = {"t": {"epoch": 1, "0": 5, "1": 6}}
    put(offset, state(3, epoch=2), 3)
    assert offset == {"t": {"epoch": 2, "0": 3}}
