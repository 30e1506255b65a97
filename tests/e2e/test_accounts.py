"""Accounts of a server that is a process of its own: the first link, what a kill leaves, and the command line."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from tests.cli.rig import spawn
from tests.e2e.served import Caller, served

PASSWORD = "correct horse battery"
ADA = "ada@example.org"
AUTH = {"TOPICS_AUTH": "1"}


def posted(url: str, path: str, body: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    request = Request(url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urlopen(request) as answer:
        return json.loads(answer.read()), answer.headers.get_all("Set-Cookie")


def status(url: str, key: str) -> int:
    with Caller(url, key) as caller:
        return caller.ask("GET", "/v0/topics")[0]


def test_from_the_first_link_over_a_kill_to_the_command_line(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    with served(directory, variables=AUTH) as server:
        said = server.wait_for("set up")
        file = Path(said["file"])
        link = file.read_text().strip()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600 and link.partition("#")[2] not in json.dumps(said)
        assert link.startswith(f"{server.url}/set-up#")
        set_up = {"token": link.partition("/set-up#")[2], "email": ADA, "password": PASSWORD}
        signed_in, cookies = posted(server.url, "/v1/auth/setup", set_up)
        assert not file.exists(), "it is of no more use"
        cookie = "; ".join(each.partition(";")[0] for each in cookies)
        headers = {"Cookie": cookie, "X-CSRF-Token": signed_in["csrf_token"], "Content-Type": "application/json"}
        body = json.dumps({"name": "ops", "scopes": ["read", "write", "delete", "admin"]}).encode()
        with urlopen(Request(f"{server.url}/v1/keys", body, headers)) as answer:
            key = json.loads(answer.read())["key"]
        server.kill()
    with served(directory, variables=AUTH) as server:
        assert not [line for line in server.said if line["event"] == "set up"]
        assert posted(server.url, "/v1/auth/login", {"email": ADA, "password": PASSWORD})[0]["user"]["email"] == ADA
        where = ("--url", server.url)
        listed = spawn("user", "ls", *where, TOPICS_API_KEY=key)
        assert [json.loads(line)["email"] for line in listed.stdout.splitlines()] == [ADA]
        made = spawn("key", "create", "reader", "--scope", "read", *where, TOPICS_API_KEY=key)
        reader = json.loads(made.stdout)
        assert status(server.url, reader["key"]) == 200
        assert server.stop() == 0
    verdict = json.loads(spawn("audit", "verify", "--dir", directory).stdout)
    assert verdict["intact"]
    reset = spawn("user", "passwd", ADA, "--password-stdin", "--dir", directory, stdin="an entirely new one\n")
    assert reset.returncode == 0, reset.stderr
    with served(directory, variables=AUTH) as server:
        new = {"email": ADA, "password": "an entirely new one"}
        assert posted(server.url, "/v1/auth/login", new)[0]["user"]["role"] == "admin"
