from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.core.heaprig import HEAP, HeapPair, HeapRig, place_of
from tests.core.rig import frozen
from topics.core import enqueue as enqueuing
from topics.core.enqueue import other_partition, partition_for
from topics.core.heapcommands import Enqueue, MakeHeap
from topics.core.partition import partition_of
from topics.errors import (
    BatchTooLarge,
    InvalidRequest,
    NotAHeap,
    ProducerFenced,
    RecordTooLarge,
    TopicFull,
    TopicNotFound,
)
from topics.heapmodel import Enqueued, EnqueuedBatch, NewMessage
from topics.limits import DAY_MS, HEAP_BATCH_MESSAGES_MAX


def enqueue(rig: HeapRig, *messages: NewMessage, partition: int = 0) -> list[Enqueued]:
    reply = rig.step(Enqueue(HEAP, messages, partition)).reply
    assert isinstance(reply, EnqueuedBatch)
    store(rig)
    return list(reply.messages)


def store(rig: HeapRig) -> None:
    """All that was written is as safe as it has to be."""
    for log in rig.machine.logs.values():
        log.ready_seq = log.head_seq


def keyed(sequence: int, producer: str = "p", epoch: int = 1, **fields: Any) -> NewMessage:
    return NewMessage(payload=b"x", producer_id=producer, epoch=epoch, sequence=sequence, **fields)


def test_the_same_message_is_there_once_and_gets_the_first_answer() -> None:
    rig = HeapPair(partitions=3).rig
    first = enqueue(rig, keyed(1), keyed(2), partition=1)
    rig.now_ms += 5000
    again = enqueue(rig, keyed(2), partition=2)
    assert again == [Enqueued(message_id=first[1].message_id, partition=1, duplicate=True)]
    assert rig.log(HEAP, 2).count == 0 and rig.log(HEAP, 1).count == 2


def test_the_first_answer_is_the_same_after_a_restart_and_when_the_message_is_done() -> None:
    pair = HeapPair()
    first = []
    for sequence in range(5):
        pair.rig.now_ms += 3
        first += enqueue(pair.rig, keyed(sequence))
    rig = pair.rig.replayed()
    store(rig)
    rig.delete(HEAP, before_seq=99)
    again = [enqueue(rig, keyed(sequence))[0] for sequence in range(5)]
    assert [told.message_id for told in again] == [told.message_id for told in first]
    assert all(told.duplicate for told in again)


def test_after_a_day_all_but_the_newest_sequence_may_come_again() -> None:
    rig = HeapPair().rig
    first = enqueue(rig, keyed(1))
    newest = enqueue(rig, keyed(2))
    rig.now_ms += DAY_MS
    assert enqueue(rig, keyed(1))[0].duplicate
    rig.now_ms += 1
    again = enqueue(rig, keyed(1))
    assert enqueue(rig, keyed(2)) == [msgspec.structs.replace(newest[0], duplicate=True)]
    assert not again[0].duplicate and again[0].message_id != first[0].message_id


def test_an_older_epoch_is_refused_in_all_partitions() -> None:
    rig = HeapPair(partitions=2).rig
    enqueue(rig, keyed(1, epoch=2), partition=0)
    before = frozen(rig.machine)
    with pytest.raises(ProducerFenced):
        rig.step(Enqueue(HEAP, [keyed(9, epoch=1)], 1))
    assert frozen(rig.machine) == before
    assert not enqueue(rig, keyed(1, epoch=3), partition=1)[0].duplicate


def test_a_key_that_comes_twice_in_a_batch_is_one_message() -> None:
    rig = HeapPair().rig
    one, twin, other = enqueue(rig, keyed(1), keyed(1), NewMessage(payload=b"y"))
    assert (one.message_id, one.duplicate, twin.duplicate) == (twin.message_id, False, True)
    assert place_of(other.message_id) == (0, 2)


def test_repeated_message_waits_for_the_log_of_the_first_one() -> None:
    rig = HeapPair(partitions=2).rig
    first = rig.step(Enqueue(HEAP, [keyed(1)], 1, is_alone=True))
    again = rig.step(Enqueue(HEAP, [keyed(1)], 0, is_alone=True))
    assert (again.log, again.seq, again.facts) == (first.log, first.seq, [])
    assert again.durability is first.durability
    assert again.reply == msgspec.structs.replace(first.reply, duplicate=True)


