"""Places that forget, or that are dropped and made again: each time is held against itself, and against no other."""

from __future__ import annotations

from tests.testing.checkers.histories import Making, rules
from topics.testing.checkers.dedup import check_dedup
from topics.testing.checkers.log import check_log
from topics.testing.checkers.recreation import check_recreation


def drop(made: Making, unknown: bool = False, copies: int = 1, dropped: bool = True) -> None:
    made.call("drop", {}, None if unknown else {"dropped": dropped}, copies=copies)


def test_what_forgets_may_begin_anew_when_the_process_dies() -> None:
    made = Making(forgets=True, synced=False)
    made.write((1, 101))
    made.die(power=False)
    made.read(upto=0)
    made.write((1, 102))
    made.read((1, 102))
    assert rules(check_log, made.history) == []


def test_what_forgets_keeps_everything_while_the_process_lives() -> None:
    made = Making(forgets=True, synced=False)
    made.die()
    made.write((1, 101), (2, 102))
    made.read((2, 102), gap=(1, 1, "restart"))
    assert rules(check_log, made.history) == ["lost"]
    made = Making(forgets=True, synced=False)
    made.write((1, 101))
    made.read((1, 102))
    assert rules(check_log, made.history) == ["invented", "seq"]


def test_a_topic_that_is_made_again_begins_at_one() -> None:
    made = Making()
    made.write((1, 101), (2, 102))
    drop(made)
    made.write((1, 103))
    made.read((1, 103))
    assert rules(check_log, made.history) == []


def test_what_was_dropped_is_back() -> None:
    made = Making()
    made.write((1, 101))
    drop(made)
    made.read((1, 101))
    assert rules(check_log, made.history) == ["invented"]


def test_a_write_that_is_still_under_way_may_come_behind_the_drop() -> None:
    made = Making()
    made.write((1, 101), unknown=True)
    drop(made)
    made.read((1, 101))
    assert rules(check_log, made.history) == []


def test_a_record_behind_a_drop_that_is_lost() -> None:
    made = Making()
    drop(made)
    made.write((1, 101))
    made.read(upto=1)
    assert rules(check_log, made.history) == ["missing"]


def test_behind_a_drop_without_an_answer_nothing_is_known_until_the_next() -> None:
    made = Making()
    drop(made, unknown=True)
    made.write((1, 101))
    made.read(upto=1)
    assert rules(check_log, made.history) == []
    drop(made)
    made.write((1, 102))
    made.read(upto=1)
    assert rules(check_log, made.history) == ["missing"]


def test_a_drop_that_goes_out_twice_may_come_again_later() -> None:
    made = Making()
    drop(made, copies=2)
    made.write((1, 101))
    made.read(upto=1)
    assert rules(check_log, made.history) == []


def test_only_a_topic_that_was_dropped_is_another_one() -> None:
    made = Making()
    made.write((1, 101))
    made.read((1, 101), from_seq=5, gap=(1, 1, "recreated"), upto=1)
    assert rules(check_log, made.history) == ["page"]
    made = Making()
    drop(made)
    made.write((1, 101), (2, 102))
    made.read((1, 101), (2, 102), from_seq=5, gap=(1, 2, "recreated"), upto=2)
    assert rules(check_log, made.history) == []
    made.read((2, 102), from_seq=5, gap=(1, 2, "recreated"), upto=2)
    assert rules(check_log, made.history) == ["missing"]


def test_what_stands_behind_a_batch_may_be_hidden_but_not_for_ever() -> None:
    made = Making(batches=True)
    made.write((1, 101))
    made.read(upto=0)
    assert rules(check_log, made.history) == []
    made.read(upto=1, asked={"final": True})
    assert rules(check_log, made.history) == ["missing"]


def test_a_key_is_forgotten_with_its_topic() -> None:
    made = Making()
    made.write((2, 101), key="k")
    drop(made)
    made.write((1, 101), key="k")
    assert rules(check_dedup, made.history) == []
    made.write((2, 101), key="k")
    assert rules(check_dedup, made.history) == ["answer"]


def epochs(*epochs: int, dropped: bool) -> list[str]:
    made = Making()
    for at, epoch in enumerate(epochs):
        if at and dropped:
            drop(made)
        made.call("read", {"from_seq": 0}, {"epoch": epoch, "head_seq": 1})
    if not dropped:
        drop(made)
    return rules(check_recreation, made.history)


def test_the_epoch_tells_topics_of_one_name_apart() -> None:
    assert epochs(1, 2, dropped=True) == epochs(1, 1, dropped=False) == []
    assert epochs(1, 1, dropped=True) == epochs(2, 1, dropped=False) == ["epoch"]


def test_reads_at_the_same_time_say_nothing_of_each_other() -> None:
    made = Making()
    first = made.call("read", {"from_seq": 0}, {"epoch": 2, "head_seq": 1})
    made.call("read", {"from_seq": 0}, {"epoch": 1, "head_seq": 1}, sent=first.sent)
    drop(made)
    assert rules(check_recreation, made.history) == []
    made.call("read", {"from_seq": 0}, {"epoch": 1, "head_seq": 1})
    assert rules(check_recreation, made.history) == ["epoch"]


def test_a_drop_of_nothing_makes_nothing_new() -> None:
    for dropped, expected in ((False, []), (True, ["epoch"])):
        made = Making()
        made.call("read", {"from_seq": 0}, {"epoch": 1, "head_seq": 1})
        drop(made, dropped=dropped)
        made.call("read", {"from_seq": 0}, {"epoch": 1, "head_seq": 1})
        assert rules(check_recreation, made.history) == expected


def test_a_topic_that_was_empty_may_never_have_come_to_exist() -> None:
    for head_seq, power, expected in ((0, True, []), (1, True, ["epoch"]), (0, False, ["epoch"])):
        made = Making()
        made.call("read", {"from_seq": 0}, {"epoch": 2, "head_seq": head_seq})
        made.die(power=power)
        drop(made)
        made.call("read", {"from_seq": 0}, {"epoch": 2, "head_seq": 1})
        assert rules(check_recreation, made.history) == expected
