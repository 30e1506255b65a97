from __future__ import annotations

import pytest

from tests.core.heaprig import HEAP, HeapPair
from tests.core.rig import frozen
from topics.core import heapview
from topics.errors import InvalidRequest
from topics.heapmodel import HeapStats, MessageState, PeekedMessages


def peek(pair: HeapPair, limit: int = 100, include_dlq: bool = False, partition: int | None = None) -> PeekedMessages:
    return heapview.peek(pair.rig.machine, HEAP, partition, limit, include_dlq, pair.now_ms)


def test_peeking_shows_everything_in_order_and_takes_nothing() -> None:
    pair = HeapPair(partitions=3, max_retries=0)
    for partition, priority in enumerate([5, 3, 4]):
        pair.enqueue(priority, partition=partition)
    pair.enqueue(1, delay_ms=50)
    pair.enqueue(0, 0)
    one, other = pair.pop(("c", 2))[0]
    pair.nack(other)
    pair.rig.stats()
    before = frozen(pair.rig.machine)
    found = peek(pair, include_dlq=True)
    assert frozen(pair.rig.machine) == before
    shown = [(message.priority, message.state) for message in found.messages]
    ready, leased, delayed, dead = MessageState.READY, MessageState.LEASED, MessageState.DELAYED, MessageState.DEAD
    assert shown == [(3, ready), (4, ready), (5, ready), (0, leased), (1, delayed), (0, dead)]
    assert not found.has_more and found.messages[3].message_id == one.message_id
    assert found.messages[3].lease_deadline_ms == one.lease_deadline_ms and found.messages[3].is_leased
    assert found.messages[4].not_before_ms == pair.now_ms + 50
    assert found.messages[5].in_dlq and found.messages[5].attempts == 1


def test_a_message_that_is_to_die_is_still_there() -> None:
    pair = HeapPair(max_retries=0, lease_ms=100)
    pair.enqueue(1)
    pair.pop(("c", 1))
    pair.wait(101)
    assert [message.state for message in peek(pair).messages] == [MessageState.LEAVING]


def test_a_limit_says_that_there_is_more() -> None:
    pair = HeapPair(max_retries=0)
    pair.enqueue(*range(5))
    pair.nack(pair.pop(("c", 1))[0][0])
    assert [message.priority for message in peek(pair, 3).messages] == [1, 2, 3] and peek(pair, 3).has_more
    assert not peek(pair, 4).has_more
    assert peek(pair, 4, include_dlq=True).has_more
    assert not peek(pair, 5, include_dlq=True).has_more


def test_one_partition() -> None:
    pair = HeapPair(partitions=2)
    pair.enqueue(1, partition=0)
    pair.enqueue(2, partition=1)
    assert [message.priority for message in peek(pair, partition=1).messages] == [2]
    with pytest.raises(InvalidRequest, match="partitions 0 to 1"):
        peek(pair, partition=2)


@pytest.mark.parametrize("limit", [0, 1001])
def test_limits_that_are_none(limit: int) -> None:
    with pytest.raises(InvalidRequest, match="1 to 1000"):
        peek(HeapPair(), limit)


def test_numbers_of_one_partition() -> None:
    pair = HeapPair(partitions=3)
    pair.enqueue(1, 2, partition=1)
    pair.enqueue(3, partition=2)
    machine, topic = pair.rig.machine, pair.rig.machine.topic(HEAP)
    found = heapview.stats(machine, topic, 1, frozenset({2}), pair.now_ms)
    assert (found.total_messages, [part.partition for part in found.partitions]) == (2, [1])
    assert found.partitions[0] == pair.rig.stats().partitions[1] and found.partitions[0].is_healthy
    with pytest.raises(InvalidRequest, match="partitions 0 to 2"):
        heapview.stats(machine, topic, 3, frozenset(), pair.now_ms)


def test_numbers_of_several_heaps_together() -> None:
    one = HeapStats(total_messages=3, total_acks=1)
    assert heapview.together([one, one]) == HeapStats(total_messages=6, total_acks=2)
    assert heapview.together([]) == HeapStats()


def test_what_was_enqueued_is_counted_ever() -> None:
    pair = HeapPair(partitions=2)
    pair.enqueue(1, 2, 3)
    pair.ack(*pair.pop(("c", 2))[0])
    stats = pair.rig.stats()
    assert (stats.total_enqueues, stats.total_pops, stats.total_acks, stats.total_messages) == (3, 2, 2, 1)


def test_the_config_of_a_heap_in_its_own_words() -> None:
    pair = HeapPair("max", 4, 7, lease_ms=5000, replication_factor=2, retention_ms=10, dead_letter_ttl_ms=20)
    info = heapview.info(pair.rig.machine.topic(HEAP))
    config = info.config
    assert (config.mode.value, config.partitions, config.max_retries) == ("max", 4, 7)
    assert (config.visibility_timeout_ms, config.retention_ms, config.dlq_retention_ms) == (5000, 10, 20)
    assert (config.dlq_enabled, config.dlq_topic) == (True, "h.dlq")
    assert info.replicas == 1 and "one copy" in info.warnings[0]
    assert len(info.heap_id) == 26
