"""The checker of reads behind what their client knows: what is fine, and histories that it refuses."""

from __future__ import annotations

from tests.testing.checkers.histories import Making, grant, rules
from topics.testing.checkers import Topic
from topics.testing.checkers.fresh import FRESH_MS, check_fresh

COPY, LETTERS = "copy#0", "dead#0"


def copying(synced: bool = True) -> Making:
    made = Making("t#0", synced=synced)
    made.history.topics[COPY] = Topic(source="t#0", synced=synced, source_tag="a")
    return made


def seen(made: Making) -> list[str]:
    """What is wrong once the copy of record 7 was seen at seq 1."""
    made.read((1, 7), place=COPY)
    return rules(check_fresh, made.history)


def test_copy_is_there_behind_the_answer() -> None:
    made = copying()
    made.write((1, 7), tag="a")
    assert seen(made) == []


def test_copy_that_comes_after_a_read_behind_the_answer() -> None:
    made = copying()
    made.write((1, 7), tag="a")
    made.read(place=COPY)
    assert seen(made) == ["late"]


def test_read_may_miss_what_was_not_answered_yet() -> None:
    made = copying()
    early = made.read(place=COPY)
    made.write((1, 7), tag="a", sent=early.sent)
    made.write((2, 8), tag="a", unknown=True)
    made.write((3, 9), tag="b")
    assert seen(made) == []


def test_read_that_has_waited_long_enough_may_miss_it() -> None:
    made = copying()
    made.write((1, 7), tag="a")
    made.read(place=COPY, sent_ms=1000, done_ms=1000 + FRESH_MS)
    assert seen(made) == []


def test_read_of_a_server_that_ends_or_is_sick_may_miss_it() -> None:
    for fault in ({"stopped": True}, {"sick_from": 1}):
        made = copying()
        made.write((1, 7), tag="a")
        made.read(place=COPY)
        made.die(power=False, **fault)
        assert seen(made) == []


def test_what_a_power_loss_may_take_may_come_again_later() -> None:
    for synced in (False, True):
        made = copying(synced)
        made.write((1, 7), tag="a")
        made.read(place=COPY)
        made.die()
        assert seen(made) == (["late"] if synced else [])


def dying() -> Making:
    """A job that was delivered as often as it may be, and given back."""
    made = Making("q#0", letters=LETTERS, deliveries_max=1)
    made.claim(grant(1, "a", 0, 250, id=7), asked={"max": 1})
    made.call("nack", {"items": [1], "leases": ["a"], "at_once": True}, {"skipped": []})
    return made


def test_letter_is_there_behind_the_claim_that_made_it() -> None:
    made = dying()
    made.claim(asked={"max": 5})
    made.read((1, 7), place=LETTERS)
    assert rules(check_fresh, made.history) == []


def test_letter_that_is_not_there_behind_the_claim() -> None:
    made = dying()
    made.claim(asked={"max": 5})
    made.read(place=LETTERS)
    assert rules(check_fresh, made.history) == ["late"]


def test_claim_that_got_all_it_asked_for_has_not_met_the_job() -> None:
    made = dying()
    made.claim(grant(2, "b", 0, 250, id=8), asked={"max": 1})
    made.read(place=LETTERS)
    assert rules(check_fresh, made.history) == []


def test_letter_that_somebody_took_back_may_be_gone() -> None:
    made = dying()
    made.claim(asked={"max": 5})
    made.call("redrive", {}, {})
    made.read(place=LETTERS)
    assert rules(check_fresh, made.history) == []


def test_job_of_a_process_that_died_may_have_another_end() -> None:
    made = dying()
    made.claim(asked={"max": 5})
    made.die()
    made.read(place=LETTERS)
    assert rules(check_fresh, made.history) == []
