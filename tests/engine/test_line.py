from __future__ import annotations

import pytest

from tests.engine.queuerig import QueueRig, Worker, seqs_of
from topics.core.commands import Claimer, Configure, Drop
from topics.engine import claiming
from topics.engine.line import FOREVER_MS, Line, ticket_waiter
from topics.errors import LogStopped, NotAQueue, Throttled, TopicNotFound


def test_a_line_is_in_the_order_in_which_people_came() -> None:
    line = Line("q", 0, 1)
    first, _ = ticket_waiter(Claimer("a"), 10)
    second, _ = ticket_waiter(Claimer("b"), 10)
    line.join(first)
    line.join(second)
    assert list(line.waiters) == [first, second]
    assert line.leave(first) and not line.leave(first)
    assert list(line.waiters) == [second] and not line.is_empty
    assert line.leave(second) and line.is_empty


def test_the_place_of_a_stream_is_given_up_with_it() -> None:
    line = Line("q", 0, 1)
    place, _ = ticket_waiter(Claimer("a", connection=4), FOREVER_MS)
    line.join(place)
    line.places[4] = place
    line.leave(place)
    assert line.places == {}


def test_times_to_look_again_do_not_become_more_and_more() -> None:
    """At each, the end of the window and the next delay are planned: what was planned before stands for nothing."""
    rig = QueueRig()
    rig.queue(claim_jitter_ms=100, lease_ms=60_000)
    Worker(rig, "w", 1)
    for window in range(10):
        for number in range(9):
            rig.delay(number, 10 * (number + 1))
        rig.ask("a", 9)
        for _ in range(20):
            rig.tick(10)
        assert len(rig.engine.claiming._deadlines) <= 16, f"after {window} windows"


# ---- lines of a queue


@pytest.fixture
def rig() -> QueueRig:
    rig = QueueRig()
    rig.queue(lease_ms=1000, leases_durable=True)
    return rig


def test_only_so_many_wait_at_once(rig: QueueRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claiming, "CLAIMERS_MAX", 1)
    first = rig.ask("a", wait_ms=1000)
    with pytest.raises(Throttled, match='1 claims wait for jobs of "q"; try again') as refused:
        rig.ask("b", wait_ms=1000)
    assert refused.value.detail == {"limit": "claimers", "retry_after_ms": 1000}
    rig.write("q", 1)
    rig.work()
    assert seqs_of(first) == [1] and rig.engine.claiming.waiting_count() == 0


def test_who_hangs_up_while_the_disk_fails_gives_nothing_back(rig: QueueRig) -> None:
    rig.write("q", 1)
    served = rig.ask("a")
    assert not served.done and not rig.engine.claiming.cancel("q", 0, served)
    rig.fs.fail("write_at", path="*/1-*.wal", always=True)
    rig.work()
    with pytest.raises(LogStopped):
        served.result()


def test_a_stream_that_closes_while_its_lease_is_stored_is_not_told_of_it(rig: QueueRig) -> None:
    worker = Worker(rig, "a", 1)
    rig.write("q", 1)
    rig.engine.claiming.serve()
    assert rig.counts() == (0, 1, 0, 0) and worker.got == []
    worker.stream.close()
    rig.work()
    assert worker.got == [] and rig.counts() == (1, 0, 0, 0)


def test_a_stream_and_a_claim_are_told_when_the_disk_fails(rig: QueueRig) -> None:
    rig.write("q", 1, 2)
    assert rig.claim("x", 2).seqs == [1, 2]
    worker, ticket = Worker(rig, "a", 1), rig.ask("b", wait_ms=5000)
    rig.fs.fail("write_at", path="*/1-*.wal", always=True)
    with pytest.raises(LogStopped):
        rig.write("q", 3)
    assert worker.error is None and not ticket.done
    rig.tick(1001)
    with pytest.raises(LogStopped):
        ticket.result()
    assert isinstance(worker.error, LogStopped) and not worker.stream.is_open
    assert rig.engine.claiming.stream_count() == rig.engine.claiming.waiting_count() == 0


@pytest.mark.parametrize("how", ["dropped", "made again as a log"])
def test_a_line_whose_queue_goes_in_the_same_turn_serves_nobody(rig: QueueRig, how: str) -> None:
    rig.write("q", 1)
    ticket = rig.engine.claim("q", claiming.Claimer("a"), wait_ms=1000)
    rig.engine.submit(Drop("q"))
    if how != "dropped":
        rig.engine.submit(Configure("q", {}, False))
    rig.work()
    with pytest.raises(TopicNotFound):
        ticket.result()
    with pytest.raises((TopicNotFound, NotAQueue)):
        rig.ask("b")
    assert rig.engine.claiming._lines == {}


def test_a_topic_that_is_made_and_dropped_in_one_turn_leaves_nothing_to_see_to(rig: QueueRig) -> None:
    rig.engine.submit(Configure("brief", {"type": "queue"}, False))
    rig.engine.submit(Drop("brief"))
    rig.work()
    assert rig.engine.machine.topics.get("brief") is None
    assert rig.engine.claiming.next_deadline_ms() is None
