"""Moves over turns: each step waits for the one before, and what breaks leaves nothing half done."""

from __future__ import annotations

import pytest

from tests.engine.queuerig import QueueRig, result
from topics.core.commands import Complete, Configure, Drop
from topics.errors import LogStopped, TopicNotFound
from topics.model import CompletedJobs
from topics.testing import CrashMode


@pytest.fixture
def rig() -> QueueRig:
    """Queue q is log 1, of shard 1; out is log 2, of shard 0."""
    rig = QueueRig()
    rig.queue()
    rig.write("out", "first")
    rig.write("q", 1, 2, 3)
    rig.claim("a", 2)
    return rig


def datas(rig: QueueRig, topic: str) -> list[object]:
    return [record.data for record in rig.read(topic)]


def test_readers_see_the_result_come_and_the_job_go_in_one_moment(rig: QueueRig) -> None:
    ticket = rig.engine.submit(Complete("q", "a", [1], [result("out", "r")]))
    seen = []
    while not ticket.done:
        rig.engine.flush()
        rig.driver.wal.work()
        seen.append((len(datas(rig, "q")), len(datas(rig, "out"))))
    assert set(seen) == {(3, 1), (2, 2)}
    reply = ticket.result()
    assert isinstance(reply, CompletedJobs)
    assert [(part.topic, part.first_seq) for part in reply.written] == [("out", 2)]


@pytest.mark.parametrize("mode", ["lost", "torn", "zeroed", "reordered"])
def test_what_was_answered_survives_a_power_loss_in_every_class(rig: QueueRig, mode: CrashMode) -> None:
    rig.complete("a", [1], out="r")
    rig.crash(mode)
    assert datas(rig, "out") == ["first", "r"]
    assert datas(rig, "q") == [2, 3]


def test_a_move_that_was_decided_is_finished_by_the_next_start(rig: QueueRig) -> None:
    ticket = rig.engine.submit(Complete("q", "a", [1], [result("out", "r"), result("new", "s")]))
    rig.engine.flush()
    rig.driver.wal.work()
    assert not ticket.done
    rig.crash("lost")
    assert (datas(rig, "q"), datas(rig, "out"), datas(rig, "new")) == ([2, 3], ["first", "r"], ["s"])
    rig.crash("lost")
    assert (datas(rig, "q"), datas(rig, "out"), datas(rig, "new")) == ([2, 3], ["first", "r"], ["s"])


def test_a_target_whose_disk_fails_leaves_the_move_to_the_next_start(rig: QueueRig) -> None:
    rig.work()
    rig.fs.fail("sync", path="*/0-*.wal", always=True)
    ticket = rig.engine.submit(Complete("q", "a", [1], [result("out", "r")]))
    rig.work()
    with pytest.raises(LogStopped):
        ticket.result()
    assert datas(rig, "q") == [1, 2, 3], "not gone before its result is safe"
    rig.crash("lost")
    assert (datas(rig, "q"), datas(rig, "out")) == ([2, 3], ["first", "r"])


def test_a_queue_that_is_dropped_while_a_move_is_decided_moves_nothing(rig: QueueRig) -> None:
    ticket = rig.engine.submit(Complete("q", "a", [1], [result("out", "r")]))
    rig.engine.submit(Drop("q"))
    rig.work()
    with pytest.raises(TopicNotFound, match="deleted meanwhile"):
        ticket.result()
    assert datas(rig, "out") == ["first"]
    rig.crash("lost")
    assert datas(rig, "out") == ["first"]


def test_a_move_whose_decision_the_disk_does_not_take_moves_nothing(rig: QueueRig) -> None:
    rig.fs.fail("write_at", path="*/1-*.wal", always=True)
    ticket = rig.engine.submit(Complete("q", "a", [1], [result("out", "r")]))
    with pytest.raises(LogStopped):
        rig.driver.wait(ticket)
    assert datas(rig, "out") == ["first"]
    rig.kill()
    assert (datas(rig, "q"), datas(rig, "out")) == ([1, 2, 3], ["first"])


@pytest.mark.parametrize("rounds", range(4))
def test_a_queue_that_goes_in_any_moment_of_a_move_takes_no_answer_back(rig: QueueRig, rounds: int) -> None:
    ticket = rig.engine.submit(Complete("q", "a", [1], [result("out", "r")]))
    for _ in range(rounds):
        rig.engine.flush()
        rig.driver.wal.work()
    rig.drop("q")
    try:
        rig.driver.wait(ticket)
        moved = ["r"]
    except TopicNotFound:
        moved = []
    rig.work()
    assert datas(rig, "out") == ["first", *moved]
    rig.kill()
    assert datas(rig, "out") == ["first", *moved], "a source that is gone is no matter to who got something of it"


def test_a_number_that_a_target_knows_is_not_used_again() -> None:
    """A queue that promises nothing may forget a move that its target remembers."""
    rig = QueueRig()
    rig.queue(durability="ephemeral")
    rig.configure("out", durability="fsync")
    for number in range(3):
        rig.write("q", number)
        rig.claim("a")
        seq = rig.log("q").head_seq
        rig.complete("a", [seq], out=f"r{number}")
        rig.crash("lost")
    assert datas(rig, "out") == ["r0", "r1", "r2"]


def test_a_stop_waits_for_moves_that_are_under_way(rig: QueueRig) -> None:
    ticket = rig.engine.submit(Complete("q", "a", [1], [result("out", "r")]))
    rig.engine.stop()
    assert rig.engine.unsettled()
    rig.work()
    assert ticket.done and not rig.engine.unsettled()


def test_a_topic_that_a_move_makes_can_be_watched_and_written_to_at_once(rig: QueueRig) -> None:
    rig.complete("a", [1], fresh="r")
    assert rig.write("fresh", "more").first_seq == 2
    assert datas(rig, "fresh") == ["r", "more"]


@pytest.mark.parametrize("unborn", ["made by a move", "made by a command"])
def test_a_crash_that_takes_the_creation_of_a_target_takes_nothing_that_moved_there(rig: QueueRig, unborn: str) -> None:
    """The log of creations is behind that of the queue: what the queue decided outlives its target."""
    rig.work()
    if unborn == "made by a command":
        rig.engine.submit(Configure("new", {"cap_records": 7}, True))
    for seq, data in ((1, "r"), (2, "s")):
        rig.engine.submit(Complete("q", "a", [seq], [result("new", data)]))
        for _ in range(3):
            rig.engine.flush()
            rig.driver.wal.work(1)
    for _ in range(2):
        rig.kill()
        assert (datas(rig, "q"), datas(rig, "new")) == ([3], ["r", "s"])
        assert rig.engine.machine.topic("new").config.cap_records == (7 if unborn == "made by a command" else 0)
