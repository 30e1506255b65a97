from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.cli.rig import Command
from tests.e2e.served import Served, served
from topics.cli.target import Target


@pytest.fixture
def bare(capfd: pytest.CaptureFixture[str]) -> Command:
    return Command(capfd, [])


@pytest.mark.parametrize(
    "arguments",
    [("read", "t"), ("tail", "t"), ("topic", "ls"), ("topic", "show", "t"), ("delete", "t", "--tag", "a"), ("stat",)],
    ids=" ".join,
)
def test_a_slip_in_a_path_makes_no_directory(bare: Command, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    said = bare(*arguments, "--dir", tmp_path / "slip")
    assert (said.code, said.out) == (3, "")
    assert f"{tmp_path / 'slip'} is no data directory" in said.err
    assert list(tmp_path.iterdir()) == []


def test_the_environment_names_the_server_and_a_flag_goes_before(
    bare: Command, server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, topic: str
) -> None:
    monkeypatch.setenv("TOPICS_URL", server.url)
    bare.good("write", topic, "1")
    assert len(bare.good("read", topic, "--url", server.url)) == 1
    assert bare.good("write", topic, "2", "--dir", tmp_path / "data")[0]["first_seq"] == 1
    monkeypatch.setenv("TOPICS_URL", "http://127.0.0.1:1")
    assert len(bare.good("read", topic, "--url", server.url)) == 1


def test_nobody_there(bare: Command) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    said = bare("read", "t", "--url", url)
    assert (said.code, said.out, said.err.count("\n")) == (5, "", 1)
    assert "connection_failed" in said.err and "`topics serve` starts one" in said.err


def test_keys(bare: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = "full-secret,reader-secret:read,tenant-secret::tenant:"
    with served(tmp_path / "data", variables={"TOPICS_API_KEYS": keys}) as running:
        url = ("--url", running.url)
        said = bare("write", "t", "1", *url)
        assert said.code == 4 and "name a key with --key or TOPICS_API_KEY" in said.err
        monkeypatch.setenv("TOPICS_API_KEY", "full-secret")
        bare.good("write", "t", "1", *url)
        for arguments in (("write", "t", "1"), ("topic", "create", "u"), ("delete", "t", "--tag", "a")):
            said = bare(*arguments, *url, "--key", "reader-secret")
            assert (said.code, "forbidden" in said.err) == (4, True)
        assert len(bare.good("read", "t", *url, "--key", "reader-secret")) == 1
        assert bare("read", "t", *url, "--key", "tenant-secret").code == 4
        said = bare("read", "t", *url, "--key", "wrong-secret")
        assert said.code == 4 and "secret" not in said.err


def test_a_server_that_drains_or_starts_is_for_later(bare: Command, tmp_path: Path) -> None:
    with served(tmp_path / "data") as running:
        bare.good("write", "t", "1", "--url", running.url)
        said = bare("read", "t", "--dir", tmp_path / "data")
        assert said.code == 2 and f"process {running.process.pid}" in said.err, "the server has the directory"
        url = running.url
        running.stop()
    assert bare("read", "t", "--url", url).code == 5


def test_a_key_is_not_in_a_traceback() -> None:
    assert "hunter2" not in repr(Target(key="hunter2"))
