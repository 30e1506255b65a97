from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.cli.rig import Command
from tests.e2e.served import Served, served


@pytest.fixture
def bare(capfd: pytest.CaptureFixture[str]) -> Command:
    return Command(capfd, [])


def test_at_a_glance(topics: Command, topic: str) -> None:
    topics.good("topic", "create", topic, "--partitions", "2")
    topics.good("write", topic, '"large enough to be among the largest of all topics that tests have made"')
    (said,) = topics.good("stat", "-n", "100")
    assert said["topics"] >= 1 and said["count"] >= 1 and said["bytes"] > 0
    (ours,) = [each for each in said["largest"] if each["topic"] == topic]
    assert (ours["count"], ours["partitions"]) == (1, 2)
    sizes = [each["bytes"] for each in said["largest"]]
    assert sizes == sorted(sizes, reverse=True)
    shown = topics("stat", "--no-json", "-n", "1").out
    assert "records" in shown and "│" in shown


def test_a_server_tells_of_itself(bare: Command, server: Served) -> None:
    (said,) = bare.good("stat", "--url", server.url)
    assert said["url"] == server.url and said["version"] and said["uptime_ms"] > 0 and not said["read_only"]
    shown = bare("stat", "--url", server.url, "--no-json").out
    assert server.url in shown and "uptime" in shown and "answers in" in shown


def test_a_directory_tells_of_itself(bare: Command, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    Command(capfd, ["--dir", str(tmp_path / "data")]).good("write", "a", "1", "2")
    (said,) = bare.good("stat", "--dir", tmp_path / "data")
    assert (said["topics"], said["count"], said["bytes"]) == (1, 2, 2)
    assert said["free_bytes"] > said["disk_bytes"] > 0
    assert bare("stat", "--dir", tmp_path / "nowhere").code == 3


def test_who_is_not_there_and_who_may_not(bare: Command, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    said = bare("stat", "--url", f"http://127.0.0.1:{port}")
    assert said.code == 5 and "cannot be reached: Connection refused; `topics serve` starts one" in said.err
    with served(tmp_path / "data", variables={"TOPICS_API_KEYS": "a-secret:read,other-secret:write"}) as running:
        assert bare("stat", "--url", running.url).code == 4
        said = bare("stat", "--url", running.url, "--key", "other-secret")
        assert said.code == 4 and "secret" not in said.err
        assert bare("stat", "--url", running.url, "--key", "a-secret").code == 0
