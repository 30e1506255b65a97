from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.cli.rig import TIMEOUT_S, Command, Following, running
from tests.e2e.served import Served
from topics.cli import tail


@contextmanager
def following(*arguments: str) -> Iterator[Following]:
    with running("tail", "-f", *arguments) as tail:
        yield tail


@pytest.fixture
def remote(capfd: pytest.CaptureFixture[str], server: Served) -> Command:
    return Command(capfd, ["--url", server.url])


def data(topics: Command, *arguments: str | int) -> list[object]:
    return [event.get("data", event.get("reason")) for event in topics.good("tail", *arguments)]


def test_the_last_ones(topics: Command, topic: str) -> None:
    topics.good("write", topic, *range(1, 21))
    assert data(topics, topic) == list(range(11, 21))
    assert data(topics, topic, "-n", 2) == [19, 20]
    assert data(topics, topic, "-n", 0) == []
    assert data(topics, topic, "-n", 100) == list(range(1, 21))
    assert data(topics, topic, "--after", 18) == [19, 20]
    assert topics.good("tail", topic, "-n", 1)[0].keys() == {"topic", "$seq", "$ts", "data"}


def test_the_last_ones_are_found_behind_many_deleted_ones(topics: Command, topic: str) -> None:
    topics.good("write", topic, 1, 2, 3, "--tag", "keep")
    topics.good("write", topic, *range(4, 60), "--tag", "drop")
    topics.good("delete", topic, "--tag", "drop")
    assert data(topics, topic, "-n", 2) == [2, 3]
    assert data(topics, topic, "-n", 2, "--tag", "keep") == [2, 3]
    assert data(topics, topic, "-n", 2, "--tag", "nobody") == []


def test_what_a_cap_has_taken_is_no_news_to_who_wants_the_last(topics: Command, topic: str) -> None:
    topics.good("topic", "create", topic, "--cap-records", 3)
    topics.good("write", topic, *range(10))
    assert data(topics, topic) == [7, 8, 9]
    assert data(topics, topic, "--after", 0) == ["cap", 7, 8, 9], "but to who asked for all of them it is"


def test_several_topics_and_partitions(topics: Command, topic: str) -> None:
    topics.good("topic", "create", topic, "--partitions", 2)
    topics.good("write", topic, "0", "--partition", 0)
    topics.good("write", topic, "1", "--partition", 1)
    topics.good("write", f"{topic}-b", "2")
    found = topics.good("tail", topic, f"{topic}-b", topic)
    assert [(each["topic"], each.get("partition"), each["data"]) for each in found] == [
        (topic, 0, 0),
        (topic, 1, 1),
        (f"{topic}-b", None, 2),
    ]
    shown = topics("tail", topic, f"{topic}-b", "--no-json").out
    assert f"{topic}/1  1  1" in shown and f"{topic}-b  1  2" in shown


def test_a_wildcard_is_every_topic_that_begins_like_that(topics: Command, topic: str) -> None:
    topics.good("topic", "create", f"{topic}:a", "--partitions", 2)
    topics.good("write", f"{topic}:a", "0", "--partition", 0)
    topics.good("write", f"{topic}:a", "1", "--partition", 1)
    topics.good("write", f"{topic}:b", "2", "3")
    topics.good("write", f"{topic}-c", "4")
    found = topics.good("tail", f"{topic}:*", f"{topic}:b", "-n", 1)
    assert [(each["topic"], each.get("partition"), each["data"]) for each in found] == [
        (f"{topic}:a", 0, 0),
        (f"{topic}:a", 1, 1),
        (f"{topic}:b", None, 3),
    ]
    shown = topics("tail", f"{topic}:b*", "-n", 1, "--no-json").out
    assert f"{topic}:b  2  3" in shown, "who it was matters also when it is one"


