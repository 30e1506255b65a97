from __future__ import annotations

import socket
from pathlib import Path

import pytest

import topics
from topics.cli import run
from topics.settings import TABLE


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for setting in TABLE:
        monkeypatch.delenv(setting.variable, raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TOPICS_DATA_DIR", str(tmp_path / "data"))


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


def test_a_port_in_use_ends_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        assert run(["serve", "--port", str(other.getsockname()[1])]) == 2
    assert "cannot listen on 127.0.0.1 port" in capsys.readouterr().err


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
    assert "directory_locked" in capsys.readouterr().err
