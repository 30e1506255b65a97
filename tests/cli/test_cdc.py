from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

import topics as sdk
from tests.cli.rig import Command


@pytest.fixture
def command(capfd: pytest.CaptureFixture[str]) -> Command:
    """A command line of its own: capturing works on a database, not on a server."""
    return Command(capfd, [])


@pytest.fixture
def chat(tmp_path: Path) -> Iterator[tuple[str, sqlite3.Connection]]:
    connection = sqlite3.connect(tmp_path / "chat.db", isolation_level=None)
    connection.execute("CREATE TABLE messages (id INTEGER PRIMARY KEY, body TEXT)")
    yield str(tmp_path / "chat.db"), connection
    connection.close()


def test_installed_looked_at_pruned_and_removed(command: Command, chat: tuple[str, sqlite3.Connection]) -> None:
    path, writer = chat
    assert command.good("cdc", "status", path) == []
    (made,) = command.good("cdc", "install", path, "--table", "messages")
    assert (made["changed"], made["table"], made["key"]) == (True, "messages", ["id"])
    assert not command.good("cdc", "install", path, "--table", "messages")[0]["changed"]
    writer.executemany("INSERT INTO messages (id) VALUES (?)", [(1,), (2,), (3,)])
    (status,) = command.good("cdc", "status", path)
    assert (status["change_count"], status["last_id"], status["problem"]) == (3, 3, None)
    (pruned,) = command.good("cdc", "prune", path, "--table", "messages", "--upto", 2)
    assert pruned == {"table": "messages", "upto": 2, "removed": 2}
    writer.execute("ALTER TABLE messages ADD COLUMN extra TEXT")
    said = command("cdc", "status", path, "--table", "messages", "--no-json")
    assert said.code == 1 and "topics cdc install" in said.out
    assert command("cdc", "install", path, "--table", "messages", "--no-json").out.strip().endswith("from now on")
    assert command("cdc", "status", path, "--no-json").code == 0
    assert command.good("cdc", "uninstall", path, "--table", "messages") == [{"table": "messages", "removed": True}]
    said = command("cdc", "uninstall", path, "--table", "messages", "--no-json")
    assert (said.code, said.out.strip()) == (0, "messages was not captured")
    assert "topics cdc install" in command("cdc", "status", path, "--no-json").out


def test_prune_asks_the_server_how_far_routes_are(
    topics: Command, command: Command, topic: str, chat: tuple[str, sqlite3.Connection]
) -> None:
    path, writer = chat
    command.good("cdc", "install", path, "--table", "messages")
    writer.executemany("INSERT INTO messages (id) VALUES (?)", [(number,) for number in range(9)])
    topics.good("table", "register", topic, "--sqlite", path, "--source", "messages", "--key", "id")
    for name in (f"{topic}-a", f"{topic}-b"):
        topics.good("sql", "-c", f'CREATE TOPIC "{name}"; ALTER TOPIC "{name}" ADD SOURCE "{topic}" ON INSERT')
    prune = ["cdc", "prune", path, "--table", "messages", "--registered", topic]
    said = topics(*prune)
    assert said.code == 2 and "has not said how far it is" in said.err
    place = topics.where[1]
    client = sdk.sync.open(place) if topics.where[0] == "--dir" else sdk.sync.connect(place)
    with client:
        routes = client.table(topic).state().routes
        progress = tuple(
            sdk.RouteProgress(topic=route.topic, operation="insert", number=route.number, position=f"id {place_id}")
            for route, place_id in zip(routes, (7, 4), strict=True)
        )
        report = sdk.PipelineReport(runner="r", state=sdk.RunState.RUNNING, routes=progress)
        client.pipeline(f"routes:{topic}").report(report)
    assert topics.good(*prune) == [{"table": "messages", "upto": 4, "removed": 4}]


def test_what_cannot_be(command: Command, chat: tuple[str, sqlite3.Connection], tmp_path: Path) -> None:
    path, _ = chat
    said = command("cdc", "install", path, "--table", "nothing")
    assert said.code == 3 and "there are: messages" in said.err
    said = command("cdc", "status", str(tmp_path / "missing.db"))
    assert said.code == 5 and "cannot be opened" in said.err
    said = command("cdc", "install", "postgresql://127.0.0.1:1/x", "--table", "t")
    assert said.code == 5 and "cannot be reached" in said.err