def test_a_time_to_begin_at(topics: Command, topic: str) -> None:
    topics.good("write", topic, *range(1, 21))
    assert data(topics, topic, "--since", "10m") == list(range(1, 21)), "all of them, and not the last ten"
    stamp = datetime.fromtimestamp(topics.good("tail", topic, "-n", 1)[0]["$ts"] / 1000, UTC)
    assert data(topics, topic, "--since", stamp.isoformat()) == list(range(1, 21))
    while (moment := datetime.now(UTC)) < stamp + timedelta(milliseconds=1):
        pass
    assert data(topics, topic, "--since", moment.isoformat()) == []
    assert data(topics, topic + "*", "--since", "1h")[:2] == [1, 2]


@pytest.mark.parametrize(
    ("arguments", "code", "what"),
    [
        ((), 2, "name one or several"),
        (("t", "-n", "-1"), 2, "--lines must be 0 to 100000, not -1"),
        (("t", "-n", "x"), 2, 'Invalid value for -n: unable to convert "x" into int'),
        (("t", "--after", "-1"), 2, "from_seq"),
        (("t", "--since", "soon"), 2, "--since=soon: expected so long ago, like 30s, 10m or 2h"),
        (("t", "--since", "10m", "--after", "1"), 2, "--after and --since both say where to begin"),
        (("t*", "--after", "1"), 2, "--after is a seq of one topic"),
        (("t*", "--partition", "0"), 2, "--partition is one of a topic"),
        (("nothing-begins-like-this*",), 3, "no topic begins like nothing-begins-like-this*"),
        (("nobody-wrote-this", "-f"), 3, "does not exist"),
    ],
)
def test_what_cannot_be_meant_is_refused(topics: Command, arguments: tuple[str, ...], code: int, what: str) -> None:
    topics.good("write", "t", "1")
    said = topics("tail", *arguments)
    assert (said.code, said.out) == (code, "")
    assert what in said.err and said.err.count("\n") == 1


def test_following_shows_what_comes_and_ends_with_a_signal(remote: Command, server: Served, topic: str) -> None:
    remote.good("write", topic, 1, 2, 3)
    remote.good("topic", "create", f"{topic}-b", "--cap-records", 2)
    with following(topic, f"{topic}-b", "-n", "1", "--url", server.url) as tail:
        assert tail.event()["data"] == 3
        remote.good("write", f"{topic}-b", 4)
        event = tail.event()
        assert (event["topic"], event["data"]) == (f"{topic}-b", 4)
        remote.good("write", topic, 5)
        assert tail.event()["data"] == 5
        assert tail.end(signal.SIGINT) == 130
        assert tail.note() == "topics: interrupted: stopped by Ctrl-C\n"


def test_following_a_wildcard_takes_in_what_is_made_later(remote: Command, server: Served, topic: str) -> None:
    with following(f"{topic}:*", "--url", server.url) as tail:
        assert tail.note() == f"no topic begins like {topic}:* yet; waiting for one\n"
        remote.good("write", f"{topic}:a", 1)
        event = tail.event()
        assert (event["topic"], event["$seq"], event["data"]) == (f"{topic}:a", 1, 1)
        remote.good("topic", "create", f"{topic}:b", "--partitions", 2)
        remote.good("write", f"{topic}:b", 2, "--partition", 1)
        event = tail.event()
        assert (event["topic"], event["partition"], event["data"]) == (f"{topic}:b", 1, 2)
        remote.good("topic", "rm", f"{topic}:a", "--yes")
        assert tail.note() == f'topic "{topic}:a" was deleted; the others go on\n'
        remote.good("write", f"{topic}:a", 3)
        event = tail.event()
        assert (event["topic"], event["data"]) == (f"{topic}:a", 3), "the name is taken again"
        for letter, rest in (("a", "the others go on"), ("b", "waiting for others")):
            remote.good("topic", "rm", f"{topic}:{letter}", "--yes")
            assert tail.note() == f'topic "{topic}:{letter}" was deleted; {rest}\n'
        remote.good("write", f"{topic}:c", 4)
        assert tail.event()["data"] == 4
        assert tail.end(signal.SIGINT) == 130


