from __future__ import annotations

import io
from pathlib import Path

import pytest

from tests.cli.rig import Command
from tests.e2e.served import Served, served


def test_a_user_is_added_changed_and_removed(topics: Command, topic: str) -> None:
    email = f"{topic.lower()[:40]}@example.org"
    said = topics("user", "add", email.upper())
    (made,) = said.lines
    assert said.code == 0 and (made["email"], made["role"], made["status"]) == (email, "viewer", "invited")
    assert "/set-up#" in made["link"] and made["link"].startswith("http://" if "--url" in topics.where else "/set-up#")
    assert topics("user", "add", email).code == 4
    assert topics.good("user", "role", email, "operator")[0]["role"] == "operator"
    assert topics.good("user", "disable", email)[0]["status"] == "disabled"
    assert topics.good("user", "enable", email)[0]["status"] == "invited"
    assert "/set-up#" in topics.good("user", "passwd", email)[0]["link"]
    assert [user["role"] for user in topics.good("user", "ls") if user["email"] == email] == ["operator"]
    assert topics.good("user", "rm", email)[0]["deleted"] is True
    assert topics("user", "rm", email).code == 3
    assert topics("user", "rm").code == 2


def test_for_people(topics: Command, topic: str) -> None:
    email = f"{topic.lower()[:40]}@example.org"
    said = topics("user", "add", email, "--role", "admin", "--no-json")
    assert "/set-up#" in said.out and "choose a password" in said.err
    assert email in topics("user", "ls", "--no-json").out
    assert f"{email} is viewer now" in topics("user", "role", email, "viewer", "--no-json").out
    assert f"removed {email}" in topics("user", "rm", email, "--no-json").out
    assert topics("user", "add", "nobody", "--no-json").code == 2


def test_a_password_from_stdin(tmp_path: object, capfd: object, monkeypatch: pytest.MonkeyPatch) -> None:
    topics = Command(capfd, ["--dir", f"{tmp_path}/data"])
    monkeypatch.setattr("sys.stdin", io.StringIO("correct horse battery\n"))
    (made,) = topics.good("user", "add", "ada@example.org", "--role", "admin", "--password-stdin")
    assert made["status"] == "active" and "link" not in made
    monkeypatch.setattr("sys.stdin", io.StringIO("short\n"))
    said = topics("user", "passwd", "ada@example.org", "--password-stdin")
    assert said.code == 2 and "short" not in said.err.replace("10 to 256", "")
    assert topics("user", "rm", "ada@example.org").code == 4


def test_a_password_for_a_user_of_a_server(capfd: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(tmp_path / "data", variables={"TOPICS_API_KEYS": "a-secret:admin"}) as running:
        topics = Command(capfd, ["--url", running.url, "--key", "a-secret"])
        monkeypatch.setattr("sys.stdin", io.StringIO("correct horse battery\n"))
        (made,) = topics.good("user", "add", "grace@example.org", "--password-stdin")
        assert made["status"] == "active" and "link" not in made


def test_a_user_who_would_have_neither_password_nor_link_is_not_added(
    server: Served, capfd: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics = Command(capfd, ["--url", server.url])
    monkeypatch.setattr("sys.stdin", io.StringIO("correct horse battery\n"))
    said = topics("user", "add", "grace@example.org", "--password-stdin")
    assert (said.code, said.out) == (4, "") and "start the server with TOPICS_AUTH=1 or keys" in said.err
    assert [user for user in topics.good("user", "ls") if user["email"] == "grace@example.org"] == []


def test_a_server_that_speaks_no_tls(server: Served, capfd: object) -> None:
    url = server.url.replace("http:", "https:")
    said = Command(capfd, ["--url", url])("user", "ls")
    assert (said.code, said.out) == (5, "") and f"cannot connect to {url}: " in said.err and "SSL" in said.err
