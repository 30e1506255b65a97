"""Listings that add up partitions, beside somebody who drops topics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.rig import Command
from topics import errors
from topics.client import Queue, Topic
from topics.client.transport import Transport

Meanwhile = Callable[[Transport, str], Any]


async def drop(transport: Transport, topic: str) -> None:
    await transport.drop(topic, if_empty=False)


async def make_again(transport: Transport, topic: str) -> None:
    await transport.drop(topic, if_empty=False)
    await transport.configure(topic, {"type": "queue"}, merge=False)


async def make_another(transport: Transport, topic: str) -> None:
    await transport.drop(topic, if_empty=False)
    await transport.configure(topic, {}, merge=False)


async def refuse(transport: Transport, topic: str) -> None:
    raise errors.InvalidRequest("not like this")


@pytest.fixture
def doomed(topics: Command, topic: str) -> str:
    """A queue of three partitions, with another behind it."""
    for name in ("-b", "-c"):
        topics.good("topic", "create", topic + name, "--type", "queue", "--partitions", 3)
    return f"{topic}-b"


def between_partitions(monkeypatch: pytest.MonkeyPatch, doomed: str, meanwhile: Meanwhile) -> None:
    """Do something when the second partition is looked at, before it is."""
    done: list[str] = []

    for kind in (Topic, Queue):
        look = kind.state

        async def state(self: Any, *, partition: int = 0, touch: bool = True, look: Any = look) -> Any:
            if (self.name, partition) == (doomed, 1) and not done:
                done.append(doomed)
                await meanwhile(self._transport, doomed)
            return await look(self, partition=partition, touch=touch)

        monkeypatch.setattr(kind, "state", state)


@pytest.mark.parametrize(("command", "name"), [("topic", "topic"), ("queue", "queue")])
def test_what_is_gone_is_left_out(
    topics: Command, topic: str, doomed: str, monkeypatch: pytest.MonkeyPatch, command: str, name: str
) -> None:
    between_partitions(monkeypatch, doomed, drop)
    assert [each[name] for each in topics.good(command, "ls", topic)] == [f"{topic}-c"]


def test_what_is_made_again_with_fewer_partitions_is_listed_as_it_is(
    topics: Command, topic: str, doomed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    between_partitions(monkeypatch, doomed, make_again)
    listed = topics.good("topic", "ls", topic)
    assert [(each["topic"], each["partitions"]) for each in listed] == [(doomed, 1), (f"{topic}-c", 3)]


def test_what_is_made_again_as_something_else_is_no_queue(
    topics: Command, topic: str, doomed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    between_partitions(monkeypatch, doomed, make_another)
    assert [each["queue"] for each in topics.good("queue", "ls", topic)] == [f"{topic}-c"]


def test_what_is_refused_for_another_reason_is_told(
    topics: Command, topic: str, doomed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    between_partitions(monkeypatch, doomed, refuse)
    said = topics("topic", "ls", topic)
    assert said.code != 0 and "not like this" in said.err


def test_a_glance_is_at_what_is_there(topics: Command, doomed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    between_partitions(monkeypatch, doomed, drop)
    (told,) = topics.good("stat", "--limit", 1000)
    assert doomed not in [each["topic"] for each in told["largest"]]


def test_who_asks_for_one_is_told_that_it_is_gone(
    topics: Command, doomed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    between_partitions(monkeypatch, doomed, drop)
    said = topics("queue", "show", doomed)
    assert said.code != 0 and errors.TopicNotFound.code in said.err
