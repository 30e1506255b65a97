from __future__ import annotations

import pytest

from topics.core.match import EXPECTED, Match, parse_match
from topics.errors import InvalidRequest


@pytest.mark.parametrize(
    ("sent", "parsed"),
    [
        ("x", Match(b"x", prefix=False)),
        ("a*", Match(b"a*", prefix=False)),
        (["tag", "Eq", "x"], Match(b"x", prefix=False)),
        (("tag", "Eq", "a*"), Match(b"a*", prefix=False)),
        (["tag", "Glob", "tenant42:*"], Match(b"tenant42:", prefix=True)),
        (["tag", "Glob", "*"], Match(b"", prefix=True)),
        (["tag", "Glob", "ü*"], Match("ü".encode(), prefix=True)),
    ],
)
def test_what_a_client_may_send(sent: object, parsed: Match) -> None:
    assert parse_match(sent) == parsed


@pytest.mark.parametrize(
    ("sent", "message", "field", "expected"),
    [
        (17, f"match must be {EXPECTED}", "match", EXPECTED),
        (None, f"match must be {EXPECTED}", "match", EXPECTED),
        ([], f"match must be {EXPECTED}", "match", EXPECTED),
        (["tag", "Eq"], f"match must be {EXPECTED}", "match", EXPECTED),
        (["tag", "Eq", 1], f"match must be {EXPECTED}", "match", EXPECTED),
        (["node", "Eq", "x"], 'match[0] must be "tag", not "node"', "match[0]", "tag"),
        (["tag", "In", "x"], 'match[1] must be "Eq" or "Glob", not "In"', "match[1]", "Eq or Glob"),
        (["tag", "eq", "x"], 'match[1] must be "Eq" or "Glob", not "eq"', "match[1]", "Eq or Glob"),
    ],
)
def test_what_is_refused(sent: object, message: str, field: str, expected: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse_match(sent)
    assert str(refused.value) == message
    assert refused.value.detail == {"field": field, "expected": expected}


@pytest.mark.parametrize("pattern", ["x", "", "a*b", "a**", "*a"])
def test_a_glob_is_a_prefix_and_nothing_else(pattern: str) -> None:
    with pytest.raises(
        InvalidRequest, match=r"filter\[2\] of a Glob is a literal prefix and one trailing \*"
    ) as refused:
        parse_match(["tag", "Glob", pattern], "filter")
    assert refused.value.detail["field"] == "filter[2]"


def test_no_tag_matches_nothing() -> None:
    every = Match(b"", prefix=True)
    assert every.matches(b"a") and not every.matches(b"")
    assert not Match(b"", prefix=False).matches(b"")


def test_a_prefix_is_at_the_beginning() -> None:
    prefix = Match(b"a:", prefix=True)
    assert [prefix.matches(tag) for tag in (b"a:", b"a:1", b"a", b"ba:1")] == [True, True, False, False]


def test_a_predicate_over_an_index() -> None:
    index = {b"a": [0, 4], b"a:1": [2], b"b": [1]}
    assert Match(b"a", prefix=False).positions(index) == [0, 4]
    assert sorted(Match(b"a", prefix=True).positions(index)) == [0, 2, 4]
    assert Match(b"zz", prefix=False).positions(index) == []


@pytest.mark.parametrize("wire", [["tag", "Eq", "x*"], ["tag", "Glob", "x*"], ["tag", "Glob", "*"]])
def test_there_and_back(wire: list[str]) -> None:
    assert parse_match(wire).as_wire() == wire
