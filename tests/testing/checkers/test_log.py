"""The checker of logs: what is fine, and for each rule a history that it must refuse."""

from __future__ import annotations

from tests.testing.checkers.histories import Making, rules
from topics.testing.checkers import History, Outcome
from topics.testing.checkers.dedup import check_dedup
from topics.testing.checkers.log import check_log


def broken(history: History) -> list[str]:
    return rules(check_log, history)


def test_a_plain_log_is_fine() -> None:
    made = Making()
    made.write((1, 101), (2, 102))
    made.write((3, 103))
    made.read((1, 101), (2, 102), from_seq=0, head_seq=3)
    made.read((3, 103), from_seq=2)
    assert broken(made.end()) == []


def test_what_got_no_answer_may_be_there_or_not() -> None:
    for rows in ([(1, 101)], [(1, 101), (2, 102)]):
        made = Making()
        made.write((1, 101))
        made.write((2, 102), unknown=True)
        made.read(*rows)
        assert broken(made.end()) == []


def test_a_seq_is_one_record_for_ever() -> None:
    made = Making(synced=False)
    made.write((1, 101))
    made.die()
    made.read((1, 102))
    made.write((2, 102), unknown=True)
    assert "seq" in broken(made.history)


def test_a_record_that_nobody_wrote() -> None:
    made = Making()
    made.read((1, 7))
    assert broken(made.history) == ["invented"]


def test_a_record_whose_write_was_refused_is_one_that_nobody_wrote() -> None:
    made = Making()
    made.write((1, 7), unknown=True, outcome=Outcome.REFUSED)
    made.read((1, 7))
    assert broken(made.history) == ["invented"]


def test_a_record_that_is_there_twice() -> None:
    made = Making()
    made.write((1, 101))
    made.read((1, 101), (2, 101))
    assert broken(made.history) == ["twice"]


def test_a_request_that_came_twice_may_write_twice_unless_it_has_a_key() -> None:
    for key, expected in ((None, []), ("k", ["twice"])):
        made = Making()
        made.write((1, 101), copies=2, key=key)
        made.read((1, 101), (2, 101))
        assert broken(made.history) == expected


def test_a_record_that_a_power_loss_took_may_be_written_again() -> None:
    for synced, expected in ((False, []), (True, ["twice"])):
        made = Making(synced=synced)
        made.write((1, 101), key="k", unknown=True)
        made.read((1, 101))
        made.die(window_ms=1000)
        made.write((9, 101), key="k")
        made.read((9, 101), from_seq=1, gap=(2, 8, "restart"))
        assert broken(made.history) == expected


def test_seqs_follow_the_order_of_writes() -> None:
    made = Making()
    made.write((2, 101))
    made.write((1, 102))
    assert broken(made.history) == ["order"]


def test_writes_at_the_same_time_may_come_in_any_order() -> None:
    made = Making()
    first = made.call("noop", {}, {})
    made.write((2, 101))
    made.write((1, 102), sent=first.sent)
    assert broken(made.history) == []


def test_a_write_has_seqs_without_a_gap() -> None:
    made = Making()
    made.write((1, 101), (3, 102))
    assert broken(made.history) == ["order"]


def test_a_page_that_is_out_of_order_or_out_of_bounds() -> None:
    for rows, upto in (([(2, 102), (1, 101)], 2), ([(1, 101), (2, 102)], 1)):
        made = Making()
        made.write((1, 101), (2, 102))
        made.read(*rows, upto=upto)
        assert "page" in broken(made.history)


def test_a_gap_begins_at_the_cursor_and_holds_no_record() -> None:
    for gap in ((2, 2, "cap"), (1, 3, "cap"), (3, 2, "cap")):
        made = Making(capped=True)
        made.write((1, 101), (2, 102), (3, 103))
        made.read((3, 103), gap=gap)
        assert "page" in broken(made.history)


