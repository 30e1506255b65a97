from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.cli.rig import Command
from tests.e2e.served import Served, served
from topics import sync
from topics.cli import audit
from topics.core.auditchain import FIRST_PREVIOUS, forge


def logged(tmp_path: Path, *entries: dict[str, object]) -> tuple[Path, Path]:
    """A directory whose audit log has these lines, n1, n2 and so on; and the file they are in."""
    (tmp_path / "wal").mkdir(exist_ok=True)
    (tmp_path / "audit").mkdir(exist_ok=True)
    lines, previous = [], FIRST_PREVIOUS
    for seq, changed in enumerate(entries, 1):
        entry: dict[str, object] = {"at": seq, "action": "sign_in", "name": f"n{seq}", "key": "", "who": "ada"}
        entry |= {"over": "http", "outcome": "done", "address": "", "detail": {}} | changed
        line, previous = forge(entry, seq, previous)
        lines.append(line + b"\n")
    path = tmp_path / "audit" / "audit.jsonl"
    path.write_bytes(b"".join(lines))
    return tmp_path, path


def test_the_log_is_shown_searched_and_verified(server: Served, capfd: object, topic: str) -> None:
    topics = Command(capfd, ["--url", server.url])
    topics.good("topic", "create", topic)
    topics.good("topic", "rm", topic, "--yes")
    last = topics.good("audit", "tail", "-n", "4")
    actions = ["PUT /v0/topics/{topic}", "DELETE /v0/topics/{topic}"]
    assert [(line["action"], line["outcome"]) for line in last] == [
        (action, outcome) for action in actions for outcome in ("begun", "done")
    ]
    assert last[1]["seq"] == last[0]["seq"] + 1
    assert [line["action"] for line in topics.good("audit", "search", "--name", topic, "--outcome", "done")] == [
        "DELETE /v0/topics/{topic}",
        "PUT /v0/topics/{topic}",
    ]
    assert len(topics.good("audit", "search", topic, "--action", "DELETE", "--since", "1h")) == 2
    assert topics.good("audit", "search", "--who", "nobody@example.org") == []
    (verdict,) = topics.good("audit", "verify")
    assert verdict["intact"] and verdict["last_seq"] >= last[1]["seq"]
    said = topics("audit", "tail", "-n", "1", "--no-json")
    assert f"DELETE /v0/topics/{{topic}}  {topic}  by everybody from 127.0.0.1" in said.out


def test_a_directory_has_it_too_and_a_change_is_found(tmp_path: Path, capfd: object) -> None:
    _, path = logged(tmp_path, {}, {}, {})
    lines = path.read_bytes().splitlines(keepends=True)
    last = json.loads(lines[2])["hash"]
    topics = Command(capfd, ["--dir", str(tmp_path)])
    assert [line["name"] for line in topics.good("audit", "tail", "-n", "2")] == ["n2", "n3"]
    assert [line["name"] for line in topics.good("audit", "search", "n1")] == ["n1"]
    assert topics.good("audit", "verify")[0]["last_hash"] == last
    path.write_bytes(lines[0] + lines[1].replace(b"n2", b"nx") + lines[2])
    said = topics("audit", "verify", "--no-json")
    assert said.code == 1 and "line 2" in said.out and "was changed" in said.out


def test_for_people(tmp_path: Path, capfd: object) -> None:
    directory, _ = logged(tmp_path, {"who": "", "key": "ci", "outcome": "forbidden"}, {"address": "10.0.0.7"})
    topics = Command(capfd, ["--dir", str(directory)])
    failed, done = topics("audit", "tail", "--no-json").out.splitlines()
    assert failed.endswith("sign_in  n1  by ci  forbidden")
    assert done.endswith("sign_in  n2  by ada from 10.0.0.7")


