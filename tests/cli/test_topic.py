from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from msgspec import structs
from rich.console import Console

from tests.cli.rig import Command
from topics import sync
from topics.cli.topic import _partitions_table


def test_a_life(topics: Command, topic: str) -> None:
    (made,) = topics.good("topic", "create", topic, "--ttl-ms", "1h", "--cap-bytes", "64MiB", "--durability", "fsync")
    assert made["created"] and made["config"]["ttl_ms"] == 3_600_000 and made["config"]["cap_bytes"] == 64 << 20
    topics.good("write", topic, 1, 2)
    (listed,) = topics.good("topic", "ls", topic)
    assert (listed["topic"], listed["count"], listed["durability"], listed["head_seq"]) == (topic, 2, "fsync", 2)
    (shown,) = topics.good("topic", "show", topic)
    assert shown["partitions"][0]["count"] == 2 and shown["config"]["durability"] == "fsync"
    (changed,) = topics.good("topic", "config", topic, "--cap-records", "10", "--no-auto-priority", "--priority", "5")
    assert changed["config"]["cap_records"] == 10 and changed["config"]["ttl_ms"] == 3_600_000
    assert (changed["config"]["auto_priority"], changed["config"]["priority"]) == (False, 5)
    (changed,) = topics.good("topic", "config", topic, "--priority", "none")
    assert changed["config"]["priority"] is None
    assert topics.good("topic", "config", topic) == [changed], "without a flag it only shows"
    assert topics.good("topic", "rm", topic, "--yes") == [{"topic": topic, "deleted": True, "routers": []}]
    assert topics.good("topic", "ls", topic) == []


def test_one_that_exists_is_not_touched(topics: Command, topic: str) -> None:
    topics.good("topic", "create", topic, "--cap-records", "7")
    said = topics("topic", "create", topic)
    assert (said.code, said.out) == (4, "")
    assert f"`topics topic config {topic}` changes it" in said.err
    (left,) = topics.good("topic", "create", topic, "--if-missing", "--cap-records", "9")
    assert (left["created"], left["config"]["cap_records"]) == (False, 7)


def test_partitions_are_added_up(topics: Command, topic: str) -> None:
    topics.good("topic", "create", topic, "--partitions", "3")
    for partition in range(3):
        topics.good("write", topic, "1", "--partition", partition)
    (listed,) = topics.good("topic", "ls", topic)
    assert (listed["count"], listed["partitions"], listed["head_seq"]) == (3, 3, None)
    assert [each["head_seq"] for each in topics.good("topic", "show", topic)[0]["partitions"]] == [1, 1, 1]


def test_for_a_person(topics: Command, topic: str) -> None:
    assert topics("topic", "create", topic, "--no-json", "--cap-records", "7").out == f"{topic} is created\n"
    topics.good("write", topic, 1, 2)
    listed = topics("topic", "ls", topic, "--no-json").out
    assert topic in listed and "records" in listed and "│" in listed
    shown = topics("topic", "show", topic, "--no-json").out
    assert "cap_records" in shown and "idempotency_window_ms" in shown
    assert topics("topic", "rm", topic, "--no-json", "--yes").out == f"removed {topic} with 2 records (2 B)\n"
    assert "no topics yet" in topics("topic", "ls", topic, "--no-json").out


@pytest.mark.parametrize(
    ("arguments", "code", "what"),
    [
        (("show", "nobody"), 3, "topic_not_found"),
        (("config", "nobody"), 3, "topic_not_found"),
        (("config", "nobody", "--ttl-ms", "1h"), 3, "topic_not_found"),
        (("rm", "nobody"), 3, "topic_not_found"),
        (("rm",), 2, "rm needs a topic"),
        (("create", "a b"), 2, "is not a topic name"),
        (("create", "t1", "--ttl-ms", "soon"), 2, "--ttl-ms=soon: expected a duration like 1h"),
        (("create", "t1", "--cap-bytes", "1.5B"), 2, "--cap-bytes=1.5B: expected a size like 64MiB"),
        (("create", "t1", "--cap-records", "-1"), 2, "--cap-records=-1: expected a whole number"),
        (("create", "t1", "--priority", "high"), 2, "--priority=high: expected a whole number or none"),
        (("create", "t1", "--durability", "rock"), 2, '"rock"'),
        (("create", "t1", "--partitions", "0"), 2, "partitions must be an integer from 1 to"),
        (("create", "t1", "--dead-letter", "t1"), 2, "dead_letter must be another topic"),
        (("config", "there", "--partitions", "9"), 4, "fixed since its creation"),
        (("create",), 2, "TOPIC"),
        (("frobnicate",), 2, 'Unknown command "frobnicate"'),
    ],
)
def test_what_is_wrong_is_said_in_one_line(topics: Command, arguments: tuple[str, ...], code: int, what: str) -> None:
    topics.good("topic", "create", "there", "--if-missing")
    said = topics("topic", *arguments)
    assert (said.code, said.out) == (code, ""), said
    assert what in said.err
    assert said.err.count("\n") == 1 and said.err.startswith("topics: ")


def test_only_an_empty_one(topics: Command, topic: str) -> None:
    topics.good("write", topic, 1)
    said = topics("topic", "rm", topic, "--if-empty", "--yes")
    assert (said.code, "topic_not_empty" in said.err) == (4, True)
    topics.good("delete", topic, "--before", 2)
    topics.good("topic", "rm", topic, "--if-empty", "--yes")


def test_groups_that_retention_waits_for(topics: Command, topic: str) -> None:
    (made,) = topics.good("topic", "create", topic, "--protect-groups", "billing,audit")
    assert sorted(made["config"]["protect_groups"]) == ["audit", "billing"]
    (changed,) = topics.good("topic", "config", topic, "--protect-groups", "none")
    assert changed["config"]["protect_groups"] == []


def test_a_partition_that_takes_no_writes_says_why(topic: str, tmp_path: Path) -> None:
    with sync.open(tmp_path / "data") as client:
        client.topic(topic).write(1)
        good = client.topic(topic).state()
    why = "/data/wal/1-7.wal: Input/output error"
    console = Console(width=200, file=StringIO(), markup=False)
    console.print(_partitions_table(topic, [good, structs.replace(good, partition=1, stopped=why)]))
    head, first, second = (line for line in console.file.getvalue().splitlines() if "┃" in line or "│" in line)
    assert "takes no writes because" in head and why in second and why not in first


def test_a_topic_is_removed_by_a_script_only_when_it_says_so(topics: Command, topic: str) -> None:
    topics.good("write", topic, "1")
    said = topics("topic", "rm", topic)
    assert said.code == 2 and f"remove {topic} with 1 record" in said.err and "--yes" in said.err
    assert len(topics.good("read", topic)) == 1
    assert topics("topic", "rm", topic, "--if-empty").code == 4
    topics.good("topic", "rm", topic, "--yes")
    topics.good("topic", "create", topic)
    topics.good("topic", "rm", topic, "--if-empty")
