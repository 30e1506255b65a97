"""Who gets which message, and when: at once, after waiting, on a stream with credits."""

from __future__ import annotations

import pytest

from tests.engine.heaprig import Consumer, HeapRig, answer_of, damage
from tests.engine.rig import SMALL, with_wal
from tests.engine.routerrig import put as connect
from topics.core.commands import Append
from topics.core.heapcommands import MoveToDlq, Popper, PurgeHeap, ReplayDead
from topics.core.machine import Bounds
from topics.core.records import Records
from topics.engine.heaping import DEADLINES_SLACK, RETRY_MS
from topics.errors import (
    Damaged,
    InvalidRequest,
    LeaseLost,
    LogStopped,
    MessageNotFound,
    NotAHeap,
    ShuttingDown,
    TopicNotFound,
)
from topics.heapmodel import DeadFilter, NewMessage


@pytest.fixture
def rig() -> HeapRig:
    rig = HeapRig()
    rig.heap(lease_ms=1000, max_retries=1, partitions=2)
    return rig


# ---- at once


def test_the_best_are_popped_over_all_partitions(rig: HeapRig) -> None:
    rig.put(5, 1, 4, 2, 3)
    assert [message.priority for message in rig.pop(most=3)] == [1, 2, 3]
    assert [message.priority for message in rig.pop(most=9)] == [4, 5]
    assert rig.pop() == []


def test_nothing_is_popped_before_it_is_as_safe_as_it_has_to_be(rig: HeapRig) -> None:
    ticket = rig.engine.heaps.enqueue("h", NewMessage(priority=1))
    assert answer_of(rig.ask("c")) == []
    rig.work()
    assert ticket.done and [message.priority for message in rig.pop()] == [1]


def test_those_who_ask_in_one_turn_are_dealt_to_in_turn(rig: HeapRig) -> None:
    rig.put(4, 1, 3, 2)
    tickets = [rig.engine.heaps.pop("h", Popper(name, 2)) for name in "ab"]
    rig.work()
    assert [answer_of(ticket) for ticket in tickets] == [[1, 3], [2, 4]]


def test_some_partitions_only(rig: HeapRig) -> None:
    rig.put(1, partition=0)
    rig.put(2, partition=1)
    ticket = rig.ask("c", 9, partitions=(1,))
    rig.work()
    assert answer_of(ticket) == [2]
    with pytest.raises(InvalidRequest, match="partitions 0 to 1"):
        rig.ask("c", partitions=(2,))


# ---- waiting


def test_a_pop_waits_for_a_message(rig: HeapRig) -> None:
    ticket = rig.ask("c", 5, wait_ms=1000)
    rig.work()
    assert answer_of(ticket) is None
    rig.put(7)
    rig.work()
    assert answer_of(ticket) == [7]


def test_a_pop_that_waited_in_vain_is_answered_with_nothing(rig: HeapRig) -> None:
    ticket = rig.ask("c", wait_ms=500)
    rig.pass_time(499)
    assert answer_of(ticket) is None
    rig.pass_time(1)
    assert answer_of(ticket) == []
    assert rig.engine.heaps.waiting_count() == 0 and rig.engine.next_deadline_ms() is not None


def test_a_pop_waits_for_a_delay_or_a_lease_to_end(rig: HeapRig) -> None:
    rig.put(1, delay_ms=300)
    ticket = rig.ask("c", wait_ms=5000)
    assert rig.engine.heaps.next_deadline_ms() == rig.clock.now_ms() + 300
    rig.pass_time(299)
    assert answer_of(ticket) is None
    rig.pass_time(1)
    assert answer_of(ticket) == [1]
    second = rig.ask("d", wait_ms=30_000)
    rig.pass_time(1001)
    for _ in range(4):
        rig.pass_time(500)
    assert answer_of(second) == [1], "the lease ran out and the message has rested"


def test_a_message_that_is_given_back_goes_to_who_waits(rig: HeapRig) -> None:
    rig.put(1)
    (message,) = rig.pop("a")
    ticket = rig.ask("b", wait_ms=5000)
    rig.nack(message, backoff_ms=0)
    rig.work()
    assert answer_of(ticket) == [1]


