"""A batch over several topics: seen whole or not at all, answered alike for ever, finished whatever breaks."""

from __future__ import annotations

import msgspec
import pytest

from tests.engine.queuerig import QueueRig
from tests.engine.rig import Rig, records
from topics.core.commands import Stage
from topics.core.waits import uniform_waits, waits_of
from topics.errors import LogStopped, NotAQueue, ProducerFenced, StageConflict, StageNotFound, TopicsError
from topics.model import Published
from topics.testing import CRASH_MODES, CrashMode, SimClock


def staged() -> Rig:
    """Two topics of two shards with something in them, and a stage for each."""
    rig = Rig()
    rig.configure("odd", durability="fsync")
    rig.configure("even", durability="disk")
    rig.write("odd", "before")
    rig.write("even", "before")
    rig.stage("s1", "odd", *({"data": number, "tag": "t", "meta": {"k": "v"}} for number in range(3)))
    rig.stage("s2", "even", "a", "b")
    return rig


def contents(rig: Rig) -> tuple[list[object], list[object]]:
    return rig.data("odd"), rig.data("even")


BEFORE = (["before"], ["before"])
AFTER = (["before", 0, 1, 2], ["before", "a", "b"])


def test_readers_see_all_of_a_batch_or_nothing_of_it() -> None:
    rig = staged()
    seen: list[tuple[list[object], list[object]]] = []
    rig.fs.on_call = lambda call: seen.append(contents(rig)) if call.path.endswith(".wal") else None
    ticket = rig.publish("s1", "s2")
    while not ticket.done:
        seen.append(contents(rig))
        rig.engine.flush()
        seen.append(contents(rig))
        rig.driver.wal.work()
    rig.fs.on_call = None
    assert contents(rig) == AFTER
    assert {str(pair) for pair in seen} == {str(BEFORE), str(AFTER)}, "and it was seen before the last sync, and after"
    answer = ticket.result()
    assert isinstance(answer, Published)
    assert [(part.topic, part.first_seq, part.last_seq) for part in answer.written] == [("odd", 2, 4), ("even", 2, 3)]
    assert rig.engine.machine.batches.stages == {}


def test_writes_behind_an_unfinished_batch_are_answered_and_seen_after_it() -> None:
    rig = staged()
    ticket = rig.publish("s1", "s2")
    rig.engine.flush()
    rig.driver.wal.work()
    behind = rig.submit("odd", "behind")
    rig.work()
    assert ticket.done and behind.done
    assert rig.data("odd") == ["before", 0, 1, 2, "behind"]


def test_two_batches_in_one_log_are_seen_in_order() -> None:
    rig = staged()
    rig.stage("s3", "odd", "second")
    first = rig.publish("s1", "s2")
    second = rig.publish("s3", epoch=2)
    rig.work()
    assert first.done and second.done
    assert rig.data("odd") == ["before", 0, 1, 2, "second"] and rig.log("odd").hidden_from == 0


def test_who_asks_for_the_same_batch_joins_in() -> None:
    rig = staged()
    first = rig.publish("s1", "s2")
    rig.engine.flush()
    joined = rig.publish("s1", "s2")
    rig.driver.wal.work()
    again = rig.publish("s1", "s2")
    rig.work()
    assert first.result() == joined.result() == again.result()
    late = rig.publish("s1", "s2")
    assert late.done
    assert late.result() == msgspec.structs.replace(_published(first.result()), deduped=True)
    assert contents(rig) == AFTER


def _published(reply: object) -> Published:
    assert isinstance(reply, Published)
    return reply


@pytest.mark.parametrize("end", ["kill", "crash", "stop"])
def test_the_answer_is_the_same_after_a_restart(end: str) -> None:
    rig = staged()
    answer = _published(rig.driver.wait(rig.publish("s1", "s2")))
    getattr(rig, end)()
    assert rig.driver.wait(rig.publish("s1", "s2")) == msgspec.structs.replace(answer, deduped=True)
    assert contents(rig) == AFTER
    with pytest.raises(ProducerFenced):
        rig.publish("s1", epoch=0)


