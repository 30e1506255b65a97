from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.cli.rig import ROOT, TIMEOUT_S, Command, clean_environment
from tests.e2e.served import Served


@pytest.fixture
def filled(topics: Command, topic: str) -> str:
    for number in range(1, 6):
        topics.good("write", topic, number, "--tag", f"order-{number}", "--node", "n1" if number % 2 else "n2")
    return topic


def seqs(topics: Command, *arguments: str | int) -> list[int]:
    return [record["$seq"] for record in topics.good("read", *arguments)]


def test_cursor_limit_and_filters(topics: Command, filled: str) -> None:
    assert seqs(topics, filled) == [1, 2, 3, 4, 5]
    assert seqs(topics, filled, "--after", 2) == [3, 4, 5]
    assert seqs(topics, filled, "--after", 2, "-n", 1) == [3]
    assert seqs(topics, filled, "--tag", "order-4") == [4]
    assert seqs(topics, filled, "--tag-prefix", "order-") == [1, 2, 3, 4, 5]
    assert seqs(topics, filled, "--not-node", "n1") == [2, 4]
    assert seqs(topics, filled, "--not-node", "n1", "--not-node", "n2") == []


def test_a_time_to_begin_at(topics: Command, topic: str) -> None:
    topics.good("topic", "create", topic, "--partitions", 2)
    for partition in (0, 1):
        topics.good("write", topic, 1, 2, "--partition", partition)
    assert [each["data"] for each in topics.good("read", topic, "--since", "10m")] == [1, 2, 1, 2]
    assert [each["data"] for each in topics.good("read", topic, "--since", "1970-01-02", "--limit", 3)] == [1, 2, 1]
    for since, what in (("tomorrow", "expected so long ago"), ("9999-01-01", "still to come"), ("1h", "give one of")):
        said = topics("read", topic, "--since", since, "--after", 1 if since == "1h" else 0)
        assert (said.code, said.out) == (2, "") and what in said.err


def test_a_gap_is_a_line_of_its_own(topics: Command, topic: str) -> None:
    topics.good("topic", "create", topic, "--cap-records", "2")
    topics.good("write", topic, *range(5))
    gap, *records = topics.good("read", topic)
    assert gap == {"gap_from": 1, "gap_to": 3, "reason": "cap"}
    assert [record["$seq"] for record in records] == [4, 5]


def test_line_breaks_inside_a_record_do_not_break_the_line(topics: Command, topic: str) -> None:
    topics.good("write", topic, '{"a":\n 1.10,\r\n "b": "x"}')
    said = topics("read", topic)
    assert said.out.count("\n") == 1
    assert '"data":{"a":1.10,"b":"x"}' in said.out


def test_all_partitions_or_one(topics: Command, topic: str) -> None:
    topics.good("topic", "create", topic, "--partitions", "3")
    for partition in range(3):
        topics.good("write", topic, partition, "--partition", partition)
    assert [(each["partition"], each["data"]) for each in topics.good("read", topic)] == [(0, 0), (1, 1), (2, 2)]
    assert [each["data"] for each in topics.good("read", topic, "--partition", 1)] == [1]
    said = topics("read", topic, "--partition", 3)
    assert said.code == 2 and f'topic "{topic}" has partitions 0 to 2, not 3' in said.err


def test_for_a_person(topics: Command, topic: str) -> None:
    topics.good("topic", "create", topic, "--cap-records", "1")
    topics.good("write", topic, "1", '{"sku": "A1"}', "--tag", "o-1", "--node", "n1", "--meta", "a=b")
    gap, record = topics("read", topic, "--no-json").out.splitlines()
    assert gap == "gap: 1 lost before they were read: the cap was reached (cap)"
    assert record[23:] == '  2  o-1  @n1  {"sku":"A1"}  {"a":"b"}'


def test_a_record_cannot_steer_the_terminal(topics: Command, topic: str) -> None:
    topics.good("write", topic, '"\\u001b[2J\\u009b"', "--tag", "\x1b]0;owned\x07")
    shown = topics("read", topic, "--no-json").out
    assert "\x1b" not in shown and "\x9b" not in shown and "\x07" not in shown
    assert "\\x1b]0;owned\\x07" in shown and "\\u001b[2J" in shown


@pytest.mark.parametrize("limit", ["0", "-1", "many"])
def test_a_limit_that_is_none(topics: Command, topic: str, limit: str) -> None:
    assert topics("read", topic, "--limit", limit).code == 2


def test_two_ways_to_name_tags_exclude_each_other(topics: Command, filled: str) -> None:
    said = topics("read", filled, "--tag", "a", "--tag-prefix", "b")
    assert said.code == 2 and "give one of them" in said.err


def test_a_topic_that_is_not_there(topics: Command, filled: str) -> None:
    said = topics("read", f"{filled}-not")
    assert (said.code, said.out) == (3, "")
    assert said.err == (
        f'topics: topic_not_found: topic "{filled}-not" does not exist; `topics topic ls` lists those there are\n'
    )


@pytest.mark.parametrize("form", ["--json", "--no-json"])
def test_a_reader_that_has_enough(server: Served, topic: str, form: str) -> None:
    """`topics read | head`, without the shell."""
    text = "".join(json.dumps("x" * 200) + "\n" for _ in range(3000))
    subprocess.run(
        [sys.executable, "-m", "topics", "write", topic, "--url", server.url],
        input=text,
        text=True,
        check=True,
        capture_output=True,
        cwd=ROOT,
        env=clean_environment(),
    )
    reading = subprocess.Popen(
        [sys.executable, "-m", "topics", "read", topic, form, "--url", server.url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env=clean_environment(),
    )
    assert reading.stdout is not None and reading.stderr is not None
    assert b"xxxx" in reading.stdout.readline()
    reading.stdout.close()
    assert reading.stderr.read() == b""
    reading.stderr.close()
    assert reading.wait(TIMEOUT_S) == 141
