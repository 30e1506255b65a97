from __future__ import annotations

from pathlib import Path

from tests.cli.rig import Command


def test_a_key_is_made_listed_and_revoked(topics: Command, topic: str) -> None:
    said = topics("key", "create", topic, "--scope", "read", "--prefix", "ci.", "--expires", "90d")
    assert said.code == 0
    (made,) = said.lines
    assert made["key"].startswith(f"dh_{made['id']}_") and made["scopes"] == ["read"] and made["prefixes"] == ["ci."]
    assert ("TOPICS_AUTH=1" in said.err) == ("--url" in topics.where)
    (listed,) = [key for key in topics.good("key", "ls") if key["name"] == topic]
    assert listed["status"] == "active" and "key" not in listed and listed["expires_ts"] > listed["created_ts"]
    (revoked,) = topics.good("key", "revoke", made["id"])
    assert revoked["status"] == "revoked"
    topics("key", "create", topic)
    assert topics.good("key", "revoke", topic)[0]["status"] == "revoked", "a name that one has"
    for _ in range(2):
        topics("key", "create", topic)
    said = topics("key", "revoke", topic)
    assert said.code == 2 and "say which by its id" in said.err
    assert topics("key", "revoke", "nothing").code == 3
    assert topics("key", "revoke").code == 2


def test_for_people(topics: Command, topic: str) -> None:
    said = topics("key", "create", topic, "--no-json")
    assert said.out.startswith("dh_") and "topics key revoke" in said.err
    said = topics("key", "ls", "--no-json")
    assert topic in said.out and "read, write" in said.out and "never" in said.out
    assert topics("key", "create", topic, "--scope", "root").code == 2
    assert topics("key", "create", topic, "--expires", "soon").code == 2


def test_a_directory_that_is_not_there(capfd: object, tmp_path: Path) -> None:
    said = Command(capfd, ["--dir", str(tmp_path / "none")])("key", "ls")
    assert said.code == 3 and not (tmp_path / "none").exists()