def test_who_came_first_is_served_first(rig: HeapRig) -> None:
    first, second = rig.ask("a", wait_ms=5000), rig.ask("b", wait_ms=5000)
    rig.put(1)
    rig.work()
    assert (answer_of(first), answer_of(second)) == ([1], None)


def test_whoever_hangs_up_while_waiting_gets_nothing(rig: HeapRig) -> None:
    ticket = rig.ask("a", wait_ms=5000)
    rig.engine.heaps.cancel(ticket)
    rig.put(1)
    assert not ticket.done and rig.counts() == (1, 0, 0)


def test_whoever_hangs_up_when_it_is_served_gives_back_without_an_attempt(rig: HeapRig) -> None:
    rig.put(1)
    ticket = rig.ask("a")
    rig.engine.heaps.cancel(ticket)
    rig.work()
    assert rig.counts() == (1, 0, 0)
    assert rig.pop()[0].attempts == 0


# ---- streams


def test_a_stream_gets_as_many_as_it_gave_credits_for(rig: HeapRig) -> None:
    rig.put(*range(10))
    consumer = Consumer(rig)
    rig.work()
    assert consumer.got == [], "no credits yet"
    consumer.stream.grant(2)
    consumer.stream.grant(1)
    rig.work()
    assert consumer.priorities == [0, 1, 2]
    rig.ack(*consumer.got)
    rig.work()
    assert len(consumer.got) == 3, "credits come back by a grant only"
    consumer.stream.grant(4)
    rig.work()
    assert consumer.priorities == [0, 1, 2, 3, 4, 5, 6] and consumer.stream.credits == 0


def test_credits_that_are_left_wait_for_what_comes(rig: HeapRig) -> None:
    consumer = Consumer(rig)
    consumer.stream.grant(5)
    rig.work()
    rig.put(3)
    rig.put(2)
    rig.work()
    assert consumer.priorities == [3, 2] and consumer.stream.credits == 3


def test_streams_share_evenly(rig: HeapRig) -> None:
    consumers = [Consumer(rig, name) for name in "abc"]
    for consumer in consumers:
        consumer.stream.grant(100)
    rig.work()
    for _ in range(3):
        rig.put(*range(9))
    rig.work()
    assert sorted(len(consumer.got) for consumer in consumers) == [9, 9, 9]


def test_a_stream_that_is_closed_gives_back_without_an_attempt(rig: HeapRig) -> None:
    rig.put(1, 2, 3)
    consumer = Consumer(rig)
    consumer.stream.grant(2)
    rig.work()
    consumer.stream.close()
    consumer.stream.close()
    rig.work()
    assert rig.counts() == (3, 0, 0)
    assert [message.attempts for message in rig.pop(most=9)] == [0, 0, 0]
    with pytest.raises(LeaseLost):
        rig.ack(consumer.got[0])
    consumer.stream.grant(5)
    assert rig.engine.heaps.stream_count() == 0


def test_a_stream_may_lease_for_its_own_time_and_from_its_own_partitions(rig: HeapRig) -> None:
    rig.put(1, partition=0)
    rig.put(2, partition=1)
    consumer = Consumer(rig, visibility_ms=200, partitions=(1,))
    consumer.stream.grant(9)
    rig.work()
    assert consumer.priorities == [2]
    assert consumer.got[0].lease_deadline_ms == rig.clock.now_ms() + 200


@pytest.mark.parametrize("credits", [-1, 2**32])
def test_credits_that_are_none(rig: HeapRig, credits: int) -> None:
    with pytest.raises(InvalidRequest, match="credits must be"):
        Consumer(rig).stream.grant(credits)


def test_a_heap_that_is_dropped_tells_everybody(rig: HeapRig) -> None:
    ticket, consumer = rig.ask("a", wait_ms=5000), Consumer(rig)
    rig.drop("h")
    rig.work()
    with pytest.raises(TopicNotFound, match="does not exist"):
        ticket.result()
    assert isinstance(consumer.error, TopicNotFound)
    consumer.stream.close()


