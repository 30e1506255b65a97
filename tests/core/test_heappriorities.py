"""The spread of priorities: counted in buckets, without what stands for nothing any more, or with a word about it."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.core.damage import spoil
from tests.core.heaprig import HEAP, HeapPair
from topics.core import heappriorities
from topics.core.heapcommands import CancelMessage, Reprioritize
from topics.core.heaporder import priority_of
from topics.core.heapplace import find_part
from topics.core.heappriorities import Bucket, Waiting, buckets, counted, edges, waiting
from topics.limits import HEAP_YOUNG_BATCH_MAX

LEAST, MOST = -(2**63), 2**63 - 1


def look(pair: HeapPair, partition: int = 0) -> Waiting:
    machine = pair.rig.machine
    return waiting(find_part(machine, machine.topic(HEAP), partition, pair.now_ms))


def spread(pair: HeapPair, bucket_count: int) -> list[Bucket]:
    parts = [look(pair, number) for number in range(pair.config.partitions)]
    ranks = edges(parts, bucket_count)
    totals = sum((counted(part, ranks) for part in parts[1:]), counted(parts[0], ranks))
    return buckets(ranks, totals, pair.config.mode)


def test_each_priority_is_counted_where_it_belongs() -> None:
    pair = HeapPair(partitions=2)
    pair.enqueue(0, 1, 1, 9, partition=0)
    pair.enqueue(4, 5, partition=1)
    assert spread(pair, 2) == [Bucket(0, 4, 4), Bucket(5, 9, 2)]
    assert spread(pair, 100) == [Bucket(n, n, {0: 1, 1: 2, 4: 1, 5: 1, 9: 1}.get(n, 0)) for n in range(10)], (
        "as many buckets as there are priorities"
    )


def test_the_best_come_first_whichever_they_are() -> None:
    pair = HeapPair("max")
    pair.enqueue(1, 2, 2, 4)
    assert spread(pair, 2) == [Bucket(3, 4, 1), Bucket(1, 2, 3)]
    assert look(pair).best == 4


def test_an_empty_heap_has_no_buckets() -> None:
    pair = HeapPair()
    assert spread(pair, 4) == []
    assert (look(pair).ready, look(pair).best, look(pair).oldest_ms) == (0, None, None)


def test_the_whole_range_of_priorities_fits() -> None:
    pair = HeapPair()
    pair.enqueue(LEAST, 0, MOST)
    found = spread(pair, 3)
    assert [bucket.messages for bucket in found] == [1, 1, 1]
    assert (found[0].least, found[-1].most) == (LEAST, MOST)
    assert all(one.most + 1 == other.least for one, other in pairwise(found))
    pair.enqueue(MOST)
    assert sum(bucket.messages for bucket in spread(pair, 256)) == 4


def test_sorted_runs_and_single_messages_are_counted_alike() -> None:
    pair = HeapPair()
    pair.enqueue(*range(2 * HEAP_YOUNG_BATCH_MAX))
    pair.enqueue(7)
    found = spread(pair, 4)
    assert sum(bucket.messages for bucket in found) == 2 * HEAP_YOUNG_BATCH_MAX + 1
    assert found[0].messages == found[1].messages + 1 == HEAP_YOUNG_BATCH_MAX // 2 + 1


def test_only_what_is_ready_counts() -> None:
    pair = HeapPair()
    places = pair.enqueue(1, 2, 3, 4)
    pair.enqueue(9, delay_ms=50)
    pair.step(CancelMessage(HEAP, pair.ids[places[1]]))
    pair.step(Reprioritize(HEAP, pair.ids[places[2]], 8))
    pair.step(Reprioritize(HEAP, pair.ids[places[2]], 3))
    pair.step(Reprioritize(HEAP, pair.ids[places[2]], 6))
    for priority in (5, 4):
        pair.step(Reprioritize(HEAP, pair.ids[places[3]], priority))
    assert look(pair).is_exact
    assert {bucket.least: bucket.messages for bucket in spread(pair, 100) if bucket.messages} == {1: 1, 4: 1, 6: 1}
    pair.step_pop("c", 1)
    assert {bucket.least: bucket.messages for bucket in spread(pair, 100) if bucket.messages} == {4: 1, 6: 1}


def test_where_there_are_too_many_to_look_at_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heappriorities, "HEAP_PRIORITIES_CHECKED_MAX", 2)
    pair = HeapPair()
    places = pair.enqueue(1, 2, 3)
    assert look(pair).is_exact
    pair.step(CancelMessage(HEAP, pair.ids[places[1]]))
    found = look(pair)
    assert (found.is_exact, found.ready, sum(map(len, found.columns))) == (False, 2, 3)


def test_the_head_of_a_partition() -> None:
    pair = HeapPair(max_retries=0, lease_ms=100)
    pair.enqueue(3)
    first_ms = pair.now_ms
    pair.wait(10)
    pair.enqueue(1, 2)
    found = look(pair)
    assert (found.ready, found.best, found.oldest_ms, found.dead_lettered) == (3, 1, first_ms, 0)
    assert priority_of(int(found.columns[0][0]), pair.config.mode) == 1
    pair.nack(pair.pop(("c", 1))[0][0])
    assert look(pair).dead_lettered == 1


def test_the_age_of_what_cannot_be_read_is_not_known() -> None:
    pair = HeapPair()
    pair.enqueue(3, 1)
    assert look(pair).oldest_ms == pair.now_ms
    spoil(pair.rig.log(HEAP))
    found = look(pair)
    assert (found.ready, found.best, found.oldest_ms) == (2, 1, None)
