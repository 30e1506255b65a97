from __future__ import annotations

import pytest

from tests.core.heaprig import HEAP, HeapPair, place_of
from tests.core.rig import frozen
from topics.core.commands import Command
from topics.core.heapcommands import CancelMessage, MoveToDlq, PurgeHeap, Reprioritize
from topics.core.ulid import message_id
from topics.errors import Conflict, InvalidRequest, MessageLeased, MessageNotFound
from topics.heapmodel import Purged, Reprioritized


def commands(text: str) -> list[Command]:
    return [Reprioritize(HEAP, text, 1), CancelMessage(HEAP, text), MoveToDlq(HEAP, text)]


def test_a_message_gets_another_place_in_line() -> None:
    pair = HeapPair(partitions=2)
    (first,) = pair.enqueue(1, partition=0)
    (second,) = pair.enqueue(2, partition=1)
    answer = pair.step(Reprioritize(HEAP, pair.ids[second], -7))
    assert answer == Reprioritized(topic=HEAP, message_id=pair.ids[second], priority=-7, previous_priority=2)
    assert [place_of(message.message_id) for message in pair.step_pop("c", 2)] == [second, first]


def test_a_delayed_message_gets_its_place_for_when_it_is_due() -> None:
    pair = HeapPair()
    (late,) = pair.enqueue(9, delay_ms=100)
    pair.enqueue(5)
    pair.reprioritize(late, 1)
    pair.wait(100)
    assert [message.priority for message in pair.pop(("c", 9))[0]] == [1, 5]


def test_the_same_priority_again_stores_nothing() -> None:
    pair = HeapPair()
    (place,) = pair.enqueue(3)
    count = len(pair.rig.facts)
    assert pair.step(Reprioritize(HEAP, pair.ids[place], 3)).previous_priority == 3
    assert len(pair.rig.facts) == count


@pytest.mark.parametrize(
    "text",
    [
        message_id(1, 0, 1),
        message_id(0, 5, 1),
        message_id(0, 0, 99),
    ],
    ids=["another time", "no such partition", "no such seq"],
)
def test_a_message_that_is_not_there(text: str) -> None:
    pair = HeapPair()
    pair.enqueue(1)
    pair.rig.stats()
    before = frozen(pair.rig.machine)
    for command in commands(text):
        with pytest.raises(MessageNotFound, match="does not exist in topic"):
            pair.rig.machine.step(command, pair.now_ms)
    assert frozen(pair.rig.machine) == before


def test_a_message_that_is_done_is_not_there() -> None:
    pair = HeapPair()
    (place,) = pair.enqueue(1)
    pair.ack(pair.pop(("c", 1))[0][0])
    for command in commands(pair.ids[place]):
        with pytest.raises(MessageNotFound):
            pair.step(command)


def test_what_is_no_id() -> None:
    for command in commands("17"):
        with pytest.raises(InvalidRequest, match="no message id"):
            HeapPair().step(command)


def test_a_message_that_somebody_has_is_theirs() -> None:
    pair = HeapPair()
    (place,) = pair.enqueue(1)
    pair.pop(("c", 1))
    before = frozen(pair.rig.machine)
    for command in commands(pair.ids[place])[:2]:
        with pytest.raises(MessageLeased) as caught:
            pair.rig.machine.step(command, pair.now_ms)
        assert caught.value.detail["lease_deadline_ms"] == pair.now_ms + 300_000
    assert frozen(pair.rig.machine) == before


def test_but_it_can_be_sent_to_the_dead_letters() -> None:
    pair = HeapPair()
    (place,) = pair.enqueue(1)
    ((message,),) = pair.pop(("c", 1))
    answer = pair.step(MoveToDlq(HEAP, pair.ids[place], "poison"))
    assert (answer.message_id, answer.dlq_topic) == (pair.ids[place], "h.dlq")
    pair.oracle.die(place)
    pair.check()
    pair.check_refused(message)


def test_a_message_on_its_way_to_the_dead_letters_is_nobody_s() -> None:
    pair = HeapPair()
    (place,) = pair.enqueue(1)
    pair.rig.machine.step(MoveToDlq(HEAP, pair.ids[place]), pair.now_ms)
    before = frozen(pair.rig.machine)
    for command in commands(pair.ids[place]):
        with pytest.raises(MessageLeased, match="on its way to the dead letters"):
            pair.rig.machine.step(command, pair.now_ms)
    assert frozen(pair.rig.machine) == before


def test_a_heap_without_dead_letters_sends_nothing_there() -> None:
    pair = HeapPair(dead_letter=None)
    (place,) = pair.enqueue(1)
    with pytest.raises(Conflict, match="has no dead letters"):
        pair.step(MoveToDlq(HEAP, pair.ids[place]))


def test_purging_one_partition_or_all() -> None:
    pair = HeapPair(partitions=3)
    for partition in range(3):
        pair.enqueue(1, 2, partition=partition)
    pair.pop(("c", 1))
    assert pair.step(PurgeHeap(HEAP, 1)) == Purged(topic=HEAP, purged=2)
    assert pair.rig.stats().total_messages == 4
    assert pair.step(PurgeHeap(HEAP)).purged == 4
    assert pair.step(PurgeHeap(HEAP)).purged == 0
    with pytest.raises(InvalidRequest, match="partitions 0 to 2"):
        pair.step(PurgeHeap(HEAP, 3))
    assert pair.rig.replayed().stats().total_messages == 0


@pytest.mark.parametrize("priority", [2**63, -(2**63) - 1])
def test_what_is_no_priority(priority: int) -> None:
    pair = HeapPair()
    (place,) = pair.enqueue(1)
    with pytest.raises(InvalidRequest, match="64 bits"):
        pair.step(Reprioritize(HEAP, pair.ids[place], priority))