def test_an_answered_record_that_is_missing() -> None:
    made = Making()
    made.write((1, 101), (2, 102))
    made.read((1, 101), upto=2)
    assert broken(made.history) == ["missing"]


def test_a_delete_that_may_have_happened_explains_what_is_missing() -> None:
    for unknown in (False, True):
        made = Making()
        made.write((1, 101), (2, 102))
        made.delete(before_seq=2, unknown=unknown)
        made.read((2, 102))
        assert broken(made.history) == []


def test_a_delete_explains_nothing_that_it_does_not_match_nor_that_came_later() -> None:
    made = Making()
    made.delete(tag="a")
    made.write((1, 101), tag="a")
    made.read(upto=1)
    assert broken(made.history) == ["missing"]
    made = Making()
    made.write((1, 101), tag="b")
    made.delete(tag="a")
    made.read(upto=1)
    assert broken(made.history) == ["missing"]


def test_a_repeated_write_is_as_old_as_its_first_attempt() -> None:
    made = Making()
    made.write((1, 101), key="k", unknown=True)
    made.delete(before_seq=5)
    made.write((1, 101), key="k", deduped=True)
    made.read(upto=1)
    assert broken(made.history) == []


def test_a_head_that_is_behind_what_was_answered() -> None:
    made = Making()
    made.write((1, 101), (2, 102))
    made.read((1, 101), upto=1, head_seq=1)
    assert broken(made.history) == ["head"]


def test_a_record_that_is_told_lost_and_was_safe() -> None:
    made = Making()
    made.write((1, 101))
    made.die(window_ms=1000)
    made.read(gap=(1, 1, "restart"), upto=1)
    assert broken(made.history) == ["lost"]


def test_a_power_loss_may_take_what_was_answered_a_moment_ago() -> None:
    for window_ms, expected in ((1000, []), (1, ["lost"])):
        made = Making(synced=False)
        made.write((1, 101))
        made.call("noop", {}, {})
        made.die(window_ms=window_ms)
        made.read(gap=(1, 1, "restart"), upto=1)
        assert broken(made.history) == expected


def test_the_death_of_the_process_takes_nothing() -> None:
    made = Making(synced=False)
    made.write((1, 101))
    made.die(power=False, window_ms=1000)
    made.read(gap=(1, 1, "restart"), upto=1)
    assert broken(made.history) == ["lost"]


def test_a_cap_may_take_records_if_it_says_so() -> None:
    made = Making(capped=True)
    made.write((1, 101), (2, 102))
    made.read((2, 102), gap=(1, 1, "cap"))
    assert broken(made.history) == []
    made.read((2, 102))
    assert broken(made.history) == ["missing"]


def test_a_deleted_record_that_is_back() -> None:
    made = Making()
    made.write((1, 101))
    made.delete(before_seq=2)
    made.read((1, 101))
    assert broken(made.history) == ["back"]


def test_what_a_power_loss_takes_is_the_end() -> None:
    made = Making(synced=False)
    made.write((1, 101))
    made.write((2, 102))
    made.die(window_ms=1000)
    made.read((2, 102), gap=(1, 1, "restart"))
    assert broken(made.history) == ["suffix"]


def test_a_key_that_gets_two_answers() -> None:
    made = Making()
    made.write((1, 101), key="k")
    made.write((1, 101), key="k", deduped=True)
    assert rules(check_dedup, made.history) == []
    made.write((2, 101), key="k")
    assert rules(check_dedup, made.history) == ["answer"]


def test_a_key_may_be_forgotten_with_its_record() -> None:
    made = Making(synced=False)
    made.write((1, 101), key="k")
    made.die(window_ms=1000)
    made.write((2, 101), key="k")
    assert rules(check_dedup, made.history) == []
    made = Making(synced=False)
    made.write((1, 101), key="k")
    made.die(power=False)
    made.write((2, 101), key="k")
    assert rules(check_dedup, made.history) == ["answer"]
