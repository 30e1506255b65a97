from __future__ import annotations

import threading

import pytest

from tests.cli.rig import Command
from topics import sync


def filled(topics: Command, topic: str, *flags: str) -> None:
    topics.good("topic", "create", topic, *flags)
    topics.good("write", topic, "1", "2", "3", "4", "--tag", "a")


def test_records_are_consumed_and_acked_by_hand(topics: Command, topic: str) -> None:
    filled(topics, topic)
    one, two = topics.good("group", "consume", topic, "billing", "--limit", "2", "--visibility", "1h")
    assert (one["$seq"], one["data"], one["$tag"]) == (1, 1, "a")
    (done,) = topics.good("group", "ack", topic, "billing", str(two["$seq"]))
    assert (done["acked"], done["committed_seq"], done["head_seq"]) == (2, 2, 4)
    (state,) = topics.good("group", "show", topic, "billing")
    assert (state["committed_seq"], state["lag"], state["in_flight"]) == (2, 2, 0)
    assert len(topics.good("group", "consume", topic, "billing", "--ack")) == 2
    (state,) = topics.good("group", "ls", topic)
    assert state["committed_seq"] == 4
    said = topics("group", "consume", topic, "billing", "--no-json")
    assert (said.out, said.err.strip()) == ("", "there is nothing new")


def test_what_is_not_acked_says_until_when_it_is_yours(topics: Command, topic: str) -> None:
    filled(topics, topic)
    said = topics("group", "consume", topic, "g", "-n", "1", "--no-json", "--consumer", "me")
    assert said.code == 0 and f"`topics group ack {topic} g 1` when they are done" in said.err
    shown = topics("group", "show", topic, "g", "--no-json").out
    assert "1..1 claimed by me until" in shown


def test_groups_are_listed(topics: Command, topic: str) -> None:
    filled(topics, topic)
    assert topics.good("group", "ls", topic) == []
    assert "has no groups yet" in topics("group", "ls", topic, "--no-json").out
    topics.good("group", "consume", topic, "b", "--from", "latest")
    topics.good("group", "consume", topic, "a")
    first, second = topics.good("group", "ls", topic)
    assert (first["group"], first["lag"], second["group"], second["lag"]) == ("a", 4, "b", 0)
    assert "in flight" in topics("group", "ls", topic, "--no-json").out


def test_a_group_is_moved_paused_and_dropped(topics: Command, topic: str) -> None:
    filled(topics, topic)
    (placed,) = topics.good("group", "reset", topic, "g", "--to", "3")
    assert (placed["created"], placed["committed_seq"]) == (True, 2)
    (placed,) = topics.good("group", "reset", topic, "g", "--to", "1h")
    assert placed["committed_seq"] == 0
    said = topics("group", "pause", topic, "g", "--no-json")
    assert (said.code, said.out.strip()) == (0, "g is paused")
    assert topics.good("group", "consume", topic, "g") == []
    said = topics("group", "consume", topic, "g", "--no-json")
    assert (said.code, said.out) == (0, "") and "is paused" in said.err
    topics.good("group", "resume", topic, "g")
    assert len(topics.good("group", "consume", topic, "g")) == 4
    (gone,) = topics.good("group", "rm", topic, "g")
    assert gone["deleted"] is True
    assert "there was no group g" in topics("group", "rm", topic, "g", "--no-json").out
    assert topics("group", "show", topic, "g").code == 3


def test_a_reset_is_of_all_partitions_unless_one_is_named(topics: Command, topic: str) -> None:
    topics.good("topic", "create", topic, "--partitions", "2")
    topics.good("write", topic, "1", "--partition", "1")
    assert len(topics.good("group", "reset", topic, "g", "--to", "latest")) == 2
    (placed,) = topics.good("group", "reset", topic, "g", "--to", "1", "--partition", "1")
    assert (placed["partition"], placed["committed_seq"]) == (1, 0)
    assert [record["data"] for record in topics.good("group", "consume", topic, "g", "-n", "1")] == [1]
    topics.good("group", "reset", topic, "g", "--to", "1", "--partition", "1")
    said = topics("group", "consume", topic, "g", "--no-json")
    assert f"`topics group ack {topic} g 1 --partition 1`" in said.err


def test_what_was_lost_is_said(topics: Command, topic: str) -> None:
    filled(topics, topic, "--cap-records", "2")
    topics.good("group", "reset", topic, "g", "--to", "1")
    said = topics("group", "consume", topic, "g", "--no-json")
    assert "gap: 1 to 2 lost before they were read" in said.out
    topics.good("group", "reset", topic, "g", "--to", "1")
    gap, *_ = topics.good("group", "consume", topic, "g")
    assert gap == {"gap_from": 1, "gap_to": 2, "reason": "cap"}
    assert "nobody has acked to know" in topics("group", "show", topic, "g", "--no-json").out


def test_what_is_no_position_is_refused(topics: Command, topic: str) -> None:
    filled(topics, topic)
    said = topics("group", "consume", topic, "g", "--from", "never")
    assert said.code == 2 and "--from=never: expected earliest, latest, a seq" in said.err
    assert topics("group", "ack", "missing", "g", "1").code == 3
    assert topics("group", "ls", "missing").code == 3


def test_following_prints_and_acks_what_comes(topics: Command, topic: str) -> None:
    """Until the topic is gone, which somebody sees to when all is acked."""
    if "--dir" in topics.where:
        pytest.skip("nobody else can have the directory open")
    filled(topics, topic)

    def drop() -> None:
        with sync.connect(topics.where[1]) as client:
            one = client.topic(topic)
            while not (groups := one.groups()) or groups[0].committed_seq < 4:
                pass
            one.drop()

    thread = threading.Thread(target=drop)
    thread.start()
    said = topics("group", "consume", topic, "g", "--follow", "--limit", "3")
    thread.join()
    assert said.code == 3 and said.err.startswith("topics: topic_not_found: ")
    assert [record["data"] for record in said.lines] == [1, 2, 3, 4]
