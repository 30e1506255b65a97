"""Who waits for a group, and when its lines are looked at because of time."""

from __future__ import annotations

import pytest

from tests.engine.test_grouping import rig, seqs
from topics.core.commands import Drop
from topics.core.groupcommands import Consume, DropGroup
from topics.engine import groupline
from topics.engine.grouping import Grouping
from topics.engine.groupline import Lines
from topics.errors import Damaged, LogStopped, TopicNotFound
from topics.groupmodel import GroupBatch

KEY = (7, "g")


def test_a_line_is_looked_at_for_the_earliest_time_alone() -> None:
    lines = Lines()
    for when_ms in (30, 20, 10, 25):
        lines.wake_at(KEY, when_ms)
    assert lines.next_deadline_ms() == 10 and lines.take_due(9) is None
    assert lines.take_due(10) == (KEY, None)
    assert lines.take_due(30) is None, "whoever looked planned anew, or had no reason to"
    lines.wake_at(KEY, 40)
    assert lines.take_due(40) == (KEY, None) and lines.next_deadline_ms() is None


def test_times_that_stand_for_nothing_do_not_become_more_and_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groupline, "DEADLINES_SLACK", 10)
    lines = Lines()
    other = (8, "g")
    lines.wake_at(other, 700)
    for when_ms in range(5000, 600, -1):
        lines.wake_at(KEY, when_ms)
        assert len(lines._deadlines) <= 2 * 2 + 10 + 1
    assert lines.take_due(699) == (KEY, None) and lines.take_due(699) is None
    assert lines.take_due(5000) == (other, None) and lines.next_deadline_ms() is None


# ---- lines in an engine


def test_where_a_group_begins_that_cannot_be_stored_is_told_to_who_asked() -> None:
    one = rig(partitions=2)
    ticket = one.engine.groups.consume_anywhere(Consume("t", "g"))
    assert not ticket.done, "a place is durable first"
    one.fs.fail("write_at", path="*.wal", always=True)
    one.work()
    with pytest.raises(LogStopped):
        ticket.result()


def test_of_several_partitions_what_can_be_read_is_answered_when_another_is_damaged() -> None:
    answers: list[object] = []
    for asked_before in range(2):
        one = rig(partitions=2)
        one.write("t", "healthy", partition=0)
        one.write("t", "damaged", partition=1)
        one.checkpoint()
        (path,) = [path for path in one.disk.contents() if path.endswith(".data")]
        file = one.disk.open(path, "write")
        file.write_at(one.disk.contents()[path].index(b"damaged"), [b"?"])
        file.close()
        one.kill()
        commands = [Consume("t", "g", partition, limit=3) for partition in range(2)]
        for _ in range(asked_before):
            one.driver.wait(one.engine.groups.consume_any([Consume("t", "other", 0)]))
        ticket = one.engine.groups.consume_any(commands)
        one.work()
        answers.append(type(ticket.error) if ticket.error else [seqs(each) for each in ticket.result()])  # type: ignore[attr-defined]
    assert [[1]] in answers and Damaged in answers, "what was handed out already is not lost with the other one"


def test_claims_of_a_group_that_is_gone_are_no_claims() -> None:
    one = rig()
    one.write_some(2)
    stream, told = one.push("a", claims_max=2, limit=1)
    assert [seqs(batch) for batch in told] == [[1], [2]]
    batch = told[0]
    assert isinstance(batch, GroupBatch)
    key = (1, "g")
    groups: Grouping = one.engine.groups
    assert groups._holds(key, batch, one.clock.now_ms())
    one.driver.do(DropGroup("t", "g"))
    assert not groups._holds(key, batch, one.clock.now_ms())
    assert not stream.is_open


def test_a_stream_does_not_keep_a_closing_engine() -> None:
    one = rig()
    stream, told = one.push("a")
    waiting = one.ask("b", 1000)
    one.engine.groups.end_waiting()
    assert waiting.done and waiting.error is None
    assert told == [] and stream.is_open, "a stream has nothing to be answered with"


def test_a_wait_that_ends_when_there_is_something_at_last_is_answered_with_it() -> None:
    one = rig()
    one.write_some(1)
    assert one.take("a") == [1]
    waiting = one.ask("b", 101)
    one.clock.advance(101)
    one.engine.tick()
    one.work()
    assert seqs(waiting.result()) == [1], "the claim ran out in the same moment"


@pytest.mark.parametrize("when", ["at the flush", "in time"])
def test_a_line_that_is_to_be_looked_at_may_have_gone_with_its_topic(when: str) -> None:
    """Those who wait were told when it went; nobody else is held up by what was planned for it."""
    one = rig()
    one.configure("other")
    one.write("t", 0)
    assert one.take("first") == [1]
    waiting = one.ask("late", wait_ms=1000)
    other = one.engine.groups.consume(Consume("other", "g"), 1000)
    told: list[object] = []
    if when == "at the flush":
        one.engine.groups.open(Consume("t", "g"), 1, told.append, told.append)
    dropped = one.engine.submit(Drop("t"))
    with pytest.raises(TopicNotFound):
        waiting.result()
    assert [type(error) for error in told] == [TopicNotFound] * (when == "at the flush")
    one.work()
    assert dropped.done
    one.advance(500)
    one.write("other", 0)
    assert seqs(one.driver.wait(other)) == [1]
    one.advance(1000)
    assert one.engine.groups.next_deadline_ms() is None
