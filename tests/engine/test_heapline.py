"""What is looked at for those who wait in line for a heap, and what is left alone."""

from __future__ import annotations

import pytest

from tests.engine.heaprig import Consumer, HeapRig
from topics.core.heap import Heap
from topics.core.log import Log
from topics.model import TopicConfig


def test_partitions_with_nothing_to_do_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """A heap may have a thousand partitions, and a message comes to one of them."""
    rig = HeapRig()
    rig.heap(partitions=8)
    consumer = Consumer(rig)
    consumer.stream.grant(100)
    rig.work()
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
