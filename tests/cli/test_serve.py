from __future__ import annotations

import asyncio
import gc
import signal
import socket
from collections.abc import Iterator
from errno import EACCES, ENOSPC, EPERM, EROFS
from os import environ
from pathlib import Path

import pytest

import topics
from tests.cli.terminal import CTRL_C, Terminal
from tests.server.loggers import loggers_as_before
from topics.cli import run
from topics.cli.serve import STOP_SIGNALS
from topics.server.app import Server
from topics.settings import TABLE
from topics.storage import walshard
from topics.storage.fs import RealFs


@pytest.fixture(autouse=True)
def clean_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    for setting in TABLE:
        monkeypatch.delenv(setting.variable, raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TOPICS_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("TOPICS_NO_GRPC", "1")
    with loggers_as_before():
        yield


def test_help_names_every_setting(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["serve", "--help"]) == 0
    shown = capsys.readouterr().out
    assert [setting.flag for setting in TABLE if f"{setting.flag} " not in shown] == []
    assert "--config" in shown
    assert "Write-ahead logs written side by side. [default: 2]" in shown


def test_everything_that_is_wrong_is_said_at_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TOPICS_WAL_SHARDS", "many")
    (tmp_path / "topics.toml").write_text('hot_bytes = "much"\nacces_log = true\n')
    assert run(["serve", "--port", "99999", "--config", str(tmp_path / "topics.toml")]) == 2
    said = capsys.readouterr().err
    assert "--port=99999: expected a whole number, from 0 to 65535" in said
    assert "TOPICS_WAL_SHARDS=many: expected a whole number" in said
    assert "hot_bytes=much: expected a size" in said
    assert "acces_log is not a setting; did you mean TOPICS_ACCESS_LOG?" in said


def last_words(said: str) -> str:
    """What it says of why it does not start: one line behind those of its log."""
    *log, words = said.splitlines()
    assert [line for line in log if not line.startswith("{")] == []
    return words


def test_a_port_in_use_ends_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert run(["serve", "--port", str(port)]) == 2
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler, "Ctrl-C is Ctrl-C again"
    words = last_words(capsys.readouterr().err)
    assert words.startswith(f"topics: invalid_setting: cannot listen on 127.0.0.1 port {port}: address already in use;")
    assert "--port" in words


@pytest.mark.parametrize("below", ["a-file", "a-file/data"])
def test_a_path_that_is_no_directory_ends_with_2(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, below: str
) -> None:
    (tmp_path / "a-file").touch()
    assert run(["serve", "--port", "0", "--data-dir", str(tmp_path / below)]) == 2
    words = last_words(capsys.readouterr().err)
    assert words.startswith(f"topics: invalid_setting: TOPICS_DATA_DIR={tmp_path / below}: ")
    assert "may write to" in words and "--data-dir" in words


@pytest.mark.parametrize("error", [PermissionError(EACCES, "no"), OSError(EROFS, "no"), PermissionError(EPERM, "no")])
def test_a_directory_that_may_not_be_written_to_ends_with_2(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    def refuse(fs: RealFs, path: str) -> None:
        raise type(error)(error.errno, "not allowed", path)

    # Whoever runs the tests may be allowed everything, so the system's answer is given for it.
    monkeypatch.setattr(RealFs, "make_dir", refuse)
    assert run(["serve", "--port", "0"]) == 2
    words = last_words(capsys.readouterr().err)
    assert f"TOPICS_DATA_DIR={tmp_path / 'data'}: not allowed ({tmp_path / 'data'})" in words


def test_a_disk_that_is_full_ends_with_1(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(fs: RealFs, path: str) -> None:
        raise OSError(ENOSPC, "No space left on device", path)

    monkeypatch.setattr(RealFs, "make_dir", refuse)
    assert run(["serve", "--port", "0"]) == 1
    words = last_words(capsys.readouterr().err)
    assert words.startswith("topics: io_error: the disk refuses: ") and "No space left on device" in words


def test_a_directory_of_a_newer_version_ends_with_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    directory = tmp_path / "data"
    with monkeypatch.context() as newer:
        newer.setattr(walshard, "FORMAT_VERSION", walshard.FORMAT_VERSION + 1)
        with topics.sync.open(directory) as db:
            db.topic("t").write(1)
    before = {path: path.read_bytes() for path in directory.rglob("*.wal")}
    assert before and run(["serve", "--port", "0"]) == 1
    words = last_words(capsys.readouterr().err)
    assert words.startswith("topics: not_understood: ") and "is in WAL format 2; this program reads format 1" in words
    assert "open the directory with that one" in words and "fsck" not in words, "it is whole: a repair is no answer"
    assert {path: path.read_bytes() for path in directory.rglob("*.wal")} == before


def test_the_world_without_keys_ends_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["serve", "--host", "0.0.0.0"]) == 2
    assert "TOPICS_ALLOW_INSECURE_NO_AUTH=1" in capsys.readouterr().err


def test_a_malformed_key_ends_with_2_and_is_not_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOPICS_API_KEYS", "hunter2:raed")
    assert run(["serve"]) == 2
    captured = capsys.readouterr()
    assert "TOPICS_API_KEYS: entry 1" in captured.err
    assert "hunter2" not in captured.out + captured.err


def test_a_locked_directory_ends_with_2(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with topics.sync.open(tmp_path / "data"):
        assert run(["serve", "--port", "0"]) == 2
    words = last_words(capsys.readouterr().err)
    assert words.startswith("topics: directory_locked: ")
    assert "stop it first, or use another directory" in words


def test_keys_leave_the_environment_when_the_server_has_read_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOPICS_API_KEYS", "hunter2")
    with socket.create_server(("127.0.0.1", 0)) as other:
        assert run(["serve", "--port", str(other.getsockname()[1])]) == 2
    assert "TOPICS_API_KEYS" not in environ
    assert "TOPICS_DATA_DIR" in environ, "what is no secret stays"


def test_the_library_leaves_the_environment_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TOPICS_API_KEYS", "hunter2")
    with topics.sync.open(tmp_path / "data"):
        assert environ["TOPICS_API_KEYS"] == "hunter2"


def test_at_a_terminal_it_says_where_it_is_and_who_is_first(tmp_path: Path) -> None:
    flags = ("--port", "0", "--data-dir", tmp_path / "data")
    with Terminal("serve", *flags, TOPICS_NO_GRPC="1", TOPICS_AUTH="1") as terminal:
        terminal.wait_for("Open this within the hour to make the first one, an admin:")
        terminal.wait_for("/set-up#")
        assert "Ctrl-C stops the server" in terminal.shown and "curl http://127.0.0.1:" in terminal.shown
        terminal.press(CTRL_C)
        assert terminal.end() == 0


def test_a_signal_that_comes_before_it_is_ready(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def signalled_first(server: Server, stop: asyncio.Event) -> bool:
        signal.raise_signal(signal.SIGTERM)
        await stop.wait()
        return False

    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    monkeypatch.setenv("TOPICS_AUTH", "1")
    monkeypatch.setattr(Server, "ready_before", signalled_first)
    try:
        assert run(["serve", "--port", "0"]) == 0
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    said = capsys.readouterr().err
    assert '"event":"stopped"' in said and "set-up" not in said, "nobody is asked in any more"


def test_recovered_state_is_left_out_of_garbage_collections(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    frozen: list[int] = []

    async def ready_then_stopped(server: Server, stop: asyncio.Event) -> bool:
        await server.ready()
        signal.raise_signal(signal.SIGTERM)
        return True

    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    monkeypatch.setattr(Server, "ready_before", ready_then_stopped)
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(1))
    try:
        assert run(["serve", "--port", "0", "--no-grpc"]) == 0
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert frozen == [1]
