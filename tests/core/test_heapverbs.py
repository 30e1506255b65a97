from __future__ import annotations

import pytest

from tests.core.heaprig import HeapRig
from tests.core.rig import frozen
from topics.core.heapcommands import MakeHeap
from topics.core.machine import Bounds
from topics.errors import InvalidRequest, Throttled, TopicExists
from topics.heapmodel import HeapInfo
from topics.model import TopicType


def test_a_heap_is_made_once() -> None:
    rig = HeapRig()
    info = rig.step(MakeHeap("jobs", {"mode": "max", "partitions": 3})).reply
    assert isinstance(info, HeapInfo) and info.config.partitions == 3
    assert rig.machine.topic("jobs").config.type is TopicType.HEAP
    with pytest.raises(TopicExists, match='topic "jobs" already exists as a heap') as caught:
        rig.step(MakeHeap("jobs", {}))
    assert caught.value.grpc_code == "ALREADY_EXISTS"


def test_a_name_that_another_topic_has_is_taken() -> None:
    rig = HeapRig()
    rig.configure("log", alias="also")
    for name in ("log", "also"):
        with pytest.raises(TopicExists, match="as a log"):
            rig.step(MakeHeap(name, {}))


@pytest.mark.parametrize("fields", [{"mode": "best"}, {"partitions": 0}, {"ttl_ms": 5}, {"max_retries": -1}])
def test_a_config_that_is_refused_makes_nothing(fields: dict[str, object]) -> None:
    rig = HeapRig()
    before = frozen(rig.machine)
    with pytest.raises(InvalidRequest):
        rig.step(MakeHeap("jobs", fields))
    assert frozen(rig.machine) == before


def test_there_are_only_so_many_topics() -> None:
    """A heap is two of them: it has a topic for its dead letters."""
    rig = HeapRig(Bounds(topics_max=3))
    rig.step(MakeHeap("jobs", {}))
    with pytest.raises(Throttled):
        rig.step(MakeHeap("more", {}))
    rig.step(MakeHeap("more", {"dead_letter": None}))


def test_a_heap_is_there_again_after_a_replay() -> None:
    rig = HeapRig()
    rig.step(MakeHeap("h", {"mode": "max"}))
    assert rig.replayed().heap().mode is rig.heap().mode
