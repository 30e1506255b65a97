"""A heap against its oracle: random histories, and whatever a crash leaves of them."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.core.heaprig import HEAP, HeapPair
from topics.core import heap
from topics.core.commands import Append, Delete
from topics.core.heapfacts import Nacked
from topics.core.records import Records
from topics.heapmodel import PoppedMessage
from topics.testing.oracleheap import End

PRIORITIES = [-(2**63), -1, 0, 0, 1, 2, 2**63 - 1]
CONNECTION = 7


class History:
    """A random one, from its seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        choose = self.random.choice
        self.pair = HeapPair(
            choose(["min", "max"]),
            choose([1, 2, 5]),
            choose([0, 1, 3]),
            lease_ms=100,
            dead_letter=choose(["h.dlq", "h.dlq", None]),
        )

    def run(self, steps: int) -> None:
        verbs = [self.enqueue, self.pop, self.pop, self.ack, self.nack, self.extend, self.wait, self.by_hand, self.rare]
        for step in range(steps):
            self.random.choice(verbs)()
            self.pair.check()
            if step % 8 == 0:
                self.pair.check_replay()
        self.pair.check_replay()
        self.pair.check_crashes()

    def enqueue(self) -> None:
        choose = self.random.choice
        priorities = self.random.choices(PRIORITIES, k=self.random.randint(1, 4))
        delay_ms, max_retries = choose([0, 0, 0, 1, 150]), choose([None, None, 0, 2])
        partition = self.random.randrange(5)
        self.pair.enqueue(*priorities, partition=partition, delay_ms=delay_ms, max_retries=max_retries)

    def pop(self) -> None:
        consumers = self.random.sample(["a", "b", "c"], self.random.choice([1, 1, 2, 3]))
        poppers = [(consumer, self.random.randint(1, 4)) for consumer in consumers]
        visibility_ms, connection = self.random.choice([None, 100, 250]), self.random.choice([0, CONNECTION])
        self.pair.pop(*poppers, visibility_ms=visibility_ms, connection=connection)

    def _popped(self) -> list[PoppedMessage]:
        """Messages that were popped lately, whatever became of them."""
        held = self.pair.held[-8:]
        return self.random.choices(held, k=self.random.randint(1, 4)) if held else []

    def ack(self) -> None:
        if chosen := self._popped():
            self.pair.ack(*chosen)

    def nack(self) -> None:
        if chosen := self._popped():
            backoff_ms = self.random.choice([None, 0, 120])
            self.pair.nack(*chosen, backoff_ms=backoff_ms, undelivered=self.random.random() < 0.3)

    def extend(self) -> None:
        if chosen := self._popped():
            self.pair.extend(*chosen, lease_ms=self.random.choice([100, 300]))

    def wait(self) -> None:
        self.pair.wait(self.random.choice([1, 1, 99, 100, 101, 500, 5000]))

    def by_hand(self) -> None:
        live = [message.place for message in self.pair.oracle.live(self.pair.now_ms)]
        if not live:
            return
        place = self.random.choice(live)
        if self.random.random() < 0.6:
            for priority in self.random.sample(PRIORITIES, 3):
                self.pair.reprioritize(place, priority)
        elif self.random.random() < 0.5 or not self.pair.oracle.has_letters:
            self.pair.cancel(place)
        else:
            self.pair.move_to_dlq(place)

    def rare(self) -> None:
        if self.random.random() < 0.3:
            self.pair.purge()
        else:
            self.pair.close(CONNECTION)


@pytest.mark.parametrize("seed", range(60))
def test_random_histories(seed: int) -> None:
    History(seed).run(60)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1000, 1400))
def test_long_random_histories(seed: int) -> None:
    History(seed).run(400)


def test_a_lease_that_ran_out_is_refused_although_nobody_else_has_the_message() -> None:
    pair = HeapPair(lease_ms=100)
    pair.enqueue(1)
    ((message,),) = pair.pop(("a", 1))
    pair.wait(101)
    pair.check_refused(message)


