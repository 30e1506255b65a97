"""The checkers of batches, routers and streams: what is fine, and for each rule a history that they refuse."""

from __future__ import annotations

from typing import Any

from tests.testing.checkers.histories import Making, grant, rules
from topics.testing.checkers import CHECKERS, History, Topic, check
from topics.testing.checkers.batch import check_batches
from topics.testing.checkers.dedup import check_dedup
from topics.testing.checkers.events import Outcome

LEFT, RIGHT = "left#0", "right#0"


def batch(unknown: bool = False) -> Making:
    """One of two records, 1 for the left and 2 for the right."""
    made = Making(LEFT, batches=True)
    made.call("stage", {"stage": "s1", "ids": [1]}, {}, place=LEFT)
    made.call("stage", {"stage": "s2", "ids": [2]}, {}, place=RIGHT)
    asked = {"key": ("p", 1), "stages": ["s1", "s2"], "parts": [(LEFT, [1]), (RIGHT, [2])]}
    made.call("publish", asked, None if unknown else {"written": [("left", 1, 1), ("right", 1, 1)]}, place="")
    return made


def look(made: Making, left: bool, right: bool, final: bool = True) -> History:
    for place, number, there in ((LEFT, 1, left), (RIGHT, 2, right)):
        made.read(*([(1, number)] if there else []), upto=1, place=place, asked={"final": final})
    return made.end() if final else made.history


def test_a_batch_is_there_as_a_whole() -> None:
    assert rules(check_batches, look(batch(), True, True)) == []


def test_a_batch_that_is_there_in_part() -> None:
    for unknown in (False, True):
        assert "part" in rules(check_batches, look(batch(unknown), True, False))
        assert "part" in rules(check_batches, look(batch(unknown), False, True))


def test_a_batch_that_was_answered_and_is_not_there() -> None:
    assert "lost" in rules(check_batches, look(batch(), False, False))
    assert rules(check_batches, look(batch(unknown=True), False, False)) == []


def test_a_batch_that_is_seen_bit_by_bit() -> None:
    made = batch(unknown=True)
    made.read((1, 1), place=LEFT)
    made.read(upto=1, place=RIGHT)
    made.read((1, 2), place=RIGHT)
    assert rules(check_batches, made.history) == ["moment"]


def test_batch_is_sent_before_it_can_be_read() -> None:
    made = batch(unknown=True)
    made.hear([(1, 1)])
    made.read(upto=1, place=RIGHT)
    made.read((1, 2), place=RIGHT)
    assert rules(check_batches, made.history) == ["stream"]


def test_batch_is_answered_before_it_can_be_read() -> None:
    made = batch()
    made.read(upto=1, place=RIGHT)
    assert rules(check_batches, made.history) == ["answered"]


def test_a_batch_may_be_seen_by_one_reader_and_not_by_one_who_asked_before() -> None:
    made = batch(unknown=True)
    early = made.read(upto=1, place=RIGHT)
    made.read((1, 1), place=LEFT)
    made.read((1, 2), place=RIGHT)
    assert rules(check_batches, made.history) == [] and early.ok


def test_a_stage_that_nobody_published_can_be_read() -> None:
    made = Making(LEFT, batches=True)
    made.call("stage", {"stage": "s1", "ids": [1]}, {}, place=LEFT)
    made.read((1, 1), place=LEFT)
    assert rules(check_batches, made.history) == ["hidden"]


def test_results_come_with_the_job_they_are_of() -> None:
    made = Making(LEFT, batches=True)
    made.call("complete", {"items": [1], "leases": ["a"], "parts": [(RIGHT, [7])]}, {"skipped": []})
    made.read(upto=1, place=RIGHT, asked={"final": True})
    assert rules(check_batches, made.end()) == ["lost"]


def test_a_transaction_of_a_heap_that_came_in_part() -> None:
    made = Making("heap", batches=True)
    made.call("enqueue", {"ids": [1, 2], "key": "t"})
    made.claim(grant("m1", "a", 100, 200, id=1))
    assert rules(check_batches, made.history) == []
    assert rules(check_batches, made.end()) == ["part"]
    made.call("letters", {}, {"ids": [2]})
    assert rules(check_batches, made.history) == []


def test_a_message_that_may_have_been_acked_before_a_backup_is_no_hole_in_its_transaction() -> None:
    made = Making("heap", batches=True)
    made.call("enqueue", {"ids": [1, 2], "key": "t"})
    made.claim(grant("m1", "a", 100, 200, id=1))
    made.claim(grant("m2", "b", 100, 200, id=2), outcome=Outcome.UNKNOWN)
    assert rules(check_batches, made.end()) == ["part"]
    made.settle("ack", "m2", "b", unknown=True)
    assert rules(check_batches, made.history) == []