@pytest.mark.parametrize("mode", [None, *CRASH_MODES])
def test_a_crash_at_any_point_leaves_all_or_nothing(mode: CrashMode | None) -> None:
    """Decided or not, recovery makes it whole; and once somebody was answered, it is there."""
    rig = staged()
    ticket = rig.publish("s1", "s2")
    outcomes = set()

    def look(call: object) -> None:
        fork = rig.disk.fork()
        other = Rig(disk=fork.kill() if mode is None else fork.crash(mode))
        found = str(contents(other))
        outcomes.add(found)
        assert found in (str(BEFORE), str(AFTER))
        if ticket.done:
            assert found == str(AFTER)
        other.driver.wait(other.publish("s1", "s2"))
        assert contents(other) == AFTER

    rig.fs.on_call = look
    while not ticket.done:
        rig.engine.flush()
        rig.driver.wal.work()
    look(None)
    assert rig.engine.state("odd").stopped is None, "no look failed"
    assert outcomes == {str(BEFORE), str(AFTER)}


def test_a_shard_that_fails_in_the_middle_shows_nothing_and_the_next_start_makes_it_whole() -> None:
    rig = staged()
    ticket = rig.publish("s1", "s2")
    rig.engine.flush()
    rig.driver.wal.work()
    rig.fs.fail("sync", path="*/wal/1-*")
    joined = rig.publish("s1", "s2")
    rig.work()
    for asked in (ticket, joined):
        with pytest.raises(LogStopped):
            asked.result()
    assert contents(rig) == BEFORE
    rig.crash()
    assert contents(rig) == AFTER
    assert _published(rig.driver.wait(rig.publish("s1", "s2"))).deduped


def test_what_is_written_behind_a_batch_that_cannot_go_on_is_hidden_until_the_next_start() -> None:
    rig = staged()
    rig.publish("s1", "s2")
    rig.engine.flush()
    rig.driver.wal.work()
    rig.fs.fail("sync", path="*/wal/1-*", always=True)
    behind = rig.submit("even", "behind")
    rig.work()
    assert behind.done and behind.error is None
    assert rig.data("even") == ["before"], "part of a batch is seen by nobody"
    rig.kill()
    rig.work()
    assert contents(rig) == (AFTER[0], [*AFTER[1], "behind"])


def test_a_batch_for_a_shard_that_has_stopped_is_refused_before_it_is_decided() -> None:
    rig = staged()
    rig.fs.fail("sync", path="*/wal/1-*")
    rig.submit("odd", 1)
    rig.work()
    with pytest.raises(LogStopped):
        rig.publish("s1", "s2")
    assert not any(stage.decided for stage in rig.engine.machine.batches.stages.values())


@pytest.mark.parametrize("checkpoints", [False, True])
def test_stages_are_hidden_survive_and_expire(checkpoints: bool) -> None:
    rig = staged()
    if checkpoints:
        rig.checkpoint()
    rig.crash()
    assert contents(rig) == BEFORE
    deadline_ms = rig.engine.next_deadline_ms()
    assert deadline_ms is not None
    rig.clock.advance(rig.engine.machine.batches.stages["s1"].expires_ms - rig.clock.now_ms())
    rig.engine.tick()
    rig.work()
    assert rig.engine.machine.batches.stages == {}
    with pytest.raises(StageNotFound):
        rig.publish("s1", "s2")
    rig.checkpoint()
    rig.kill()
    assert contents(rig) == BEFORE and len(rig.engine.machine.logs) == 2


def test_a_batch_that_is_being_published_is_not_aborted() -> None:
    rig = staged()
    ticket = rig.publish("s1", "s2")
    with pytest.raises(StageConflict):
        rig.abort("s1")
    rig.work()
    assert ticket.done and contents(rig) == AFTER


def test_a_stage_is_published_when_its_records_are_durable() -> None:
    """A decision must never be durable before what it decides about."""
    rig = staged()
    more = rig.engine.submit(Stage("s1", "odd", records("late")))
    with pytest.raises(StageConflict, match="not durable yet"):
        rig.publish("s1", "s2")
    rig.work()
    assert more.done
    rig.driver.wait(rig.publish("s1", "s2"))
    assert rig.data("odd")[-1] == "late"


def test_a_topic_dropped_meanwhile_does_not_stop_the_rest() -> None:
    rig = staged()
    ticket = rig.publish("s1", "s2")
    rig.drop("odd")
    rig.work()
    assert ticket.done and not isinstance(ticket.error, TopicsError)
    assert rig.data("even") == ["before", "a", "b"]
    rig.crash()
    assert rig.data("even") == ["before", "a", "b"]


def test_checkpoints_between_the_steps() -> None:
    """Wherever a checkpoint falls, what follows finds the batch as it was."""
    for rounds in range(1, 6):
        rig = staged()
        ticket = rig.publish("s1", "s2")
        for _ in range(rounds):
            rig.engine.flush()
            rig.driver.wal.work()
        job = rig.capture()
        rig.work()
        rig.finish(job)
        assert ticket.done
        rig.crash()
        assert contents(rig) == AFTER, f"after {rounds} rounds"
        assert _published(rig.driver.wait(rig.publish("s1", "s2"))).deduped


