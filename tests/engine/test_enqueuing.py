"""Messages into heaps: one by one, and batches over partitions and heaps that are all or nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.engine.heaprig import HeapRig
from tests.engine.rig import SMALL
from topics.core.heapcommands import PurgeHeap
from topics.core.machine import Bounds
from topics.engine.ticket import Ticket
from topics.errors import (
    BatchTooLarge,
    InvalidRequest,
    LogStopped,
    NotAHeap,
    ProducerFenced,
    Throttled,
    TopicFull,
    TopicNotFound,
)
from topics.heapmodel import Enqueued, EnqueuedBatch, NewMessage


@pytest.fixture
def rig() -> HeapRig:
    rig = HeapRig()
    rig.heap(partitions=4)
    rig.heap("other", mode="max")
    return rig


def new(number: int, **fields: Any) -> NewMessage:
    return NewMessage(payload=b"%d" % number, priority=number, **fields)


def spread(count: int, first: int = 0) -> list[tuple[str, NewMessage]]:
    """Messages for all partitions of one heap, and for another one."""
    return [("other" if at % 5 == 0 else "h", new(at, partition_key=str(at))) for at in range(first, first + count)]


def there(rig: HeapRig) -> dict[str, list[int]]:
    return {
        name: sorted(message.priority for message in rig.engine.heaps.peek(name, limit=1000).messages)
        for name in ("h", "other")
    }


def test_those_that_do_not_care_are_spread_over_the_partitions(rig: HeapRig) -> None:
    assert {answer.partition for answer in rig.put(*range(60))} == {0, 1, 2, 3}


def test_those_of_a_batch_that_do_not_care_stay_together_and_take_one_step(rig: HeapRig) -> None:
    for _ in range(5):
        answer = rig.batch(*[("h", new(at)) for at in range(10)])
        assert len({message.partition for message in answer.messages}) == 1
    assert not rig.engine.machine.batches.by_producer, "nothing had to be staged"


def test_a_batch_over_partitions_and_heaps(rig: HeapRig) -> None:
    answer = rig.batch(*spread(20), transaction="t")
    assert answer.transaction_id == "t" and not any(message.duplicate for message in answer.messages)
    assert len({message.partition for message in answer.messages}) == 4
    found = there(rig)
    assert found == {"h": [n for n in range(20) if n % 5], "other": [0, 5, 10, 15]}
    by_id = {message.message_id: message for message in rig.engine.heaps.peek("h", limit=100).messages}
    for at, told in enumerate(answer.messages):
        if at % 5:
            assert by_id[told.message_id].priority == at and by_id[told.message_id].partition == told.partition


def test_nothing_of_a_batch_is_seen_before_all_of_it(rig: HeapRig) -> None:
    ticket = rig.engine.heaps.enqueue_batch(spread(20))
    seen = []
    while not ticket.done:
        seen.append(sum(map(len, there(rig).values())))
        rig.engine.flush()
        rig.driver.wal.work()
    assert set(seen) <= {0, 20} and 0 in seen
    assert sum(map(len, there(rig).values())) == 20


@pytest.mark.parametrize("durability", ["memory", "disk", "fsync"])
@pytest.mark.parametrize("spreads", [False, True])
def test_a_repeated_transaction_waits_until_the_first_one_is_safe(durability: str, spreads: bool) -> None:
    rig = HeapRig()
    rig.heap(partitions=4, durability=durability)
    messages = [("h", new(at, partition_key=str(at) if spreads else "k")) for at in range(4)]
    tickets = [rig.engine.heaps.enqueue_batch(messages, "t") for _ in range(16)]
    assert not any(ticket.done for ticket in tickets)
    first, *others = batches(rig, tickets)
    assert not any(message.duplicate for message in first.messages)
    assert all(other.all_duplicates and ids_of(other) == ids_of(first) for other in others)
    assert rig.counts()[0] == 4


def test_a_transaction_that_is_repeated_gets_the_first_answer(rig: HeapRig) -> None:
    first = rig.batch(*spread(20), transaction="t")
    for restart in ("work", "kill", "crash", "stop"):
        getattr(rig, restart)()
        rig.clock.advance(1000)
        again = rig.batch(*spread(20), transaction="t")
        assert [message.message_id for message in again.messages] == [m.message_id for m in first.messages]
        assert again.all_duplicates and again.transaction_id == "t"
    assert sum(map(len, there(rig).values())) == 20


def test_a_transaction_in_one_partition_is_remembered_too_also_when_its_messages_are_done(rig: HeapRig) -> None:
    batch = [("h", new(at)) for at in range(3)]
    first = rig.batch(*batch, transaction="t")
    rig.driver.do(PurgeHeap("h"))
    again = rig.batch(*batch, transaction="t")
    assert [m.message_id for m in again.messages] == [m.message_id for m in first.messages] and again.all_duplicates
    rig.clock.advance(600_001)
    assert not rig.batch(*batch, transaction="t").all_duplicates


def test_a_transaction_id_is_for_one_batch(rig: HeapRig) -> None:
    rig.batch(*[("h", new(at)) for at in range(3)], transaction="t")
    with pytest.raises(InvalidRequest, match="was another batch"):
        rig.batch(*[("h", new(at)) for at in range(4)], transaction="t")
    assert len(there(rig)["h"]) == 3


def test_messages_of_producers_are_there_once_also_in_batches(rig: HeapRig) -> None:
    def keyed(*sequences: int) -> list[tuple[str, NewMessage]]:
        return [("h", new(n, partition_key=str(n), producer_id="p", epoch=1, sequence=n)) for n in sequences]

    first = rig.batch(*keyed(1, 2, 3, 4, 5, 6))
    again = rig.batch(*keyed(5, 6, 7, 8, 5, 8))
    assert [message.duplicate for message in again.messages] == [True, True, False, False, True, True]
    assert [m.message_id for m in again.messages[:2]] == [m.message_id for m in first.messages[4:]]
    assert again.messages[5].message_id == again.messages[3].message_id
    assert there(rig)["h"] == list(range(1, 9))
    rig.crash()
    assert rig.batch(*keyed(1, 2, 7)).all_duplicates
    with pytest.raises(ProducerFenced):
        rig.batch(("h", new(9, producer_id="p", epoch=0, sequence=9)))


def batches(rig: HeapRig, tickets: list[Ticket]) -> list[EnqueuedBatch]:
    found = [rig.driver.wait(ticket) for ticket in tickets]
    assert all(isinstance(batch, EnqueuedBatch) for batch in found)
    return [batch for batch in found if isinstance(batch, EnqueuedBatch)]


def ids_of(batch: EnqueuedBatch) -> list[str]:
    return [message.message_id for message in batch.messages]


@pytest.mark.parametrize("durability", ["memory", "disk", "fsync", "ephemeral"])
def test_concurrent_duplicates_of_a_message_get_the_first_answer(durability: str) -> None:
    rig = HeapRig()
    rig.heap(partitions=4, durability=durability)
    message = new(1, producer_id="p", sequence=1)
    tickets = [rig.engine.heaps.enqueue("h", message) for _ in range(16)]
    assert [ticket.done for ticket in tickets] == [durability == "ephemeral"] * 16, "no answer before it is safe"
    answers = [rig.driver.wait(ticket) for ticket in tickets]
    assert all(isinstance(answer, Enqueued) for answer in answers)
    assert [answer.duplicate for answer in answers if isinstance(answer, Enqueued)] == [False] + [True] * 15
    assert len({answer.message_id for answer in answers if isinstance(answer, Enqueued)}) == 1
    assert rig.counts()[0] == 1


def test_duplicates_of_a_batch_under_way_wait_for_it(rig: HeapRig) -> None:
    messages = [("h", new(n, partition_key=str(n), producer_id="p", sequence=n)) for n in range(8)]
    first = rig.engine.heaps.enqueue_batch(messages, "t")
    alone = rig.engine.heaps.enqueue("h", messages[3][1])
    part = rig.engine.heaps.enqueue_batch(messages[:2])
    more = rig.engine.heaps.enqueue_batch([*messages[6:], ("h", new(9)), ("other", new(10))])
    whole = rig.engine.heaps.enqueue_batch(messages, "t")
    told, *others = batches(rig, [first, part, more, whole])
    assert [ids_of(other) for other in others] == [
        ids_of(told)[:2],
        [*ids_of(told)[6:], *ids_of(others[1])[2:]],
        ids_of(told),
    ]
    one = rig.driver.wait(alone)
    assert isinstance(one, Enqueued) and one.duplicate and one.message_id == ids_of(told)[3]
    assert there(rig) == {"h": [*range(8), 9], "other": [10]}


def test_answer_with_a_duplicate_elsewhere_waits_for_it_too(rig: HeapRig) -> None:
    """The new message is in another shard, which is safe first."""
    first = rig.engine.heaps.enqueue("h", new(1, partition=0, producer_id="p", sequence=1))
    rig.engine.flush()
    batch = [("h", new(1, producer_id="p", sequence=1)), ("h", new(2, partition=1))]
    again = rig.engine.heaps.enqueue_batch(batch)
    log = rig.log("h", 0)
    while not again.done:
        assert log.ready_seq == 0 or first.done
        rig.engine.flush()
        rig.driver.wal.work()
    assert first.done
    (told,) = batches(rig, [again])
    assert [message.duplicate for message in told.messages] == [True, False]


def test_duplicates_of_a_batch_that_fails_are_enqueued_themselves(rig: HeapRig) -> None:
    rig.configure("other", merge=True, cap_records=1, discard="reject")
    rig.put(1, topic="other")
    keyed = new(5, partition=0, producer_id="p", sequence=5)
    failing = rig.engine.heaps.enqueue_batch([("h", keyed), ("other", new(6))])
    again = [rig.engine.heaps.enqueue("h", keyed) for _ in range(3)]
    with pytest.raises(TopicFull):
        rig.driver.wait(failing)
    answers = [rig.driver.wait(ticket) for ticket in again]
    assert [answer.duplicate for answer in answers if isinstance(answer, Enqueued)] == [False, True, True]
    assert there(rig)["h"] == [5]


def test_waiting_duplicates_fail_with_the_first_when_its_log_stops(rig: HeapRig) -> None:
    message = new(1, partition=0, producer_id="p", sequence=1)
    tickets = [rig.engine.heaps.enqueue("h", message) for _ in range(3)]
    rig.fs.fail("write_at", path="*.wal", always=True)
    for ticket in tickets:
        with pytest.raises(LogStopped):
            rig.driver.wait(ticket)


def test_delays_of_a_batch_begin_when_it_is_there(rig: HeapRig) -> None:
    rig.batch(*[("h", new(n, partition_key=str(n), delay_ms=100 * n)) for n in range(4)])
    stats = rig.engine.heaps.stats("h")
    assert (stats.ready_messages, stats.delayed_messages) == (1, 3)
    rig.pass_time(200)
    assert [message.priority for message in rig.pop(most=9)] == [0, 1, 2]


@pytest.mark.parametrize("bad", [new(0, delay_ms=-1), NewMessage(payload=b"x" * (1 << 20) + b"x")])
def test_one_message_that_is_refused_refuses_the_batch(rig: HeapRig, bad: NewMessage) -> None:
    with pytest.raises(InvalidRequest):
        rig.batch(*spread(10), ("h", bad))
    assert there(rig) == {"h": [], "other": []} and not rig.engine.machine.batches.stages


def test_a_batch_for_what_is_no_heap(rig: HeapRig) -> None:
    rig.configure("log")
    with pytest.raises(TopicNotFound):
        rig.batch(("h", new(1)), ("nothing", new(2)))
    with pytest.raises(NotAHeap):
        rig.batch(("h", new(1)), ("log", new(2)))
    assert there(rig)["h"] == []


def test_bounds_of_a_batch(rig: HeapRig) -> None:
    with pytest.raises(InvalidRequest, match="1 to 10000 messages"):
        rig.batch()
    with pytest.raises(BatchTooLarge):
        rig.batch(*[("h", new(1))] * 10_001)
    with pytest.raises(InvalidRequest, match="transaction_id"):
        rig.batch(("h", new(1)), transaction="t" * 101)


def test_an_alias_is_the_same_heap(rig: HeapRig) -> None:
    rig.configure("h", merge=True, alias="jobs")
    rig.batch(("h", new(1, partition=0)), ("jobs", new(2, partition=0)))
    assert there(rig)["h"] == [1, 2]


@pytest.mark.parametrize("rounds", range(6))
def test_a_heap_that_goes_while_a_batch_is_stored(rig: HeapRig, rounds: int) -> None:
    ticket = rig.engine.heaps.enqueue_batch(spread(20))
    for _ in range(rounds):
        rig.engine.flush()
        rig.driver.wal.work()
    rig.drop("other")
    try:
        rig.driver.wait(ticket)
    except TopicNotFound as error:
        assert "other" in str(error)
    rig.work()
    assert rig.put(1)[0].duplicate is False


def test_a_batch_that_is_left_with_one_partition_answers_for_all_of_it(rig: HeapRig) -> None:
    def keyed(sequence: int, partition: int) -> tuple[str, NewMessage]:
        return "h", new(sequence, partition=partition, producer_id="p", sequence=sequence)

    first = rig.batch(keyed(1, 0))
    answer = rig.batch(keyed(1, 0), keyed(2, 1), keyed(2, 1), keyed(3, 1))
    assert [message.duplicate for message in answer.messages] == [True, False, True, False]
    assert answer.messages[0].message_id == first.messages[0].message_id
    assert answer.messages[1].message_id == answer.messages[2].message_id != answer.messages[3].message_id


def test_a_batch_without_a_name_leaves_nothing_behind(rig: HeapRig) -> None:
    rig.batch(*[("h", new(at, partition=0)) for at in range(3)])
    assert not rig.engine.machine.log(rig.engine.machine.topic("h")).remembers


def test_a_transaction_that_named_more_is_another_batch(rig: HeapRig) -> None:
    """One that goes to fewer partitions than the first one did, and to another besides."""
    first = [("h", new(0, partition=0))]
    rig.batch(*first, transaction="t")
    with pytest.raises(InvalidRequest, match="was another batch") as refused:
        rig.batch(*first, ("h", new(1, partition=1)), transaction="t")
    assert refused.value.detail["field"] == "transaction_id"
    assert there(rig)["h"] == [0]


def test_a_batch_that_is_too_much_to_put_aside_leaves_nothing_behind() -> None:
    rig = HeapRig(replace(SMALL, bounds=Bounds(staged_bytes_max=300)))
    rig.heap(partitions=2)
    parts = [("h", NewMessage(payload=b"x" * 100, partition=partition)) for partition in (0, 1)]
    with pytest.raises(Throttled, match="too much is staged"):
        rig.engine.heaps.enqueue_batch(parts, "t")
    rig.work()
    assert not rig.engine.machine.batches.stages and rig.counts() == (0, 0, 0)
    with pytest.raises(Throttled, match="too much is staged"):
        rig.engine.heaps.enqueue_batch([("h", NewMessage(payload=b"x" * 1000, partition=at)) for at in (0, 1)])
    small = [("h", NewMessage(payload=b"x", partition=partition)) for partition in (0, 1)]
    assert not rig.batch(*small, transaction="t").all_duplicates


@pytest.mark.parametrize("rounds", range(3))
def test_a_batch_that_the_disk_does_not_take_fails_as_a_whole(rig: HeapRig, rounds: int) -> None:
    ticket = rig.engine.heaps.enqueue_batch(spread(20), "t")
    for _ in range(rounds):
        rig.engine.flush()
        rig.driver.wal.work()
    assert not ticket.done
    rig.fs.fail("write_at", path="*.wal", always=True)
    with pytest.raises(LogStopped):
        rig.driver.wait(ticket)
    rig.kill()
    assert sum(map(len, there(rig).values())) in (0, 20)
    rig.batch(*spread(20), transaction="t")
    assert sum(map(len, there(rig).values())) == 20
