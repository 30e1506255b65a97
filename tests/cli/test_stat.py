from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.cli.rig import Command
from tests.cli.standin import standing_in
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


def test_none_of_the_largest(bare: Command, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    Command(capfd, ["--dir", str(tmp_path / "data")]).good("write", "a", "1")
    shown = bare("stat", "-n", "0", "--no-json", "--dir", tmp_path / "data").out
    assert shown.splitlines()[-1] == "0 of 1 topics; `topics topic ls` lists all" and "│" not in shown
    said = bare("stat", "-n", "-1", "--dir", tmp_path / "data")
    assert said.code == 2 and "--limit must be 0 or more, not -1" in said.err


@pytest.mark.parametrize(
    ("status", "fields", "why"),
    [
        (
            503,
            {"error": {"code": "not_ready", "message": "it recovers, 40 % done"}},
            "it recovers, 40 % done; try again",
        ),
        (502, {}, "it answers 502"),
    ],
)
def test_a_server_that_is_not_ready(bare: Command, status: int, fields: dict[str, object], why: str) -> None:
    with standing_in({"/v0/ready": (status, fields)}) as url:
        said = bare("stat", "--url", url)
    assert (said.code, said.out) == (5, "") and f"{url} is not ready: {why}" in said.err


def test_trouble_stands_out_and_what_is_not_told_is_left_out(bare: Command) -> None:
    answers: dict[str, tuple[int, object]] = {
        "/v0/ready": (200, {"topics": 0}),
        "/v0/health": (200, {"version": "1.0"}),
        "/v0/metrics": (200, {"topics_routers": 3, "topics_routers_stalled": 2, "topics_wal_read_only": 1}),
        "/v0/topics": (200, {"topics": []}),
    }
    with standing_in(answers) as url:
        said = bare("stat", "--url", url, "--no-json")
    shown = {line.partition("  ")[0]: line.partition("  ")[2].strip() for line in said.out.splitlines()}
    assert shown["routers stalled"] == "2: `topics router ls` says what holds them up"
    assert shown["read only"].startswith("yes: a disk failed") and "uptime" not in shown
