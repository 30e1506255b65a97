"""What follows the first contact of a group waits for it."""

from __future__ import annotations

from tests.engine.test_grouping import committed, rig, seqs
from topics.core.groupcommands import AckGroup
from topics.engine.placing import Placing, together
from topics.engine.ticket import Ticket
from topics.errors import LogStopped

KEY = (7, "g")


def test_an_answer_waits_until_it_is_safe_where_the_group_began() -> None:
    placing, began, own = Placing(), Ticket(), Ticket("records", done=True)
    placing.follow(KEY, began)
    answer = placing.before(KEY, own)
    assert not answer.done and placing.before((7, "other"), own) is own
    began.resolve(None)
    assert answer.result() == "records"
    assert placing.before(KEY, own) is own and placing.of([KEY]) == []


def test_a_group_that_was_placed_anew_is_not_safe_because_the_first_one_is() -> None:
    placing, first, second = Placing(), Ticket(), Ticket()
    placing.follow(KEY, first)
    placing.follow(KEY, second)
    first.resolve(None)
    assert placing.of([KEY]) == [second]
    answer = placing.before(KEY, Ticket("records", done=True))
    assert not answer.done
    second.resolve(None)
    assert answer.done and placing.of([KEY]) == []


def test_what_is_done_already_is_not_waited_for() -> None:
    placing = Placing()
    placing.follow(KEY, Ticket(done=True))
    assert placing.of([KEY]) == [] and together([], "all").result() == "all"


def test_together_is_done_with_the_last_and_fails_with_the_first_that_does() -> None:
    one, other = Ticket(), Ticket()
    joined = together((one, other), "all")
    one.resolve(1)
    assert not joined.done
    other.resolve(2)
    assert joined.result() == "all"
    one, other, third = Ticket(), Ticket(), Ticket()
    joined = together((one, other, third), "all")
    one.fail(LogStopped("the disk failed"))
    assert isinstance(joined.error, LogStopped)
    other.fail(LogStopped("another one"))
    third.resolve(3)
    assert f"{joined.error}" == "the disk failed"


def test_consumer_waits_until_the_ack_that_created_its_group_is_safe() -> None:
    one = rig(durability="disk")
    one.write_some(2)
    ack = one.engine.submit(AckGroup("t", "g", 1))
    asked = one.ask()
    one.engine.flush()
    # As the commit log reports it: all is written, nothing is synced.
    one.engine.written(one.engine.wal.shard_of(1), 1_000_000)
    assert not ack.done and not asked.done
    assert committed(one.driver.wait(ack)) == 1
    assert seqs(one.driver.wait(asked)) == [2]
