"""The checker of consumer groups: what is fine, and for each rule a history that it refuses."""

from __future__ import annotations

from typing import Any

from tests.testing.checkers.histories import Making, rules
from topics.testing.checkers import Call
from topics.testing.checkers.group import check_groups


class Group(Making):
    def consume(self, first: int, last: int, at: int = 100, claim: str = "", **more: Any) -> Call:
        answer = {
            "claim": claim or f"{first} at {at}", "first_seq": first, "last_seq": last,
            "records": [(seq, seq) for seq in range(first, last + 1)], "granted_ms": at, "deadline_ms": at + 100,
            "committed_seq": 0, "gap": None, **more,
        }  # fmt: skip
        return self.call("consume", {"group": "g"}, answer)

    def say(self, verb: str, claim: Call, unknown: bool = False, **answer: Any) -> Call:
        first, last = claim.answer["first_seq"], claim.answer["last_seq"]
        asked = {"group": "g", "claim": claim.answer["claim"], "first_seq": first, "last_seq": last}
        told = {"acked": last - first + 1, "deadline_ms": 0, **answer}
        return self.call(f"group_{verb}", asked, None if unknown else told)

    def broken(self) -> list[str]:
        return rules(check_groups, self.history)


def test_a_group_that_is_one() -> None:
    made = Group()
    made.write((1, 1), (2, 2), (3, 3))
    first = made.consume(1, 2)
    made.consume(3, 3)
    made.say("ack", first, committed_seq=2)
    made.consume(3, 3, at=300, committed_seq=2)
    assert made.broken() == []


def test_a_committed_seq_that_goes_back() -> None:
    made = Group()
    made.say("ack", made.consume(1, 2), committed_seq=2)
    made.consume(3, 3, committed_seq=1)
    assert made.broken() == ["back"]


def test_two_who_have_the_same_records() -> None:
    for at, expected in ((200, ["live"]), (201, [])):
        made = Group()
        made.consume(1, 3)
        made.consume(3, 4, at=at)
        assert made.broken() == expected


def test_records_that_are_kept_longer() -> None:
    made = Group()
    made.say("extend", made.consume(1, 3), deadline_ms=400)
    made.consume(3, 4, at=300)
    assert made.broken() == ["live"]


def test_records_that_came_back_to_a_claim_were_nobodys_before() -> None:
    made = Group()
    first = made.consume(1, 3)
    made.consume(3, 4, at=300)
    made.say("extend", first, deadline_ms=600)
    assert made.broken() == []


def test_records_that_may_have_been_given_back() -> None:
    made = Group()
    made.say("nack", made.consume(1, 3), unknown=True)
    made.consume(1, 3, at=150)
    assert made.broken() == []


def test_acked_records_that_come_again() -> None:
    made = Group()
    made.say("ack", made.consume(1, 2))
    made.consume(2, 3, at=300)
    assert made.broken() == ["done"]


def test_what_is_below_the_committed_seq_comes_again() -> None:
    made = Group()
    made.say("ack", made.consume(1, 3), acked=0, committed_seq=2)
    made.consume(3, 3, at=300, committed_seq=2)
    assert made.broken() == []
    made.consume(2, 2, at=500, committed_seq=2)
    assert made.broken() == ["done"]


def test_a_claim_of_which_no_deadline_is_told_may_have_run_out() -> None:
    made = Group()
    made.consume(1, 2, at=0, deadline_ms=0)
    made.consume(1, 2, at=0, deadline_ms=0)
    assert made.broken() == []


def test_an_ack_of_a_part_promises_nothing_of_the_rest() -> None:
    made = Group()
    made.say("ack", made.consume(1, 2), acked=1)
    made.consume(2, 3, at=300)
    assert made.broken() == []


def test_a_record_that_was_passed_over() -> None:
    made = Group()
    made.write((1, 1), (2, 2))
    made.say("ack", made.consume(2, 2), committed_seq=2)
    assert made.broken() == ["passed"]


def test_a_record_that_was_lost_and_told_is_not_passed_over() -> None:
    made = Group()
    made.write((1, 1), (2, 2))
    made.say("ack", made.consume(2, 2, gap=(1, 1, "restart")), committed_seq=2)
    assert made.broken() == []


def test_a_claim_with_records_beside_its_range() -> None:
    made = Group()
    made.consume(1, 2, records=[(1, 1), (3, 3)])
    assert made.broken() == ["range"]
