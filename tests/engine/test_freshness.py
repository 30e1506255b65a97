"""Reads of destinations and dead letters: they get what was there when they were asked for, or wait for it a bounded
time."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.queuerig import QueueRig
from tests.engine.rig import Rig
from tests.engine.routerrig import put, ready
from topics.core.commands import Configure
from topics.engine import freshness
from topics.engine.ticket import Ticket
from topics.limits import FRESH_READ_MS


def wait(rig: Rig, *topics: str) -> Ticket:
    """What a read waits for, which has to be something."""
    ticket = rig.engine.freshness.of(topics)
    assert ticket is not None and not ticket.done
    return ticket


def store(rig: Rig) -> None:
    """One turn of the loop and of the WAL. The pump, which would bring everything by itself, does not run."""
    rig.engine.flush()
    rig.driver.wal.work()
    rig.engine.freshness.look()


def test_destination_shows_what_its_source_showed() -> None:
    rig = ready("ab")
    rig.write("a", "first")
    assert rig.data("b") == []
    ticket = wait(rig, "b")
    store(rig)
    assert ticket.done and rig.data("b") == ["first"]


@pytest.mark.parametrize("durability", ["memory", "disk", "fsync"])
def test_chain_of_routers_is_brought_up_hop_by_hop(durability: str) -> None:
    rig = Rig()
    for name in "abcd":
        rig.configure(name, durability=durability)
    for pair in ("cd", "bc", "ab"):
        put(rig, *pair)
    rig.write("a", 1, 2, 3)
    ticket = wait(rig, "d")
    for _ in range(6):
        assert ticket.done == (rig.data("d") == [1, 2, 3])
        store(rig)
    assert ticket.done and rig.data("d") == [1, 2, 3]


def test_all_ways_into_a_destination_are_brought_up() -> None:
    rig = Rig()
    rig.configure("many", partitions=3)
    put(rig, "many", "dest")
    for partition in range(3):
        rig.write("many", partition, partition=partition)
    ticket = wait(rig, "dest")
    store(rig)
    assert ticket.done and sorted(rig.data("dest")) == [0, 1, 2]


def test_read_of_other_topics_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = ready("ab", "cd")
    rig.write("a", 1)
    monkeypatch.setattr(rig.engine.forwarding, "bring", lambda *given: pytest.fail("nobody reads a destination"))
    assert rig.engine.freshness.of(["a"]) is None and rig.engine.freshness.of(["nothing", "c", "d"]) is None


def test_destination_that_is_up_to_date_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = ready("ab")
    rig.write("a", 1)
    rig.driver.fresh("b")
    assert rig.engine.forwarding.behind == set()
    monkeypatch.setattr(freshness, "_Read", lambda *given: pytest.fail("there is nothing to wait for"))
    assert rig.engine.freshness.of(["b"]) is None


def test_write_behind_a_read_is_seen_by_the_next_read() -> None:
    rig = ready("ab")
    for number in range(4):
        rig.write("a", number)
        rig.driver.fresh("b")
        assert rig.data("b") == list(range(number + 1))


def test_read_does_not_wait_for_what_came_after_it() -> None:
    rig = ready("ab", "bc")
    rig.write("a", 1)
    ticket = wait(rig, "c")
    store(rig)
    rig.write("a", 2)
    store(rig)
    assert ticket.done and rig.data("c") == [1]


def test_read_of_a_stalled_destination_gets_what_is_there() -> None:
    rig = Rig()
    rig.configure("b", cap_records=1, discard="reject")
    put(rig, "a", "b")
    rig.write("a", 1, 2)
    rig.driver.fresh("b")
    assert rig.data("b") == [1] and rig.engine.freshness.of(["b"]) is None


def test_read_of_a_stopped_destination_does_not_wait() -> None:
    rig = ready("ab")
    rig.configure("b", merge=True, durability="fsync")
    rig.write("a", 1)
    ticket = wait(rig, "b")
    rig.fs.fail("sync", path="*/wal/0-*", always=True)
    store(rig)
    rig.engine.freshness.look()
    assert ticket.done and rig.engine.state("b").stopped is not None and rig.engine.freshness.of(["b"]) is None


def test_read_waits_no_longer_than_it_may() -> None:
    rig = ready("ab")
    rig.write("a", 1)
    ticket = wait(rig, "b")
    due_ms = rig.engine.next_deadline_ms()
    assert due_ms is not None and due_ms <= rig.clock.now_ms() + FRESH_READ_MS
    rig.clock.advance(FRESH_READ_MS - 1)
    rig.engine.tick()
    assert not ticket.done
    rig.clock.advance(1)
    rig.engine.tick()
    assert ticket.done and rig.data("b") == []


def test_read_waits_no_longer_when_the_wall_clock_jumps() -> None:
    rig = ready("ab")
    rig.write("a", 1)
    rig.clock.jump(-3_600_000)
    ticket = wait(rig, "b")
    rig.clock.advance(FRESH_READ_MS)
    rig.engine.tick()
    assert ticket.done


def test_as_many_reads_wait_as_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freshness, "FRESH_READS_MAX", 2)
    rig = ready("ab")
    rig.write("a", 1)
    assert [rig.engine.freshness.of(["b"]) is None for _ in range(3)] == [False, False, True]


def test_read_during_a_checkpoint_waits_for_the_capture() -> None:
    rig = ready("ab")
    rig.write("a", 1)
    capture = rig.engine.begin_checkpoint()
    next(capture)
    ticket = wait(rig, "b")
    store(rig)
    assert not ticket.done and rig.log("b").head_seq == 0, "a checkpoint is of one moment"
    *_, job = capture
    rig.engine.forwarding.pump()
    store(rig)
    assert ticket.done and rig.data("b") == [1]
    rig.finish(job)


def test_closing_ends_the_wait() -> None:
    rig = ready("ab")
    rig.write("a", 1)
    ticket = wait(rig, "b")
    rig.engine.stop()
    assert ticket.done and rig.engine.freshness.of(["b"]) is None


def test_router_that_goes_ends_the_wait() -> None:
    rig = ready("ab")
    rig.write("a", 1)
    ticket = wait(rig, "b")
    rig.drop("a")
    rig.engine.freshness.look()
    assert ticket.done and rig.engine.freshness.of(["b"]) is None and rig.engine.forwarding.into == {}


def test_ring_of_routers_is_brought_round_once() -> None:
    rig = Rig()
    for pair in ("ab", "bc", "ca"):
        put(rig, *pair, allow_cycle=True)
    rig.write("a", 1)
    rig.driver.fresh("c")
    assert rig.data("c") == [1]
    rig.write("b", 2)
    rig.driver.fresh("a")
    assert 2 in rig.data("a")


def test_long_chain_needs_no_deep_stack() -> None:
    rig = Rig()
    for number in reversed(range(1200)):
        rig.engine.submit(_router(number))
    rig.work()
    rig.write("t0", 1)
    assert len(rig.engine.freshness._order_of("t1200")) == 1200


def _router(number: int) -> Any:
    from topics.core.commands import PutRouter
    from topics.routermodel import RouterConfig

    return PutRouter(f"r{number}", RouterConfig(source=f"t{number}", dest=f"t{number + 1}"))


def test_dead_letter_is_there_behind_the_claim_that_made_it() -> None:
    rig = QueueRig()
    rig.driver.do(Configure("q", {"type": "queue", "max_deliveries": 1, "dead_letter": "dead", "lease_ms": 1000}))
    rig.write("q", "poison", "good")
    assert rig.claim("w", 1).seqs == [1]
    rig.tick(2000)
    assert rig.claim("w", 1).seqs == [2]
    rig.driver.fresh("dead")
    assert rig.data("dead") == ["poison"]