def test_a_lease_counts_up_to_and_including_its_deadline() -> None:
    pair = HeapPair(lease_ms=100)
    pair.enqueue(1)
    ((message,),) = pair.pop(("a", 1))
    pair.wait(100)
    pair.ack(message)
    assert pair.oracle.get((0, 1)).end is End.ACKED


def test_a_second_ack_is_refused() -> None:
    pair = HeapPair()
    pair.enqueue(1)
    ((message,),) = pair.pop(("a", 1))
    pair.ack(message)
    pair.check_refused(message)


def test_a_delay_is_never_early() -> None:
    pair = HeapPair()
    pair.enqueue(1, delay_ms=150)
    pair.wait(149)
    assert pair.pop(("a", 1)) == [[]]
    pair.wait(1)
    assert len(pair.pop(("a", 1))[0]) == 1


def test_a_message_is_delivered_once_more_than_it_may_be_retried() -> None:
    pair = HeapPair(max_retries=2)
    pair.enqueue(1)
    for attempt in range(3):
        ((message,),) = pair.pop(("a", 1))
        assert message.attempts == attempt
        pair.nack(message, backoff_ms=0)
    assert pair.oracle.get((0, 1)).end is End.DEAD_LETTER
    assert pair.rig.log("h.dlq").count == 1


def test_without_dead_letters_a_message_is_tried_for_ever() -> None:
    pair = HeapPair(max_retries=0, dead_letter=None)
    pair.enqueue(1)
    for attempt in range(40):
        ((message,),) = pair.pop(("a", 1))
        assert message.attempts == attempt
        pair.nack(message)
        pair.wait(300_000)


def test_records_that_came_another_way_are_messages_too() -> None:
    """A routed or written record has the priority that its meta says, if that is one."""
    pair = HeapPair(partitions=1)
    records: list[dict[str, Any]] = [
        {"data": {"n": 1}, "meta": {"$priority": "7"}},
        {"data": 2},
        {"data": "3", "meta": {"$priority": "high"}},
        {"data": 4, "meta": {"$priority": "-3", "k": "v"}},
        {"data": 5, "meta": {"$priority": "9223372036854775808"}},
    ]
    pair.rig.step(Append(HEAP, Records.of(records)))
    popped = pair.step_pop("a", 9)
    shown = [(message.priority, message.payload, message.is_json) for message in popped]
    assert shown == [(-3, b"4", True), (0, b"2", True), (0, b'"3"', True), (0, b"5", True), (7, b'{"n":1}', True)]
    assert popped[0].meta == {"k": "v"}


def test_what_is_called_off_does_not_fill_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when nobody ever comes to where it stands."""
    monkeypatch.setattr(heap, "ORDER_SLACK", 100)
    monkeypatch.setattr(heap, "SIFTED_AT_ONCE", 64)
    pair = HeapPair()
    (low,) = pair.enqueue(0)
    for number in range(1, 400):
        (place,) = pair.enqueue(number)
        pair.reprioritize(low, -number)
        pair.cancel(place)
    assert pair.rig.heap().order.count < 400
    pair.check()
    assert [message.priority for message in pair.pop(("a", 9))[0]] == [-399]


def test_a_failure_of_a_message_that_is_gone_is_counted_and_no_more() -> None:
    """So in a replay after a repair."""
    pair = HeapPair()
    pair.enqueue(1, 2)
    pair.pop(("a", 2))
    found = pair.rig.heap()
    found.apply_message(Nacked([2, 99], [0, 0], pair.now_ms, "no"), pair.now_ms)
    assert found.counts.nacks == 2 and 99 not in found.leases and set(found.history) == {2}
    assert [message.priority for message in pair.step_pop("b", 9)] == [2]


def test_deleted_records_are_not_messages_any_more() -> None:
    pair = HeapPair()
    pair.enqueue(3, 2, 1)
    pair.rig.step(Delete(HEAP, before_seq=3))
    for place in ((0, 1), (0, 2)):
        pair.oracle.delete(place)
    pair.check()
    assert [message.priority for message in pair.pop(("a", 9))[0]] == [1]