def test_following_goes_on_behind_what_was_printed(remote: Command, server: Served, topic: str) -> None:
    remote.good("topic", "create", f"{topic}:a", "--partitions", 2)
    for partition in (0, 1):
        remote.good("write", f"{topic}:a", 1, 2, "--partition", partition)
    remote.good("write", f"{topic}:b", 1, 2)
    places = [(f"{topic}:a", 0), (f"{topic}:a", 1), (f"{topic}:b", None)]
    with following(f"{topic}:*", f"{topic}:b", "-n", "1", "--url", server.url) as tail:
        seen = [tail.event() for _ in range(3)]
        assert [(each["topic"], each.get("partition"), each["data"]) for each in seen] == [
            (*each, 2) for each in places
        ]
        for name, partition in places:
            remote.good("write", name, 3, "--partition", partition or 0)
            event = tail.event()
            assert (event["topic"], event.get("partition"), event["data"]) == (name, partition, 3)


def test_following_from_a_time(remote: Command, server: Served, topic: str) -> None:
    remote.good("write", topic, *range(1, 21))
    with following(topic, "--since", "1h", "--url", server.url) as tail:
        assert [tail.event()["data"] for _ in range(20)] == list(range(1, 21))
        remote.good("write", topic, 21)
        assert tail.event()["data"] == 21


def test_sigterm_ends_it_cleanly_too(remote: Command, server: Served, topic: str) -> None:
    remote.good("write", topic, 1)
    with following(topic, "--url", server.url) as tail:
        assert tail.event()["data"] == 1
        assert tail.end(signal.SIGTERM) == 143
        assert tail.note() == "topics: terminated: stopped by SIGTERM\n"


def test_a_directory_can_be_followed(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    local = Command(capfd, ["--dir", str(tmp_path / "data")])
    local.good("write", "orders", 1)
    with following("orders", "--dir", str(tmp_path / "data")) as tail:
        assert tail.event()["data"] == 1
        said = local("write", "orders", 2)
        assert (said.code, "directory_locked" in said.err) == (2, True)
        assert tail.end(signal.SIGINT) == 130
    assert local.good("write", "orders", 2)[0]["first_seq"] == 2, "it has let go of the directory"


def test_a_gap_is_a_line_of_its_own(remote: Command, server: Served, topic: str) -> None:
    remote.good("topic", "create", topic, "--cap-records", 2)
    remote.good("write", topic, *range(5))
    with following(topic, "--after", "0", "--url", server.url) as tail:
        assert tail.event() == {"topic": topic, "gap_from": 1, "gap_to": 3, "reason": "cap"}
        assert [tail.event()["data"] for _ in range(2)] == [3, 4]


def test_a_topic_that_is_dropped_does_not_end_the_others(remote: Command, server: Served, topic: str) -> None:
    remote.good("write", topic, 1)
    remote.good("write", f"{topic}-b", 2)
    with following(topic, f"{topic}-b", "--url", server.url) as tail:
        assert [tail.event()["data"] for _ in range(2)] == [1, 2]
        remote.good("topic", "rm", topic, "--yes")
        assert tail.note() == f'topic "{topic}" was deleted; the others go on\n'
        remote.good("write", f"{topic}-b", 3)
        assert tail.event()["data"] == 3
        remote.good("topic", "rm", f"{topic}-b", "--yes")
        assert tail.process.wait(TIMEOUT_S) == 3
        assert "topic_not_found" in tail.note()


def test_a_topic_that_goes_while_it_is_looked_at(
    remote: Command, server: Served, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that a wildcard found is left out; one that was named is missed."""
    find = tail._Part.find

    async def too_late(part: tail._Part, follow: bool) -> None:
        if part.topic.name.endswith("-gone"):
            await part.topic.drop()
        await find(part, follow)

    monkeypatch.setattr(tail._Part, "find", too_late)
    for name in ("a", "gone", "z"):
        remote.good("write", f"{topic}-{name}", f'"{name}"')
    assert [record["data"] for record in remote.good("tail", f"{topic}-*")] == ["a", "z"]
    remote.good("write", f"{topic}-gone", "1")
    said = remote("tail", f"{topic}-gone", f"{topic}-z")
    assert (said.code, said.out) == (3, "") and f'"{topic}-gone" does not exist' in said.err
