"""What is looked at for those who wait in line for a heap, and what is left alone."""

from __future__ import annotations

import pytest

from tests.engine.heaprig import Consumer, HeapRig
from topics.core.heap import Heap
from topics.core.heapcommands import Popper
from topics.core.log import Log
from topics.model import TopicConfig


@pytest.fixture
def rig() -> HeapRig:
    rig = HeapRig()
    rig.heap(lease_ms=1000, partitions=2)
    return rig


def waiting(partitions: int) -> tuple[HeapRig, Consumer]:
    """A heap and somebody who waits for all that comes."""
    rig = HeapRig()
    rig.heap(partitions=partitions)
    consumer = Consumer(rig)
    consumer.stream.grant(100)
    rig.work()
    return rig, consumer


def test_partitions_with_nothing_to_do_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """A heap may have a thousand partitions, and a message comes to one of them."""
    rig, consumer = waiting(partitions=8)
    looked: list[int] = []
    look = Heap.look

    def counted(heap: Heap, log: Log, config: TopicConfig, now_ms: int) -> None:
        looked.append(log.partition)
        look(heap, log, config, now_ms)

    monkeypatch.setattr(Heap, "look", counted)
    rig.put(5, partition=3)
    rig.work()
    assert consumer.priorities == [5] and set(looked) == {3}
    rig.put(6, partition=6, delay_ms=100)
    rig.put(7, partition=1)
    rig.nack(consumer.got[0], backoff_ms=50)
    looked.clear()
    rig.pass_time(60)
    assert consumer.priorities == [5, 7, 5] and set(looked) == {3}, "what rested is back, in its time"
    rig.pass_time(60)
    assert consumer.priorities == [5, 7, 5, 6]
    rig.pass_time(300_001)
    assert rig.counts() == (0, 0, 3), "leases run out in every partition"


def test_not_even_a_look_is_taken_at_partitions_where_nothing_happened(monkeypatch: pytest.MonkeyPatch) -> None:
    rig, consumer = waiting(partitions=8)
    asked: list[int] = []
    is_still = Heap.is_still

    def counted(heap: Heap, log: Log, now_ms: int) -> bool:
        asked.append(log.partition)
        return is_still(heap, log, now_ms)

    monkeypatch.setattr(Heap, "is_still", counted)
    rig.put(5, partition=3)
    rig.work()
    assert consumer.priorities == [5] and set(asked) == {3}


def test_what_one_consumer_leaves_is_there_for_the_next(rig: HeapRig) -> None:
    """In a partition that the one who waits does not want; also when a delay has ended and nobody looked yet."""
    consumer = Consumer(rig, partitions=(0,))
    consumer.stream.grant(5)
    rig.work()
    rig.put(1, partition=1)
    rig.put(2, partition=1, delay_ms=500)
    rig.work()
    assert [message.priority for message in rig.pop("a")] == [1]
    rig.clock.advance(500)
    assert [message.priority for message in rig.pop("b")] == [2]
    assert consumer.got == []


def test_a_delay_that_began_while_nobody_waited_ends_for_who_waits_then(rig: HeapRig) -> None:
    consumer = Consumer(rig)
    rig.put(1, delay_ms=500)
    gone = rig.engine.heaps.pop("h", Popper("c", 1), wait_ms=60_000)
    rig.engine.heaps.cancel(gone)
    rig.work()
    consumer.stream.grant(1)
    rig.work()
    assert consumer.got == []
    rig.pass_time(500)
    assert consumer.priorities == [1]
