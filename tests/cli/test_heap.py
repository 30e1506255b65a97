from __future__ import annotations

import pytest

from tests.cli.rig import Command
from tests.cli.standin import somebody_says


def needs_a_server(topics: Command) -> None:
    """A command that opens a directory closes it, too, and with that its leases go back."""
    if "--dir" in topics.where:
        pytest.skip("leases end with the command")


def test_messages_are_pushed_popped_acked_and_given_back_by_hand(topics: Command, topic: str) -> None:
    needs_a_server(topics)
    (made,) = topics.good("heap", "create", topic, "--mode", "max", "--partitions", "2", "--lease", "1min")
    assert (made["heap"], made["mode"], made["partitions"], made["visibility_timeout_ms"]) == (topic, "max", 2, 60_000)
    topics.good("heap", "push", topic, '"low"', "--priority", "1")
    (high,) = topics.good("heap", "push", topic, '{"n": 1}', "-p", "5", "--transaction-id", "t")
    (again,) = topics.good("heap", "push", topic, '{"n": 1}', "-p", "5", "--transaction-id", "t")
    assert again["message_id"] == high["message_id"]
    first, second = topics.good("heap", "pop", topic, "--max", "5")
    assert (first["payload_json"], first["priority"], second["payload_json"]) == ({"n": 1}, 5, "low")
    (done,) = topics.good("heap", "ack", topic, first["lease_token"])
    assert done["acked"] == 1
    assert topics("heap", "ack", topic, first["lease_token"]).code == 1, "it is done"
    (back,) = topics.good("heap", "nack", topic, second["lease_token"], "--backoff", "1h", "--reason", "later")
    assert (back["nacked"], back["dead_lettered"]) == (1, 0)
    (state,) = topics.good("heap", "show", topic)
    assert (state["ready_messages"], state["delayed_messages"], state["total_acks"]) == (0, 1, 1)
    said = topics("heap", "pop", topic, "--no-json")
    assert (said.code, said.out, said.err.strip()) == (0, "", "there is nothing to do")


def test_messages_are_looked_at_moved_and_taken_back(topics: Command, topic: str) -> None:
    topics.good("heap", "create", topic)
    topics.good("heap", "push", topic, "1", "2", "3")
    ids = topics("heap", "peek", topic, "--ids").out.split()
    assert len(ids) == 3
    (moved,) = topics.good("heap", "reprioritize", topic, ids[2], "-4")
    assert (moved["priority"], moved["previous_priority"]) == (-4, 0)
    topics.good("heap", "cancel", topic, ids[0])
    assert [message["payload_json"] for message in topics.good("heap", "peek", topic)] == [3, 2]
    shown = topics("heap", "peek", topic, "--limit", "1", "--no-json")
    assert "priority -4, ready  3" in shown.out and "there are more" in shown.err
    missing = topics("heap", "cancel", topic, ids[0])
    assert missing.code == 3 and "does not exist" in missing.err
    (purged,) = topics.good("heap", "purge", topic, "--yes")
    assert purged["purged"] == 2
    topics.good("heap", "rm", topic, "--yes")
    assert topics("heap", "show", topic).code == 3


def test_heaps_are_listed_and_other_topics_are_not(topics: Command, topic: str) -> None:
    topic = topic[-8:]
    for name in ("b", "a"):
        topics.good("heap", "create", f"{topic}-{name}")
    topics.good("write", f"{topic}-log", "1")
    assert [heap["heap"] for heap in topics.good("heap", "ls", topic)] == [f"{topic}-a", f"{topic}-b"]
    table = topics("heap", "ls", topic, "--no-json").out
    assert f"{topic}-b" in table and f"{topic}-log" not in table
    assert "no heaps yet" in topics("heap", "ls", "none-of-these", "--no-json").out


