"""What all commands that follow have in common: when nobody reads any more they end, and a server is waited for."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.rig import ROOT, TIMEOUT_S, Command, clean_environment, running
from tests.e2e.served import Served, served


@pytest.mark.parametrize(
    "command", ["tail -f {topic}", "group consume -f {topic} readers", "audit tail -f -n 1"], ids=lambda line: line[:5]
)
def test_it_ends_when_nobody_reads_although_nothing_comes(
    command: str, capfd: pytest.CaptureFixture[str], server: Served, topic: str
) -> None:
    remote = Command(capfd, ["--url", server.url])
    remote.good("topic", "create", topic)
    remote.good("write", topic, 1)
    with running(*command.format(topic=topic).split(), "--url", server.url) as follower:
        follower.event()
        follower.out.close()
        assert follower.process.wait(TIMEOUT_S) == 141
        assert follower.err.read() == ""


def test_a_restart_of_the_server_is_survived_and_told(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with served(tmp_path / "data", port=port) as server:
        url = server.url
        remote = Command(capfd, ["--url", url])
        remote.good("write", "a", 1)
        remote.good("write", "b", 2)
        tailing, consuming = (
            running("tail", "-f", "a", "b", "--url", url),
            running("group", "consume", "-f", "a", "readers", "--url", url),
        )
        with tailing as tail, consuming as group:
            assert [tail.event()["data"] for _ in range(2)] == [1, 2]
            assert group.event()["data"] == 1
            assert server.stop() == 0
            for follower in (tail, group):
                note = follower.note()
                assert "waiting for it to come back" in note and url in note
            with served(tmp_path / "data", port=port):
                remote.good("write", "a", 3)
                assert tail.event()["data"] == group.event()["data"] == 3
                remote.good("write", "b", 4)
                assert tail.event()["data"] == 4
                for follower in (tail, group):
                    assert follower.note() == f"{url} is back; going on where it stopped\n"
                    assert follower.end(signal.SIGINT) == 130
            assert tail.out.read() == group.out.read() == "", "nothing is printed twice"


def test_what_could_not_be_printed_is_for_others_at_once(
    capfd: pytest.CaptureFixture[str], server: Served, topic: str
) -> None:
    remote = Command(capfd, ["--url", server.url])
    remote.good("write", topic, 1)
    with Path("/dev/full").open("w") as full:
        failed = subprocess.run(
            [sys.executable, "-m", "topics", "group", "consume", "-f", topic, "readers", "--url", server.url],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=clean_environment(),
            timeout=TIMEOUT_S,
        )
    assert failed.returncode == 1 and "No space left on device" in failed.stderr
    said = remote("group", "consume", topic, "readers", "--from", "earliest")
    assert [line["data"] for line in said.lines] == [1]