# ---- jobs that wait


def waiting() -> QueueRig:
    """Six jobs staged in three requests: one that does not wait, and others by delays and by times."""
    rig = QueueRig()
    rig.queue(durability="fsync")
    now_ms = rig.clock.now_ms()
    rig.driver.do(Stage("s", "q", records("at once")))
    rig.driver.do(Stage("s", "q", records("in 50", "at 10", "at once"), waits=waits_of([-50, now_ms + 10, 0])))
    rig.driver.do(Stage("s", "q", records("at 1000", "past"), waits=waits_of([now_ms + 1000, now_ms - 5])))
    return rig


def test_jobs_wait_from_their_publish_on() -> None:
    rig = waiting()
    rig.tick(20)
    rig.driver.wait(rig.publish("s"))
    assert rig.counts() == (4, 0, 0, 2)
    assert rig.claim("a", 9).seqs == [1, 3, 4, 6], "a time that passed before the publish is no reason to wait"
    rig.tick(49)
    assert rig.claim("a", 9).seqs == []
    asked = rig.ask("a", 9, wait_ms=60_000)
    rig.tick(1)
    assert rig.driver.wait(asked).seqs == [2]  # type: ignore[union-attr]
    rig.tick(929)
    assert rig.claim("b", 9).seqs == []
    rig.tick(1)
    assert rig.claim("b", 9).seqs == [5]


@pytest.mark.parametrize("end", ["kill", "crash", "stop", "checkpoint"])
@pytest.mark.parametrize("published", [False, True])
def test_jobs_wait_over_restarts(end: str, published: bool) -> None:
    """Also when the facts that said so are in a checkpoint, which a stage keeps as well as a queue."""
    rig = waiting()
    if published:
        rig.driver.wait(rig.publish("s"))
    getattr(rig, end)()
    rig.kill()
    if not published:
        rig.tick(5)
        rig.driver.wait(rig.publish("s"))
    assert rig.counts() == (3, 0, 0, 3)
    assert rig.claim("a", 9).seqs == [1, 4, 6]
    rig.tick(49)
    assert rig.claim("a", 9).seqs == [3]
    rig.tick(1)
    assert rig.claim("a", 9).seqs == [2]


@pytest.mark.parametrize("mode", [None, *CRASH_MODES])
def test_no_crash_makes_a_job_come_early(mode: CrashMode | None) -> None:
    rig = waiting()
    ticket = rig.publish("s")
    outcomes = set()

    def look(call: object) -> None:
        fork = rig.disk.fork()
        other = QueueRig(disk=fork.kill() if mode is None else fork.crash(mode), clock=SimClock(rig.clock.now_ms()))
        outcomes.add(other.counts())
        other.driver.wait(other.publish("s"))
        assert other.claim("a", 9).seqs == [1, 4, 6]
        other.tick(49)
        assert other.claim("a", 9).seqs == [3]
        other.tick(951)
        assert other.claim("a", 9).seqs == [2, 5]

    rig.fs.on_call = look
    while not ticket.done:
        rig.engine.flush()
        rig.driver.wal.work()
    look(None)
    assert outcomes == {(0, 0, 0, 0), (3, 0, 0, 3)}, "all of it or nothing, and those that wait do so at once"


def test_jobs_of_several_blocks_wait_each_as_long_as_it_says() -> None:
    rig = waiting()
    rig.checkpoint()
    rig.driver.do(Stage("s", "q", records("in 7", "at once"), waits=waits_of([-7, 0])))
    rig.driver.wait(rig.publish("s"))
    assert rig.claim("a", 9).seqs == [1, 4, 6, 8]
    rig.tick(7)
    assert rig.claim("a", 9).seqs == [7]


def test_only_jobs_wait() -> None:
    rig = staged()
    with pytest.raises(NotAQueue):
        rig.driver.do(Stage("s1", "odd", records("later"), waits=uniform_waits(1, -5)))
    rig.driver.wait(rig.publish("s1", "s2"))
    assert contents(rig) == AFTER


def test_a_queue_that_became_a_log_gets_the_records() -> None:
    rig = waiting()
    rig.drop("q")
    rig.configure("q")
    rig.driver.wait(rig.publish("s"))
    assert len(rig.data("q")) == 6
    rig.kill()
    assert len(rig.data("q")) == 6 and rig.log("q").waits is None
