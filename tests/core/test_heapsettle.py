from __future__ import annotations

import pytest

from tests.core.heaprig import HEAP, HeapPair, ref_of
from tests.core.rig import frozen
from topics.core.heapcommands import AckMessages, ExtendLeases, NackMessages, ReleaseLeases
from topics.errors import InvalidRequest, LeaseLost
from topics.heapmodel import LeaseRef, MessageState


def test_one_lease_that_is_not_there_refuses_the_whole_call() -> None:
    pair = HeapPair(partitions=2)
    pair.enqueue(1, 2, partition=0)
    pair.enqueue(3, partition=1)
    (messages,) = pair.pop(("a", 3))
    pair.ack(messages[1])
    refs = [ref_of(message) for message in messages]
    before = frozen(pair.rig.machine)
    for command in (AckMessages(HEAP, refs), NackMessages(HEAP, refs), ExtendLeases(HEAP, refs, 500)):
        with pytest.raises(LeaseLost, match="nothing was changed"):
            pair.rig.machine.step(command, pair.now_ms)
    assert frozen(pair.rig.machine) == before
    answer = pair.step(AckMessages(HEAP, refs, strict=False))
    assert answer.acked == 2 and [lost.place for lost in answer.lost] == [1]
    assert answer.lost[0].message_id == messages[1].message_id


def test_the_token_alone_is_enough() -> None:
    pair = HeapPair(partitions=3)
    pair.enqueue(1, partition=2)
    ((message,),) = pair.pop(("a", 1))
    answer = pair.step(ExtendLeases(HEAP, [LeaseRef(message.lease_token)], 5000))
    assert answer.lease_deadline_ms == pair.now_ms + 5000
    assert pair.step(AckMessages(HEAP, [LeaseRef(message.lease_token)])).acked == 1


def test_a_token_of_another_message_is_refused() -> None:
    pair = HeapPair()
    pair.enqueue(1, 2)
    one, other = pair.pop(("a", 2))[0]
    with pytest.raises(LeaseLost, match="belongs to another message"):
        pair.step(AckMessages(HEAP, [LeaseRef(one.lease_token, other.message_id)]))


@pytest.mark.parametrize(
    "token", ["", "lease_1", "lease_2.0.1", "lease_zz.0.1", "lease_1.9.1", "lease_1.0.999", "1.0.1", "lease_1.0.1 "]
)
def test_what_is_no_lease(token: str) -> None:
    pair = HeapPair()
    pair.enqueue(1)
    pair.pop(("a", 1))
    with pytest.raises(LeaseLost):
        pair.step(AckMessages(HEAP, [LeaseRef(token)]))


def test_a_lease_named_twice_counts_once() -> None:
    pair = HeapPair()
    pair.enqueue(1)
    ((message,),) = pair.pop(("a", 1))
    answer = pair.step(AckMessages(HEAP, [ref_of(message), ref_of(message)], strict=False))
    assert answer.acked == 1 and answer.lost[0].reason == "was named twice in one call"


def test_an_override_is_exact() -> None:
    pair = HeapPair()
    pair.enqueue(1)
    ((message,),) = pair.pop(("a", 1))
    pair.nack(message, backoff_ms=1234)
    pair.wait(1233)
    assert pair.pop(("a", 1)) == [[]]
    pair.wait(1)
    assert len(pair.pop(("a", 1))[0]) == 1


def test_extending_is_from_now_and_clamped() -> None:
    pair = HeapPair(lease_ms=1000)
    pair.enqueue(1)
    ((message,),) = pair.pop(("a", 1))
    pair.wait(600)
    answer = pair.step(ExtendLeases(HEAP, [ref_of(message)], 1))
    assert answer.lease_deadline_ms == pair.now_ms + 100
    day_ms = 24 * 3600 * 1000
    assert pair.step(ExtendLeases(HEAP, [ref_of(message)], 9 * day_ms)).lease_deadline_ms == pair.now_ms + day_ms


@pytest.mark.parametrize("value", [-1, 366 * 24 * 3600 * 1000])
def test_times_that_are_none(value: int) -> None:
    pair = HeapPair()
    pair.enqueue(1)
    refs = [ref_of(pair.pop(("a", 1))[0][0])]
    for command in (NackMessages(HEAP, refs, value), ExtendLeases(HEAP, refs, value)):
        with pytest.raises(InvalidRequest, match="milliseconds from 0"):
            pair.step(command)


def test_a_reason_is_stored_whatever_it_is_made_of() -> None:
    pair = HeapPair()
    pair.enqueue(1)
    refs = [ref_of(pair.pop(("a", 1))[0][0])]
    pair.step(NackMessages(HEAP, refs, 0, "half \ud800"))
    assert [failure.reason for failure in pair.rig.heap().history[1]] == ["half ?"]
    assert pair.rig.replayed().heap().history == pair.rig.heap().history


def test_a_call_names_something_and_not_too_much() -> None:
    pair = HeapPair()
    for refs in ([], [LeaseRef("lease_1.0.1")] * 1001):
        with pytest.raises(InvalidRequest, match="1 to 1000"):
            pair.step(AckMessages(HEAP, refs))


def test_a_stream_that_ends_gives_back_what_it_holds_and_nobody_elses() -> None:
    pair = HeapPair(partitions=2, max_retries=0)
    for partition in range(2):
        pair.enqueue(1, 2, partition=partition)
    pair.pop(("a", 2), connection=7)
    pair.pop(("b", 2), connection=8)
    assert pair.step(ReleaseLeases(HEAP, 7)) == 2
    states = [state for _, _, state in pair.rig.in_order()]
    assert states == [MessageState.READY] * 2 + [MessageState.LEASED] * 2
    assert [message.attempts for message in pair.step_pop("c", 9)] == [0, 0]


def test_everything_goes_back_when_the_engine_stops() -> None:
    pair = HeapPair(partitions=2)
    for partition in range(2):
        pair.enqueue(1, 2, partition=partition)
    pair.pop(("a", 1), connection=7)
    pair.pop(("b", 2))
    assert pair.step(ReleaseLeases(HEAP)) == 3
    assert pair.rig.stats().ready_messages == 4
    assert pair.rig.replayed().stats().ready_messages == 4