# ---- time


def test_a_message_dies_when_its_last_lease_runs_out_although_nobody_pops(rig: HeapRig) -> None:
    rig.put(1, max_retries=0)
    rig.pop()
    rig.pass_time(1001)
    (letter,) = rig.engine.heaps.dead_letters("h").messages
    assert letter.reason == "max_retries" and rig.counts() == (0, 0, 0)


@pytest.mark.parametrize("durability", ["disk", "ephemeral"])
def test_a_message_that_its_dead_letters_did_not_take_is_tried_again_although_nobody_pops(durability: str) -> None:
    """Also when nothing of it is stored."""
    rig = HeapRig()
    rig.heap(lease_ms=1000, durability=durability)
    rig.configure("h.dlq", cap_records=1, discard="reject")
    rig.write("h.dlq", 1)
    rig.put(1, max_retries=0)
    rig.pop()
    rig.pass_time(1001)
    assert rig.counts() == (0, 0, 1)
    rig.configure("h.dlq", merge=True, cap_records=5)
    rig.pass_time(1001)
    rig.pass_time(0)
    assert len(rig.engine.heaps.dead_letters("h").messages) == 1


def test_leases_of_before_a_kill_run_out_in_their_time(rig: HeapRig) -> None:
    rig.put(1, max_retries=0)
    (message,) = rig.pop()
    rig.kill()
    assert rig.counts() == (0, 1, 0)
    rig.pass_time(1000)
    rig.ack(message)
    rig.put(2, max_retries=0)
    rig.pop()
    rig.kill()
    rig.pass_time(1001)
    assert len(rig.engine.heaps.dead_letters("h").messages) == 1


def test_a_clean_stop_gives_everything_back_at_once(rig: HeapRig) -> None:
    rig.put(1, 2, 3)
    rig.pop(most=2)
    consumer = Consumer(rig)
    consumer.stream.grant(1)
    rig.work()
    waiting = rig.ask("w", wait_ms=20_000)
    rig.stop()
    assert answer_of(waiting) == [] and isinstance(consumer.error, ShuttingDown)
    assert rig.counts() == (3, 0, 0)
    assert [message.attempts for message in rig.pop(most=9)] == [0, 0, 0]


# ---- limits and faults


def test_pops_wait_while_too_much_is_out(rig: HeapRig) -> None:
    rig.engine.machine.bounds = Bounds(heap_in_flight_max=2)
    rig.put(1, 2, 3)
    first = rig.pop("a", 9)
    assert len(first) == 2
    ticket = rig.ask("b", wait_ms=5000)
    rig.work()
    assert answer_of(ticket) is None
    rig.ack(first[0])
    rig.work()
    assert answer_of(ticket) == [3]


def test_who_has_as_many_as_it_may_is_not_in_the_way_of_others(rig: HeapRig) -> None:
    rig.engine.machine.bounds = Bounds(heap_leases_max=2)
    first, second = Consumer(rig, "a"), Consumer(rig, "b")
    first.stream.grant(100)
    rig.put(1, 2)
    second.stream.grant(1)
    rig.put(3)
    rig.work()
    assert (first.priorities, second.priorities) == ([1, 2], [3])
    rig.put(4)
    rig.ack(first.got[0])
    rig.work()
    assert first.priorities == [1, 2, 4]


def test_deadlines_of_pops_that_were_answered_are_forgotten(rig: HeapRig) -> None:
    for _ in range(3 * DEADLINES_SLACK):
        rig.engine.heaps.cancel(rig.ask("c", wait_ms=30_000))
    waiting = rig.ask("c", wait_ms=20_000)
    assert rig.engine.heaps.next_deadline_ms() == rig.clock.now_ms() + 20_000
    rig.pass_time(20_000)
    assert answer_of(waiting) == []


