from __future__ import annotations

from typing import Any

from tests.cli.rig import Command
from tests.cli.test_heap import needs_a_server


def dead(topics: Command, topic: str, count: int) -> list[Any]:
    """The dead letters of a heap in which so many messages failed."""
    needs_a_server(topics)
    topics.good("heap", "create", topic, "--max-retries", "0")
    topics.good("heap", "push", topic, *(str(number) for number in range(count)))
    for message in topics.good("heap", "pop", topic, "--max", count):
        topics.good("heap", "nack", topic, message["lease_token"], "--reason", f"no {message['payload_json']}")
    while len(found := topics.good("dlq", "ls", topic)) < count:
        pass
    return found


def test_dead_letters_are_listed_shown_and_replayed(topics: Command, topic: str) -> None:
    first, second = dead(topics, topic, 2)
    assert (first["payload_json"], first["attempts"], first["dlq_topic"]) == (0, 1, f"{topic}.dlq")
    assert topics("dlq", "ls", topic, "--ids").out.split() == [first["message_id"], second["message_id"]]
    shown = topics("dlq", "show", topic, second["message_id"], "--no-json").out
    assert "failed by topics-heap: no 1" in shown
    (done,) = topics.good("dlq", "replay", topic, second["message_id"])
    assert done["done_count"] == 1
    assert [message["payload_json"] for message in topics.good("heap", "pop", topic)] == [1]
    stopped = topics("dlq", "ls", topic, "--limit", "0", "--no-json")
    assert "stopped after 0 dead letters" in stopped.err


def test_dead_letters_are_deleted_for_good(topics: Command, topic: str) -> None:
    dead(topics, topic, 2)
    (done,) = topics.good("dlq", "rm", topic, "--limit", "1", "--yes")
    assert done["done_count"] == 1
    said = topics("dlq", "rm", topic, "--yes", "--no-json")
    assert said.out.strip() == "1 dead letter deleted"
    assert "there are none" in topics("dlq", "ls", topic, "--no-json").err


def test_for_people(topics: Command, topic: str) -> None:
    (letter,) = dead(topics, topic, 1)
    shown = topics("dlq", "ls", topic, "--no-json").out
    assert shown.startswith(f"{letter['message_id']} priority 0, died ") and shown.endswith(" of max_retries  0\n")
    assert topics("dlq", "replay", topic, "--no-json").out.strip() == "1 dead letter replayed"