def test_a_line_that_cannot_be_read_is_not_passed_over_in_silence(tmp_path: Path, capfd: object) -> None:
    directory, path = logged(tmp_path, {}, {}, {}, {}, {})
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b'{"seq": 2}\n' + b"[1, 2]\n" + b"{\n" + lines[4])
    topics = Command(capfd, ["--dir", str(directory)])
    said = topics("audit", "search")
    assert [line["name"] for line in said.lines] == ["n5", "n1"]
    assert said.err.splitlines() == [
        f"{path}, line {number} is left out: it cannot be read; `topics audit verify` says what holds"
        for number in (4, 3, 2)
    ]


def test_as_many_lines_as_were_asked_for(tmp_path: Path, capfd: object) -> None:
    directory, _ = logged(tmp_path, {}, {})
    topics = Command(capfd, ["--dir", str(directory)])
    assert topics.good("audit", "tail", "-n", "0") == []
    assert len(topics.good("audit", "search", "--limit", "1")) == 1
    said = topics("audit", "tail", "-n", "-1")
    assert said.code == 2 and "--lines must be 0 or more, not -1" in said.err
    said = topics("audit", "search", "--limit", "-1")
    assert said.code == 2 and "--limit must be at least 1, not -1" in said.err


@pytest.mark.parametrize("where", ["dir", "url"])
def test_following_it(where: str, server: Served, tmp_path: Path, capfd: object, topic: str) -> None:
    """All that comes is shown once, also when it is more than a page."""
    directory, _ = logged(tmp_path, {}, {})
    Command(capfd, ["--url", server.url]).good("topic", "create", f"{topic}-0")
    shown: list[str] = []

    def go_on(first: int, last: int) -> None:
        logged(tmp_path, *({} for _ in range(last + 2)))
        with sync.connect(server.url) as client:
            for number in range(first, last + 1):
                client.topic(f"{topic}-{number}").create()

    def show(screen: object, entry: dict[str, str]) -> None:
        if where == "url" and entry["outcome"] == "done":
            return
        shown.append(entry["name"])
        if len(shown) == 1:
            go_on(1, 4)
        elif len(shown) == 5:
            go_on(5, 5)
        elif len(shown) == 6:
            signal.raise_signal(signal.SIGINT)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(audit, "PAGE", 2)
        patch.setattr(audit, "FOLLOW_S", 0.01)
        patch.setattr(audit, "_print", show)
        target = ["--dir", str(directory)] if where == "dir" else ["--url", server.url]
        said = Command(capfd, target)("audit", "tail", "-f", "-n", "1" if where == "dir" else "2")
    assert said.code == 130 and "stopped by Ctrl-C" in said.err
    assert shown == [f"{topic}-{number}" if where == "url" else f"n{number + 2}" for number in range(6)]


@pytest.mark.parametrize("how", ["last line cut off", "file gone", "directory gone"])
def test_lines_missing_at_the_end_are_found_in_a_directory(tmp_path: Path, capfd: object, how: str) -> None:
    directory = tmp_path / "data"
    with served(directory) as running, running.connect() as caller:
        for name in ("a", "b"):
            assert caller.ask("PUT", f"/v0/topics/{name}", {})[0] == 201
        assert running.stop() == 0
    topics = Command(capfd, ["--dir", str(directory)])
    (verdict,) = topics.good("audit", "verify")
    assert verdict["intact"] and verdict["last_seq"] == 4 and "copy_not_compared" not in verdict
    path = directory / "audit" / "audit.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    if how == "last line cut off":
        path.write_bytes(b"".join(lines[:-1]))
    else:
        path.unlink()
        if how == "directory gone":
            path.parent.rmdir()
    said = topics("audit", "verify", "--no-json")
    lacking = 4 if how == "last line cut off" else 1
    assert said.code == 1 and f"the file lacks line {lacking}, of which _audit has a copy" in said.out


def test_files_alone_are_no_proof_while_a_server_has_the_directory(tmp_path: Path, capfd: object) -> None:
    with served(tmp_path / "data") as running, running.connect() as caller:
        assert caller.ask("PUT", "/v0/topics/a", {})[0] == 201
        said = Command(capfd, ["--dir", str(tmp_path / "data")])("audit", "verify", "--no-json")
        assert said.code == 0 and "may be missing" in said.err and "--url" in said.err
