from __future__ import annotations

from pathlib import Path

from tests.cli.rig import Command
from tests.e2e.served import Served


def test_the_log_is_shown_searched_and_verified(server: Served, capfd: object, topic: str) -> None:
    topics = Command(capfd, ["--url", server.url])
    topics.good("topic", "create", topic)
    topics.good("topic", "rm", topic, "--yes")
    last = topics.good("audit", "tail", "-n", "2")
    assert [line["action"] for line in last] == ["PUT /v0/topics/{topic}", "DELETE /v0/topics/{topic}"]
    assert last[1]["seq"] == last[0]["seq"] + 1
    assert [line["action"] for line in topics.good("audit", "search", "--name", topic)] == [
        "DELETE /v0/topics/{topic}",
        "PUT /v0/topics/{topic}",
    ]
    assert len(topics.good("audit", "search", topic, "--action", "DELETE", "--since", "1h")) == 1
    assert topics.good("audit", "search", "--who", "nobody@example.org") == []
    (verdict,) = topics.good("audit", "verify")
    assert verdict["intact"] and verdict["last_seq"] >= last[1]["seq"]
    said = topics("audit", "tail", "-n", "1", "--no-json")
    assert f"DELETE /v0/topics/{{topic}}  {topic}  by everybody from 127.0.0.1" in said.out


def test_a_directory_has_it_too_and_a_change_is_found(tmp_path: Path, capfd: object) -> None:
    from topics.core.auditchain import FIRST_PREVIOUS, forge

    (tmp_path / "wal").mkdir()
    (tmp_path / "audit").mkdir()
    lines, previous = [], FIRST_PREVIOUS
    for seq in range(1, 4):
        entry = {"at": seq, "action": "sign_in", "name": f"n{seq}", "key": "", "who": "ada", "over": "http"}
        entry |= {"outcome": "done", "address": "", "detail": {}}
        line, previous = forge(entry, seq, previous)
        lines.append(line + b"\n")
    path = tmp_path / "audit" / "audit.jsonl"
    path.write_bytes(b"".join(lines))
    topics = Command(capfd, ["--dir", str(tmp_path)])
    assert [line["name"] for line in topics.good("audit", "tail", "-n", "2")] == ["n2", "n3"]
    assert [line["name"] for line in topics.good("audit", "search", "n1")] == ["n1"]
    assert topics.good("audit", "verify")[0]["last_hash"] == previous
    path.write_bytes(lines[0] + lines[1].replace(b"n2", b"nx") + lines[2])
    said = topics("audit", "verify", "--no-json")
    assert said.code == 1 and "line 2" in said.out and "was changed" in said.out
