"""What is looked at for those who wait in line for a heap, and what is left alone."""

from __future__ import annotations

import pytest

from tests.engine.heaprig import Consumer, HeapRig, answer_of, damage
from tests.engine.rig import with_wal
from topics.core.heap import Heap
from topics.core.heapcommands import Popper
from topics.core.log import Log
from topics.engine import heaping
from topics.engine.heaping import RETRY_MS
from topics.errors import Damaged, LogStopped, ShuttingDown, Throttled
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


# ---- too many, those who leave, and the end


@pytest.fixture
def single() -> HeapRig:
    single = HeapRig()
    single.heap(lease_ms=1000, max_retries=1)
    return single


def test_only_so_many_wait_at_once(single: HeapRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heaping, "CLAIMERS_MAX", 1)
    first = single.ask("a", wait_ms=1000)
    with pytest.raises(Throttled, match='1 pops wait for messages of "h"; try again') as refused:
        single.ask("b", wait_ms=1000)
    assert refused.value.detail == {"limit": "poppers", "retry_after_ms": 1000}
    single.put(1)
    single.work()
    assert answer_of(first) == [1]
    assert answer_of(single.ask("b")) == []


def test_while_the_disk_is_behind_a_pop_waits_for_it_too() -> None:
    single = HeapRig(with_wal(queue_bytes_max=2000, shards=1))
    single.heap(lease_ms=1000)
    single.put(1)
    single.submit("other", "x" * 1900)
    ticket = single.ask("a", wait_ms=5000)
    assert not ticket.done
    single.work()
    assert not ticket.done, "it is looked at again in its time"
    single.pass_time(RETRY_MS)
    assert answer_of(ticket) == [1]


def test_of_two_who_ask_for_one_message_one_gets_it_and_the_other_waits_on(single: HeapRig) -> None:
    waiting = [single.ask(name, wait_ms=5000) for name in "ab"]
    single.put(1)
    single.work()
    assert [answer_of(ticket) for ticket in waiting] == [[1], None]
    single.put(2)
    single.work()
    assert answer_of(waiting[1]) == [2]


