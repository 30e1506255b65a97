from __future__ import annotations

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.cli.rig import Command
from tests.cli.standin import standing_in
from tests.e2e.served import Served, served
from topics.cli import listening, machine
from topics.cli.machine import _written_ms
from topics.clock import SystemClock
from topics.storage.fs import RealFs


@pytest.fixture
def bare(capfd: pytest.CaptureFixture[str]) -> Command:
    return Command(capfd, [])


@pytest.fixture(autouse=True)
def free_port(monkeypatch: pytest.MonkeyPatch) -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    monkeypatch.setenv("TOPICS_PORT", str(port))
    return port


def checks(command: Command, *arguments: str | Path) -> dict[str, dict[str, str]]:
    return {each["check"]: each for each in command("doctor", *arguments).lines}


def test_a_directory_that_is_not_there_yet(bare: Command, tmp_path: Path, free_port: int) -> None:
    found = checks(bare, "--dir", tmp_path / "new" / "data")
    names = "versions settings access port directory clock disk space disk sync open files"
    assert all(name in " ".join(found) for name in names.split())
    assert "will be made" in found["directory"]["found"]
    assert found["port"]["found"] == f"127.0.0.1 port {free_port} is free"
    assert "50" in found["disk sync"]["found"]
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


def test_a_directory_in_use_and_one_at_rest(bare: Command, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    Command(capfd, ["--dir", str(tmp_path / "data")]).good("write", "a", "1")
    assert checks(bare, "--dir", tmp_path / "data")["directory"]["found"].endswith("nobody has it open")
    with served(tmp_path / "data") as server:
        found = checks(bare, "--dir", tmp_path / "data")["directory"]["found"]
        assert f"in use by process {server.process.pid}" in found
        assert server.stop() == 0
    assert list(tmp_path.rglob("doctor-*")) == [], "nothing is left behind"


def test_place_for_the_witness_must_be_in_memory(
    bare: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert checks(bare, "--dir", tmp_path)["kill proof"]["found"] == "/dev/shm is in memory"
    monkeypatch.setenv("TOPICS_WITNESS_DIR", "/proc")
    assert checks(bare, "--dir", tmp_path)["kill proof"]["found"] == "/proc is not in memory"
    monkeypatch.setenv("TOPICS_WITNESS_DIR", str(tmp_path / "missing"))
    assert checks(bare, "--dir", tmp_path)["kill proof"]["verdict"] == "warning"


def test_the_directory_of_the_settings(bare: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOPICS_DATA_DIR", str(tmp_path / "from-settings"))
    assert "from-settings" in checks(bare)["directory"]["found"]


def test_the_clock_is_compared_with_the_newest_file(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    before_ms = SystemClock().now_ms()
    Command(capfd, ["--dir", str(tmp_path / "data")]).good("write", "a", "1")
    written_ms = _written_ms(RealFs(), str(tmp_path / "data"))
    assert written_ms is not None and before_ms <= written_ms <= SystemClock().now_ms()
    assert _written_ms(RealFs(), str(tmp_path)) is None


def test_problems_end_with_1(bare: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOPICS_HOST", "0.0.0.0")
    said = bare("doctor", "--dir", tmp_path)
    assert said.code == 1
    (access,) = [each for each in said.lines if each["check"] == "access"]
    assert access["verdict"] == "bad" and "TOPICS_API_KEYS" in access["advice"]
    shown = bare("doctor", "--dir", tmp_path, "--no-json").out
    assert "✗  access" in shown and "→ others can reach it" in shown


def test_settings_that_cannot_be_used(bare: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOPICS_WAL_SHARDS", "many")
    said = bare("doctor", "--dir", tmp_path)
    assert said.code == 1 and "TOPICS_WAL_SHARDS=many" in said.lines[-1]["found"]
    monkeypatch.setenv("TOPICS_WAL_SHARDS", "2")
    monkeypatch.setenv("TOPICS_WAL_SHARD", "2")
    assert "did you mean TOPICS_WAL_SHARDS?" in checks(bare, "--dir", tmp_path)["settings"]["advice"]


def test_a_port_in_use(bare: Command, server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    port = server.url.rpartition(":")[2]
    monkeypatch.setenv("TOPICS_PORT", port)
    assert f"runs on 127.0.0.1 port {port}" in checks(bare, "--dir", tmp_path)["port"]["found"]
    with HTTPServer(("127.0.0.1", 0), Stranger) as stranger:
        thread = threading.Thread(target=stranger.serve_forever)
        thread.start()
        monkeypatch.setenv("TOPICS_PORT", str(stranger.server_port))
        found = checks(bare, "--dir", tmp_path)["port"]
        (told,) = bare("doctor", "--url", f"http://127.0.0.1:{stranger.server_port}").lines
        stranger.shutdown()
        thread.join()
    assert found["verdict"] == "bad" and "--port" in found["advice"]
    assert told["verdict"] == "bad" and "is no topics server" in told["found"]


class Stranger(BaseHTTPRequestHandler):
    """A web server that is not ours."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(["hello"]).encode())

    def log_message(self, *arguments: object) -> None:
        pass


def test_a_server(bare: Command, server: Served) -> None:
    found = checks(bare, "--url", server.url)
    assert found["clock"]["found"] == "the same here and there"
    assert set(found) >= {"reachable", "version", "transport", "ready", "key", "load", "write-ahead log"}
    assert {each["verdict"] for each in found.values()} <= {"ok", "warning"}


def test_the_server_of_the_environment(bare: Command, server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOPICS_URL", server.url)
    assert "ready" in checks(bare)


def test_a_server_that_is_not_there(bare: Command, free_port: int) -> None:
    said = bare("doctor", "--url", f"http://127.0.0.1:{free_port}")
    assert said.code == 1
    (found,) = said.lines
    assert (found["check"], found["verdict"]) == ("reachable", "bad") and "topics serve" in found["advice"]


@pytest.mark.parametrize("url", ["nonsense", "ftp://x", "http://", "http://x:99999", "http://[::1"])
def test_an_address_that_is_none(bare: Command, url: str) -> None:
    said = bare("doctor", "--url", url)
    assert said.code == 2 and "expected http://HOST:PORT" in said.err


def test_keys(bare: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(tmp_path / "data", variables={"TOPICS_API_KEYS": "secret-reader:read,secret-writer:write"}) as server:
        none = checks(bare, "--url", server.url)
        assert none["key"]["verdict"] == "bad" and "TOPICS_API_KEY" in none["key"]["advice"]
        monkeypatch.setenv("TOPICS_API_KEY", "secret-reader")
        assert checks(bare, "--url", server.url)["key"]["found"] == "may read"
        said = bare("doctor", "--url", server.url, "--key", "secret-writer")
        assert said.code == 1 and "secret" not in said.out + said.err


def test_a_server_that_recovers_and_tells_no_time(bare: Command) -> None:
    busy = {"error": {"code": "not_ready", "message": "it recovers, 40 % done"}}
    answers: dict[str, tuple[int, object]] = {
        "/v0/health": (200, {"version": "1.0"}),
        "/v0/ready": (503, busy),
        "/v0/metrics": (503, busy),
    }
    with standing_in(answers, date=None) as url:
        found = checks(bare, "--url", url)
    assert (found["ready"]["verdict"], found["ready"]["found"]) == ("warning", "it recovers, 40 % done")
    assert "wait" in found["ready"]["advice"] and "clock" not in found


def test_what_this_machine_lacks(bare: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somewhere else than on Linux, without what is optional."""
    monkeypatch.setattr(machine, "_proc", lambda path: "")
    monkeypatch.setattr(machine, "find_spec", lambda name: None)
    monkeypatch.setattr(listening, "find_spec", lambda name: None)
    found = checks(bare, "--dir", tmp_path)
    assert found["versions"]["verdict"] == "warning" and "pip install uvloop" in found["versions"]["advice"]
    assert "is not installed (`pip install 'topics[grpc]'`)" in found["gRPC"]["found"]
    assert "memory" not in found and "file system" not in found


def test_a_place_that_nobody_can_write_to(bare: Command, tmp_path: Path) -> None:
    found = checks(bare, "--dir", "/proc/data")["disk sync"]
    assert found["verdict"] == "bad" and found["found"].startswith("/proc: ") and "able to write" in found["advice"]
    (tmp_path / "wal").mkdir()
    (tmp_path / "lock").mkdir()
    found = checks(bare, "--dir", tmp_path)["directory"]
    assert (found["verdict"], found["found"]) == ("bad", f"{tmp_path}: Is a directory")
    assert found["advice"] == "it must belong to the user that runs the server"


def test_what_the_kernel_tells() -> None:
    mounts = "none / overlay rw 0 0\n/dev/b /mnt/my\\040disk ext4 rw 0 0\n/dev/c /mnt nfs rw 0 0\nodd\n"
    assert machine._mount(mounts, "/mnt/my disk/data") == ("ext4", "/mnt/my disk")
    assert machine._mount(mounts, "/mnt/my") == ("nfs", "/mnt")
    assert machine._mount("", "/mnt") is None
    assert machine._memory_bytes("MemFree: 1 kB\nMemTotal: 2 kB\n") == 2048
    assert machine._memory_bytes("MemFree: 1 kB\n") is None
    assert machine._proc("/proc/nothing-of-the-kind") == "" and "MemTotal" in machine._proc("/proc/meminfo")


def test_what_is_no_log_does_not_tell_the_time(tmp_path: Path) -> None:
    (tmp_path / "wal").mkdir()
    (tmp_path / "wal" / "notes.txt").touch()
    assert _written_ms(RealFs(), str(tmp_path)) is None
