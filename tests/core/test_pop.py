from __future__ import annotations

import pytest

from tests.core.heaprig import HEAP, HeapPair, ref_of
from tests.core.rig import frozen
from topics.core.heapcommands import AckMessages, Enqueue, Pop, Popper
from topics.core.machine import Bounds
from topics.errors import InvalidRequest, NotAHeap
from topics.heapmodel import NewMessage
from topics.limits import CLAIM_BYTES_MAX


def test_messages_are_dealt_in_turn_best_first() -> None:
    pair = HeapPair(partitions=3)
    for priority in (6, 3, 1, 5, 2, 4):
        pair.enqueue(priority, partition=priority)
    answers = pair.step(Pop(HEAP, [Popper("a", 9), Popper("b", 2)]))
    assert [[message.priority for message in answer.messages] for answer in answers] == [[1, 3, 5, 6], [2, 4]]


def test_equal_priorities_come_in_the_order_of_time_over_all_partitions() -> None:
    pair = HeapPair(partitions=4)
    for number, partition in enumerate([2, 0, 3, 1, 1, 0]):
        pair.wait(1)
        pair.step(Enqueue(HEAP, [NewMessage(payload=b"%d" % number, priority=5)], partition))
    (answer,) = pair.step(Pop(HEAP, [Popper("a", 9)]))
    assert [message.payload for message in answer.messages] == [b"0", b"1", b"2", b"3", b"4", b"5"]


def test_some_partitions_only() -> None:
    pair = HeapPair(partitions=3)
    for partition in range(3):
        pair.enqueue(partition, partition=partition)
    (answer,) = pair.step(Pop(HEAP, [Popper("a", 9)], partitions=[2, 1]))
    assert [message.partition for message in answer.messages] == [1, 2]
    (answer,) = pair.step(Pop(HEAP, [Popper("a", 9)], without=[0]))
    assert answer.messages == ()


def test_a_pop_that_would_be_too_large_is_cut_short_but_never_empty() -> None:
    pair = HeapPair(max_payload_bytes=CLAIM_BYTES_MAX + 10)
    large = CLAIM_BYTES_MAX // 2 + 1
    pair.step(Enqueue(HEAP, [NewMessage(payload=b"x" * size) for size in (large, large, 5, CLAIM_BYTES_MAX + 5)], 0))
    sizes = []
    while True:
        (answer,) = pair.step(Pop(HEAP, [Popper("a", 9)]))
        if not answer.messages:
            break
        sizes.append([len(message.payload) for message in answer.messages])
    assert sizes == [[large], [large, 5], [CLAIM_BYTES_MAX + 5]]


def test_a_consumer_and_a_heap_have_so_much_out_and_no_more() -> None:
    pair = HeapPair(partitions=2)
    pair.rig.machine.bounds = Bounds(heap_in_flight_max=5, heap_leases_max=3)
    for partition in range(2):
        pair.enqueue(*range(6), partition=partition)
    first, second = pair.step(Pop(HEAP, [Popper("a", 9), Popper("b", 9)]))
    assert [len(first.messages), len(second.messages)] == [3, 2]
    assert pair.step(Pop(HEAP, [Popper("c", 1)]))[0].messages == ()
    pair.step(AckMessages(HEAP, [ref_of(message) for message in first.messages[:2]]))
    (a, b) = pair.step(Pop(HEAP, [Popper("a", 9), Popper("b", 9)]))
    assert [len(a.messages), len(b.messages)] == [2, 0]


def test_leases_of_other_lives_count_for_nobody() -> None:
    """A heap that is made anew gives out tokens that no earlier one had."""
    pair = HeapPair()
    pair.enqueue(1)
    ((message,),) = pair.pop(("a", 1))
    pair.rig.drop(HEAP)
    other = HeapPair()
    other.rig.machine.incarnation = 5
    other.enqueue(1)
    other.pop(("a", 1))
    other.check_refused(message)


@pytest.mark.parametrize(
    ("popper", "field"),
    [
        (Popper("", 1), "consumer"),
        (Popper("\ud800", 1), "consumer"),
        (Popper("a", 0), "max"),
        (Popper("a", 1, -1), "visibility_ms"),
    ],
)
def test_a_popper_that_is_refused_changes_nothing(popper: Popper, field: str) -> None:
    pair = HeapPair()
    pair.enqueue(1)
    pair.rig.stats()
    before = frozen(pair.rig.machine)
    with pytest.raises(InvalidRequest) as caught:
        pair.rig.machine.step(Pop(HEAP, [Popper("fine"), popper]), pair.now_ms)
    assert caught.value.detail["field"] == field
    assert frozen(pair.rig.machine) == before


def test_only_heaps_are_popped() -> None:
    pair = HeapPair()
    pair.rig.configure("q", type="queue")
    with pytest.raises(NotAHeap, match="is a queue"):
        pair.step(Pop("q", [Popper("a")]))