def test_where_messages_go() -> None:
    topic = HeapPair(partitions=16).rig.machine.topic(HEAP)
    assert partition_for(topic, NewMessage(partition=3, partition_key="k"), 9) == 3
    assert partition_for(topic, NewMessage(partition_key="k"), 9) == partition_of("k", 16)
    assert partition_for(topic, NewMessage(), 9) == 9
    chosen = {other_partition(topic, [NewMessage()], str(number)) for number in range(200)}
    assert chosen == set(range(16)), "those that do not care are spread"
    together = {other_partition(topic, [keyed(sequence)], str(sequence)) for sequence in range(1000)}
    assert len(together) == 1, "a producer's stay together for a while"
    assert len({other_partition(topic, [keyed(sequence * 1024)], "") for sequence in range(200)}) > 8


@pytest.mark.parametrize(
    ("message", "field"),
    [
        (NewMessage(priority=2**63), "priority"),
        (NewMessage(priority=-(2**63) - 1), "priority"),
        (NewMessage(delay_ms=-1), "delay_ms"),
        (NewMessage(delay_ms=366 * DAY_MS), "delay_ms"),
        (NewMessage(max_retries=2**32), "max_retries"),
        (NewMessage(partition=1), "partition"),
        (NewMessage(sequence=1), "producer_id"),
        (NewMessage(producer_id="", sequence=1), "producer_id"),
        (NewMessage(producer_id="p" * 129, sequence=1), "producer_id"),
        (NewMessage(producer_id="p", sequence=2**64), "sequence"),
        (NewMessage(meta={"$priority": "1"}), "meta"),
        (NewMessage(meta={"k": "v" * 20_000}), "meta"),
        (NewMessage(meta={"k": "\ud800"}), "meta"),
        (NewMessage(partition_key="\ud800"), "partition_key"),
        (NewMessage(producer_id="\ud800", sequence=1), "producer_id"),
        (NewMessage(meta={str(number): "" for number in range(60)}), "meta"),
    ],
)
def test_what_is_no_message_is_refused_and_changes_nothing(message: NewMessage, field: str) -> None:
    rig = HeapPair().rig
    before = frozen(rig.machine)
    with pytest.raises(InvalidRequest) as caught:
        rig.step(Enqueue(HEAP, [NewMessage(), message], 0))
    assert field in caught.value.detail["field"]
    assert frozen(rig.machine) == before


def test_a_payload_that_is_too_large() -> None:
    rig = HeapPair(max_payload_bytes=10).rig
    enqueue(rig, NewMessage(payload=b"x" * 10))
    with pytest.raises(RecordTooLarge, match="payload size 11 exceeds the 10 bytes"):
        rig.step(Enqueue(HEAP, [NewMessage(payload=b"x" * 11)], 0))


def test_a_batch_has_bounds() -> None:
    rig = HeapPair().rig
    with pytest.raises(InvalidRequest, match="1 to"):
        rig.step(Enqueue(HEAP, [], 0))
    with pytest.raises(BatchTooLarge):
        rig.step(Enqueue(HEAP, [NewMessage()] * (HEAP_BATCH_MESSAGES_MAX + 1), 0))


def test_a_batch_has_only_so_many_bytes_but_one_message_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enqueuing, "HEAP_BATCH_BYTES_MAX", 10)
    rig = HeapPair().rig
    before = frozen(rig.machine)
    with pytest.raises(BatchTooLarge, match="11 bytes of payload, at most 10") as refused:
        rig.step(Enqueue(HEAP, [NewMessage(payload=b"x" * 5), NewMessage(payload=b"x" * 6)], 0))
    assert (refused.value.detail["bytes"], refused.value.detail["max_bytes"]) == (11, 10)
    assert frozen(rig.machine) == before
    enqueue(rig, NewMessage(payload=b"x" * 5), NewMessage(payload=b"x" * 5))
    enqueue(rig, NewMessage(payload=b"x" * 11))


def test_a_full_heap_refuses() -> None:
    rig = HeapPair(cap_records=2).rig
    enqueue(rig, NewMessage(), NewMessage())
    before = frozen(rig.machine)
    with pytest.raises(TopicFull):
        rig.step(Enqueue(HEAP, [NewMessage()], 0))
    assert frozen(rig.machine) == before


def test_only_heaps_take_messages() -> None:
    rig = HeapPair().rig
    rig.configure("log")
    with pytest.raises(NotAHeap, match='"log" is a log'):
        rig.step(Enqueue("log", [NewMessage()], 0))
    with pytest.raises(TopicNotFound, match="does not exist"):
        rig.step(Enqueue("nothing", [NewMessage()], 0))
    rig.step(MakeHeap("second", {}))