def test_times_to_look_again_do_not_become_more_and_more(rig: HeapRig) -> None:
    """Messages of both partitions are popped and acked, long after the first of their leases would have run out."""
    stream = Consumer(rig)
    stream.stream.grant(1)
    most = 0
    for turn in range(400):
        for partition in (1, 0) if turn % 2 else (0, 1):
            rig.put(turn, partition=partition)
            rig.work()
            rig.ack(*stream.got)
            stream.got.clear()
            stream.stream.grant(1)
            rig.pass_time(3)
        most = max(most, len(rig.engine.heaps._deadlines))
        assert most <= 8, f"after {turn} turns"


def test_while_the_disk_is_behind_everybody_waits() -> None:
    rig = HeapRig(with_wal(queue_bytes_max=2000))
    rig.heap()
    rig.put(1)
    consumer = Consumer(rig)
    rig.submit("other", "x" * 1900)
    consumer.stream.grant(1)
    rig.work()
    rig.pass_time(RETRY_MS)
    assert consumer.priorities == [1] and consumer.error is None


def test_a_partition_whose_disk_failed_is_left_out(rig: HeapRig) -> None:
    """Partition 0 is log 1, in shard 1; partition 1 is log 2, in shard 0."""
    rig.put(1, partition=0)
    rig.put(2, partition=1)
    rig.fs.fail("write_at", path="*/1-*.wal", always=True)
    with pytest.raises(LogStopped):
        rig.put(3, partition=0)
    assert [message.priority for message in rig.pop(most=9)] == [2]
    stats = rig.engine.heaps.stats("h")
    assert [part.is_healthy for part in stats.partitions] == [False, True]


@pytest.mark.parametrize("failed_before", [False, True])
def test_a_message_that_cannot_be_read_fails_the_pops_that_come_to_it(failed_before: bool) -> None:
    rig = HeapRig()
    rig.heap(lease_ms=1000, max_retries=5)
    rig.put(1)
    if failed_before:
        rig.pop()
    damage(rig)
    consumer, waiting = Consumer(rig), rig.ask("w", wait_ms=5000)
    consumer.stream.grant(1)
    rig.work()
    rig.pass_time(3000)
    with pytest.raises(Damaged, match="is damaged"):
        waiting.result()
    assert isinstance(consumer.error, Damaged)
    rig.put(0)
    with pytest.raises(Damaged):
        rig.pop(most=2)
    stats, state = rig.engine.heaps.stats("h"), rig.engine.state("h").queue
    assert stats.total_messages == 2 and state is not None
    assert stats.partitions[0].is_healthy is not failed_before, "its numbers could not be brought up to date"


def test_verbs_of_heaps_are_for_heaps(rig: HeapRig) -> None:
    rig.configure("q", type="queue")
    for verb in (
        lambda: rig.engine.heaps.pop("q", Popper("a")),
        lambda: rig.engine.heaps.peek("q"),
        lambda: rig.engine.heaps.info("q"),
        lambda: rig.engine.heaps.dead_letters("q"),
    ):
        with pytest.raises(NotAHeap):
            verb()


# ---- looking


def test_infos_and_numbers(rig: HeapRig) -> None:
    rig.heap("second", mode="max", replication_factor=3)
    rig.configure("log")
    rig.put(1, 2)
    rig.put(9, topic="second")
    rig.ack(*rig.pop())
    infos = rig.engine.heaps.list()
    assert [info.topic for info in infos] == ["h", "second"]
    assert infos[1].config.replication_factor == 3 and infos[1].replicas == 1 and len(infos[1].warnings) == 1
    assert [info.topic for info in rig.engine.heaps.list(after="h")] == ["second"]
    assert [info.topic for info in rig.engine.heaps.list(limit=1)] == ["h"]
    totals = rig.engine.heaps.totals()
    assert (totals.total_messages, totals.total_enqueues, totals.total_acks, totals.partitions) == (2, 3, 1, ())
    before = infos[0].updated_ms
    rig.clock.advance(5)
    rig.configure("h", merge=True, max_retries=9)
    assert rig.engine.heaps.info("h").updated_ms == before + 5
    rig.stop()
    assert rig.engine.heaps.info("h").updated_ms == before + 5
    assert rig.engine.heaps.info("h").config.max_retries == 9