def test_a_publish_that_gets_two_answers() -> None:
    made = batch()
    made.call("publish", {"key": ("p", 1), "stages": [], "parts": []}, {"written": [2]}, place="")
    assert rules(check_dedup, made.history) == ["answer"]


# ---- routers


def copied(*rows: tuple[int, int], final: bool = True, **source: Any) -> list[str]:
    """What is broken when these are the copies of records 1, 2, 3, which are at seqs 1, 2, 3."""
    made = Making("from#0", **source)
    made.history.topics["to#0"] = Topic(source="from#0")
    made.write((1, 1), (2, 2), (3, 3))
    made.read((1, 1), (2, 2), (3, 3), place="from#0", asked={"final": True})
    made.read(*rows, place="to#0", asked={"final": True})
    return rules(CHECKERS["router"], made.end() if final else made.history)


def test_a_router_that_copies() -> None:
    assert copied((1, 1), (2, 2), (3, 3)) == []
    assert copied((1, 1), (5, 2), (9, 3)) == []


def test_a_copy_of_nothing() -> None:
    assert copied((1, 1), (2, 2), (3, 3), (4, 9)) == ["invented"]


def test_copies_in_another_order() -> None:
    assert copied((1, 2), (2, 1), (3, 3)) == ["order"]


def test_a_record_that_is_copied_twice() -> None:
    assert "twice" in copied((1, 1), (2, 2), (3, 2), (4, 3))


def test_a_record_that_is_not_copied() -> None:
    assert copied((1, 1), (2, 3)) == ["missing"]
    assert copied((1, 1), (2, 3), final=False) == []


def test_a_router_that_takes_some() -> None:
    for copies, found in (([(1, 1)], []), ([(1, 1), (2, 2)], ["invented"]), ([], ["missing"])):
        made = Making("from#0")
        made.history.topics["to#0"] = Topic(source="from#0", source_tag="a")
        made.write((1, 1), tag="a")
        made.write((2, 2), tag="b")
        shown = {"records": [(1, 1, "a"), (2, 2, "b")], "gap": None, "next_seq": 2, "head_seq": 2}
        made.call("read", {"from_seq": 0, "final": True}, shown)
        made.read(*copies, place="to#0", asked={"final": True})
        assert rules(CHECKERS["router"], made.end()) == found


def test_copies_that_a_power_loss_took_come_again() -> None:
    for synced, expected in ((False, []), (True, ["order", "twice"])):
        made = Making("from#0")
        made.history.topics["to#0"] = Topic(source="from#0", synced=synced)
        made.write((1, 1), (2, 2))
        made.read((1, 1), (2, 2), place="to#0")
        made.die()
        made.read((1, 1), (2, 2), place="from#0", asked={"final": True})
        made.read((66, 1), (67, 2), place="to#0", asked={"final": True})
        assert rules(CHECKERS["router"], made.end()) == expected


# ---- streams


def watched() -> Making:
    made = Making()
    made.write((1, 1), (2, 2), (3, 3), (4, 4))
    return made


def heard(made: Making) -> list[str]:
    return rules(CHECKERS["stream"], made.history)


def test_a_stream_that_tells_everything_once() -> None:
    made = watched()
    made.hear([(1, 1), (2, 2)], from_seq=0, to_seq=2)
    made.hear(gap=(3, 3))
    made.hear([(4, 4)], from_seq=3, to_seq=4)
    made.end()
    assert heard(made) == []


def test_a_record_or_a_gap_that_comes_twice() -> None:
    made = watched()
    made.hear([(1, 1), (2, 2)], from_seq=0, to_seq=2)
    made.hear([(2, 2), (3, 3)], from_seq=1, to_seq=3)
    assert heard(made) == ["order"]
    made = watched()
    made.hear(gap=(1, 2))
    made.hear(gap=(2, 2))
    assert heard(made) == ["order"]


def test_a_record_that_is_another_one() -> None:
    made = watched()
    made.hear([(1, 9)], from_seq=0, to_seq=1)
    assert heard(made) == ["record"]


def test_a_record_that_is_passed_over() -> None:
    made = watched()
    made.hear([(1, 1), (3, 3)], from_seq=0, to_seq=3)
    assert heard(made) == ["missed"]
    made = watched()
    made.delete(before_seq=3)
    made.hear([(3, 3)], from_seq=0, to_seq=3)
    assert heard(made) == []


def test_a_stream_that_stops_before_the_end() -> None:
    made = watched()
    made.hear([(1, 1), (2, 2)], from_seq=0, to_seq=2)
    assert heard(made) == []
    made.end()
    assert heard(made) == ["behind"]


def test_all_checkers_are_asked() -> None:
    made = Making()
    made.read((1, 7))
    made.claim(grant(1, "a", 100, 200))
    made.claim(grant(1, "b", 150, 250, attempts=2))
    assert {violation.rule for violation in check(made.history)} == {"log.invented", "lease.live"}
