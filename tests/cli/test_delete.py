from __future__ import annotations

import pytest

from tests.cli.rig import Command


@pytest.fixture
def filled(topics: Command, topic: str) -> str:
    for number in range(1, 6):
        topics.good("write", topic, number, "--tag", f"order-{number}")
    return topic


def left(topics: Command, topic: str) -> list[int]:
    return [record["$seq"] for record in topics.good("read", topic)]


def test_by_tag_by_prefix_and_by_seq(topics: Command, filled: str) -> None:
    (done,) = topics.good("delete", filled, "--tag", "order-3")
    assert (done["deleted"], done["count"], done["erased"]) == (1, 4, False)
    assert topics.good("delete", filled, "--before", 3)[0]["deleted"] == 2
    assert left(topics, filled) == [4, 5]
    topics.good("delete", filled, "--before", 5, "--tag-prefix", "order-")
    assert left(topics, filled) == [5]
    assert topics.good("delete", filled, "--tag", "order-3")[0]["deleted"] == 0


def test_erased_bytes(topics: Command, filled: str) -> None:
    assert topics.good("delete", filled, "--tag", "order-3", "--erase")[0]["erased"]
    said = topics("delete", filled, "--tag", "order-4", "--erase", "--no-json").out
    assert said == f"1 record deleted from {filled}, and their bytes from disk; 3 left\n"


def test_a_tag_in_all_partitions_and_a_seq_in_one(topics: Command, topic: str) -> None:
    topics.good("topic", "create", topic, "--partitions", 2)
    for partition in (0, 1):
        topics.good("write", topic, 1, "--tag", "x", "--partition", partition)
    said = topics("delete", topic, "--before", 9)
    assert (said.code, said.out) == (2, "") and "name it with --partition" in said.err
    assert [each["deleted"] for each in topics.good("delete", topic, "--tag", "x")] == [1, 1]
    topics.good("write", topic, 2)
    assert topics.good("delete", topic, "--before", 9, "--partition", 0)[0]["deleted"] == 1


@pytest.mark.parametrize(
    ("arguments", "code", "what"),
    [
        ((), 2, "delete needs --before, --tag or --tag-prefix"),
        (("--tag", "a", "--tag-prefix", "b"), 2, "give one of them"),
        (("--before", "-3"), 2, "--before must be a seq, 0 or more, not -3"),
        (("--tag-prefix", "a*b"), 2, "literal prefix"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    topics: Command, filled: str, arguments: tuple[str, ...], code: int, what: str
) -> None:
    said = topics("delete", filled, *arguments)
    assert (said.code, said.out) == (code, "") and what in said.err
    assert left(topics, filled) == [1, 2, 3, 4, 5]


def test_a_topic_that_is_not_there(topics: Command, filled: str) -> None:
    assert topics("delete", f"{filled}-not", "--tag", "a").code == 3