def test_who_got_nothing_because_the_others_have_too_much_is_served_next(
    single: HeapRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topics.core.heapfind.CLAIM_BYTES_MAX", 1)
    single.put(1, 2, 3)
    tickets = [single.engine.heaps.pop("h", Popper(name, 2)) for name in "abc"]
    single.work()
    assert [answer_of(ticket) for ticket in tickets] == [[1], [2], [3]]


def test_a_wait_that_was_answered_is_not_looked_at_in_its_time(single: HeapRig) -> None:
    first, second = single.ask("a", wait_ms=100), single.ask("b", wait_ms=500)
    single.put(1)
    single.work()
    assert answer_of(first) == [1]
    single.pass_time(101)
    assert answer_of(second) is None and single.engine.heaps.waiting_count() == 1
    single.pass_time(400)
    assert answer_of(second) == []


# ---- those who leave


def test_who_hangs_up_when_there_was_nothing_gives_nothing_back(single: HeapRig) -> None:
    ticket = single.ask("a")
    assert answer_of(ticket) == []
    single.engine.heaps.cancel(ticket)
    single.put(1)
    assert single.counts() == (1, 0, 0)


def test_who_hangs_up_in_the_turn_it_came_leaves_no_line_behind(single: HeapRig) -> None:
    ticket = single.engine.heaps.pop("h", Popper("a", 1), 5000)
    single.engine.heaps.cancel(ticket)
    single.engine.heaps.serve()
    assert not ticket.done and single.engine.heaps._lines == {}


@pytest.mark.parametrize("made_again", [None, "topic", "heap"])
def test_who_hangs_up_while_its_heap_goes_gives_nothing_back(single: HeapRig, made_again: str | None) -> None:
    single.put(1)
    ticket = single.ask("a")
    assert not ticket.done, "a lease is durable first"
    single.engine.heaps.cancel(ticket)
    single.drop("h")
    if made_again == "topic":
        single.configure("h")
    elif made_again == "heap":
        single.heap()
    single.work()
    assert ticket.done
    if made_again == "heap":
        assert single.counts() == (0, 0, 0)


def test_who_hangs_up_while_the_disk_fails_gives_nothing_back(single: HeapRig) -> None:
    single.put(1)
    ticket = single.ask("a")
    single.engine.heaps.cancel(ticket)
    single.fs.fail("write_at", path="*/1-*.wal", always=True)
    single.work()
    with pytest.raises(LogStopped):
        ticket.result()


def test_a_stream_that_closes_while_its_lease_is_stored_gets_nothing_and_keeps_nothing(single: HeapRig) -> None:
    single.put(1)
    consumer = Consumer(single)
    consumer.stream.grant(1)
    single.engine.heaps.serve()
    assert single.counts() == (0, 1, 0) and consumer.got == []
    consumer.stream.close()
    single.work()
    assert consumer.got == [] and consumer.error is None and single.counts() == (1, 0, 0)
    assert [message.attempts for message in single.pop()] == [0]


def test_a_stream_that_closes_while_the_disk_fails_is_not_told(single: HeapRig) -> None:
    single.put(1)
    consumer = Consumer(single)
    consumer.stream.grant(1)
    single.engine.heaps.serve()
    consumer.stream.close()
    single.fs.fail("write_at", path="*/1-*.wal", always=True)
    single.work()
    assert consumer.error is None and consumer.got == []
    assert single.engine.heaps.stream_count() == 0


# ---- the end


def test_an_engine_that_closes_takes_nobody_more(single: HeapRig) -> None:
    single.put(1)
    waiting = single.ask("a", wait_ms=5000, partitions=())
    single.work()
    assert answer_of(waiting) == [1]
    single.engine.heaps.close()
    for ask in (lambda: single.ask("b"), lambda: Consumer(single)):
        with pytest.raises(ShuttingDown, match="the engine is closing"):
            ask()
    assert single.engine.heaps._lines == {}


def test_what_a_stream_holds_that_ended_in_damage_is_ready_when_its_connection_is_gone() -> None:
    rig = HeapRig()
    rig.heap(lease_ms=60_000)
    rig.put(1)
    damage(rig)
    rig.put(0)
    consumer = Consumer(rig)
    consumer.stream.grant(1)
    rig.work()
    assert consumer.priorities == [0]
    consumer.stream.grant(1)
    rig.work()
    assert isinstance(consumer.error, Damaged)
    consumer.stream.close()
    rig.work()
    assert [message.priority for message in rig.pop()] == [0]
    consumer.stream.close()
    assert rig.engine.heaps.stats("h").in_flight_messages == 1, "what others hold since is theirs"


def test_what_need_not_die_any_more_goes_to_who_waits_for_it() -> None:
    """The disk is behind when a message has failed too often, and its heap has no dead letters when there is room."""
    rig = HeapRig(with_wal(queue_bytes_max=2000, shards=1))
    rig.heap(lease_ms=1000)
    rig.put(1, max_retries=0)
    rig.pop()
    ticket = rig.ask("w", wait_ms=20_000)
    rig.clock.advance(1001)
    rig.submit("other", "x" * 1900)
    rig.engine.tick()
    rig.work()
    assert not ticket.done
    rig.configure("h", merge=True, dead_letter=None)
    rig.pass_time(RETRY_MS)
    assert answer_of(ticket) == [1]


def test_a_closing_engine_looks_at_no_line_any_more(rig: HeapRig) -> None:
    """Of a heap with a disk that failed, leases are not given back at a stop. They run out, and nobody is asked."""
    rig.put(1, 2, partition=0, max_retries=0)
    rig.fs.fail("write_at", path="*/0-*.wal", always=True)
    with pytest.raises(LogStopped):
        rig.put(3, partition=1)
    rig.pop()
    ticket = rig.ask("gone")
    rig.engine.stop()
    rig.engine.heaps.cancel(ticket)
    rig.work()
    rig.pass_time(1001)
    assert rig.engine.heaps.next_deadline_ms() is None
