from __future__ import annotations

from tests.cli.rig import Command


def test_producers_are_listed_and_forgotten(topics: Command, topic: str) -> None:
    topics.good("write", topic, "1")
    assert topics.good("producer", "ls", "--topic", topic) == []
    assert "no producers" in topics("producer", "ls", "--topic", topic, "--no-json").out
    said = topics("producer", "forget", "nightly", "--topic", topic)
    assert said.code == 2 and "--yes" in said.err
    (gone,) = topics.good("producer", "forget", "nightly", "--topic", topic, "--yes")
    assert gone == {"producer_id": "nightly", "forgotten": False, "topic": topic}
    said = topics("producer", "forget", "nightly", "--yes", "--no-json")
    assert said.out.strip() == "nightly was not remembered"
    assert topics("producer", "forget", "--yes").code == 2
    assert topics("producer", "ls", "--topic", "nothing").code == 3