def test_a_heap_is_legible_in_a_narrow_terminal(topics: Command, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    topics.good("heap", "create", topic, "--mode", "max", "--lease", "90s")
    topics.good("heap", "push", topic, "1", "2")
    shown = topics("heap", "show", topic, "--no-json").out
    said = " ".join(shown.split())
    for line in ("mode max: highest first ", "ready 2 ", "in flight 0 ", "lease 90 s ", "max payload 1 MiB "):
        assert line in said
    assert f"{topic}.dlq" in said.replace(" ", "") and "dead letters stay for ever enqueued 2 popped 0 " in said
    listed = topics("heap", "ls", topic, "--no-json").out
    for head in ("heap", "mode", "partitions", "ready", "in flight", "delayed", "dead"):
        assert f" {head} " in listed.splitlines()[1]
    assert all(len(line) <= 80 for line in (shown + listed).splitlines())


def test_what_cannot_be_is_said(topics: Command, topic: str) -> None:
    topics.good("write", topic, "1")
    said = topics("heap", "push", topic, "1")
    assert said.code != 0 and "heap" in said.err
    assert topics("heap", "push", "missing", "1").code == 3
    nothing = topics("heap", "push", topic)
    assert nothing.code == 2 and "give a payload" in nothing.err


def test_a_directory_takes_its_leases_back(topics: Command, topic: str) -> None:
    if "--dir" not in topics.where:
        pytest.skip("a server keeps them")
    topics.good("heap", "create", topic)
    topics.good("heap", "push", topic, "1")
    said = topics("heap", "pop", topic)
    assert said.lines[0]["payload_json"] == 1 and "use --ack" in said.err
    assert topics.good("heap", "pop", topic, "--ack")[0]["attempts"] == 0
    assert topics.good("heap", "peek", topic) == []


def test_a_heap_that_is_not_there_can_be_made(topics: Command, topic: str) -> None:
    topics.good("heap", "create", topic)
    missing = topics("heap", "pop", f"{topic}-nope")
    assert missing.code == 3 and "`topics heap create NAME` makes one" in missing.err
    assert "`topics heap ls` lists" in topics("dlq", "ls", f"{topic}-nope").err
    topics.good("write", f"{topic}-log", "1")
    other = topics("heap", "pop", f"{topic}-log")
    assert other.code == 4 and "`topics heap create NAME` makes one" in other.err


def test_a_heap_is_made_as_it_was_told(topics: Command, topic: str) -> None:
    flags = ("--max-retries", "7", "--max-payload-bytes", "10")
    (made,) = topics.good("heap", "create", topic, *flags)
    assert (made["max_retries"], made["dlq_topic"]) == (7, f"{topic}.dlq")
    said = topics("heap", "push", topic, '"more than ten bytes"')
    assert said.code == 2 and "payload" in said.err and "10" in said.err
    (never,) = topics.good("heap", "create", f"{topic}-b", "--no-dead-letters")
    assert not never["dlq_topic"]
    copied = topics("heap", "create", f"{topic}-c", "--no-json")
    assert copied.out.strip() == f"made {topic}-c: the lowest priority first"


def test_for_people(topics: Command, topic: str) -> None:
    topics.good("heap", "create", topic)
    assert "there is nothing in it" in topics("heap", "peek", topic, "--no-json").err
    pushed = topics("heap", "push", topic, '"a"', '"[/b]"', "--transaction-id", "t", "--no-json").out.split()
    assert [len(each) for each in pushed] == [26, 26]
    again = topics("heap", "push", topic, '"a"', '"[/b]"', "--transaction-id", "t", "--no-json").out.splitlines()
    assert again == [f"{each} was there" for each in pushed]
    shown = topics("heap", "peek", topic, "--no-json")
    assert '"[/b]"' in shown.out and shown.err == ""
    moved = topics("heap", "reprioritize", topic, pushed[0], "9", "--no-json").out
    assert moved.strip() == f"{pushed[0]} has priority 9, had 0"
    popped = topics("heap", "pop", topic, "--no-json", "--ack")
    assert popped.code == 0 and popped.out.startswith(f"{pushed[1]} priority 0, lease ") and "until" in popped.out
    assert topics("heap", "cancel", topic, pushed[0], "--no-json").out.strip() == f"{pushed[0]} is gone"


def test_leases_that_are_gone_are_counted(topics: Command, topic: str) -> None:
    needs_a_server(topics)
    topics.good("heap", "create", topic)
    topics.good("heap", "push", topic, "1", "2")
    one, two = (message["lease_token"] for message in topics.good("heap", "pop", topic, "--max", "2"))
    assert topics("heap", "ack", topic, one, "--no-json").out.strip() == "1 message done"
    for command, done in (("ack", "1 message done"), ("nack", "0 messages given back")):
        said = topics("heap", command, topic, one, two, "--no-json")
        lost = 1 if command == "ack" else 2
        assert (said.code, said.out.strip()) == (1, f"{done}; the leases of {lost} were gone")


def test_whoever_says_no_keeps_everything(topics: Command, topic: str) -> None:
    topics.good("heap", "create", topic)
    topics.good("heap", "push", topic, "1")
    with somebody_says("n\n"):
        said = topics("heap", "purge", topic)
    assert said.code == 1 and f"Delete up to 1 message of {topic} for good? [y/N]" in said.err
    assert f"{topic} stays as it is" in said.err
    with somebody_says(""):
        said = topics("heap", "rm", topic)
    assert said.code == 1 and f"Remove {topic} with 1 message for good? [y/N]" in said.err
    assert f"{topic} is not removed" in said.err
    with somebody_says("\n"):
        said = topics("dlq", "rm", topic)
    assert said.code == 1 and f"Delete the dead letters of {topic} for good? [y/N]" in said.err
    assert "they stay" in said.err
    assert [message["payload_json"] for message in topics.good("heap", "peek", topic)] == [1]


def test_what_is_stored_and_not_done_is_said(topics: Command, topic: str) -> None:
    topics.good("topic", "create", topic, "--type", "heap", "--replication-factor", "3")
    said = topics("heap", "show", topic)
    assert said.code == 0 and said.lines[0]["warnings"] == [said.err.strip()]
    assert said.err == "replication_factor 3 is stored; one machine keeps one copy\n"