def test_the_state_of_the_topic_counts_as_that_of_a_queue(rig: HeapRig) -> None:
    rig.put(1, 2, partition=0)
    rig.pop()
    state = rig.engine.state("h").queue
    assert state is not None and (state.ready, state.in_flight, state.delayed) == (1, 1, 0)


def test_one_dead_letter_by_its_id(rig: HeapRig) -> None:
    (first, second) = rig.put(1, 2)
    rig.driver.do(MoveToDlq("h", second.message_id, "poison"))
    assert rig.engine.heaps.dead_letter("h", second.message_id).reason == "poison"
    with pytest.raises(MessageNotFound):
        rig.engine.heaps.dead_letter("h", first.message_id)
    assert len(rig.engine.heaps.dead_letters("h", DeadFilter(reason="poi*")).messages) == 1
    rig.driver.do(ReplayDead("h"))
    assert rig.counts() == (2, 0, 0)


def test_purging_takes_what_is_leased_too(rig: HeapRig) -> None:
    rig.put(*range(6))
    (held,) = rig.pop()
    rig.driver.do(PurgeHeap("h"))
    assert rig.counts() == (0, 0, 0)
    with pytest.raises(LeaseLost):
        rig.ack(held)
    rig.put(7)
    assert [message.priority for message in rig.pop(most=9)] == [7]
    rig.crash()
    assert rig.engine.heaps.stats("h").total_messages == 1


# ---- routers


def test_a_routed_record_is_a_message_with_the_priority_that_its_meta_says(rig: HeapRig) -> None:
    rig.configure("log")
    connect(rig, "log", "h")
    records = [{"data": n, "meta": {"$priority": str(-n)}} for n in range(4)]
    rig.driver.do(Append("log", Records.of([*records, {"data": "plain"}])))
    rig.work()
    for restart in ("work", "kill", "stop"):
        getattr(rig, restart)()
        shown = [message.priority for message in rig.engine.heaps.peek("h").messages]
        assert shown == [-3, -2, -1, 0, 0]
    assert [message.payload for message in rig.pop(most=2)] == [b"3", b"2"]


def test_a_message_that_is_done_makes_room_for_a_router(rig: HeapRig) -> None:
    rig.configure("log")
    rig.configure("h", merge=True, cap_records=1, discard="reject")
    connect(rig, "log", "h")
    rig.driver.do(Append("log", Records.of([{"data": 1}, {"data": 2}, {"data": 3}])))
    rig.work()
    assert rig.data("h") == [1] and rig.engine.forwarding.stalled_count == 1
    rig.ack(*rig.pop())
    rig.work()
    assert rig.data("h") == [2], "nobody has to wait for the next try"
    rig.driver.do(PurgeHeap("h"))
    rig.work()
    assert rig.data("h") == [3] and rig.engine.forwarding.stalled_count == 0


def test_messages_are_routed_on_as_records(rig: HeapRig) -> None:
    rig.configure("log")
    connect(rig, "h", "log")
    rig.put(7, partition=0)
    rig.work()
    (record,) = rig.engine.read("log").records
    assert record.data == b"7" and record.meta is not None and record.meta["$priority"] == "7"


def test_a_message_of_a_producer_that_is_routed_takes_nobodys_place(rig: HeapRig) -> None:
    """What a router brings is not what a producer enqueues: the same producer may enqueue there itself."""
    rig.heap("source")
    connect(rig, "source", "h")
    (first,) = rig.put(1, topic="source", producer_id="p", sequence=1)
    rig.work()
    (own,) = rig.put(2, producer_id="p", sequence=1)
    assert not first.duplicate and not own.duplicate
    assert [message.priority for message in rig.pop(most=9)] == [1, 2]


def test_options_are_those_of_the_rig() -> None:
    assert SMALL.wal.shards == 2, "partitions 0 and 1 of the first topic are in different shards"
