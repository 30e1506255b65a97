from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from topics.cli import COMMANDS, run
from topics.cli.settings import as_markdown
from topics.settings import TABLE

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for setting in TABLE:
        monkeypatch.delenv(setting.variable, raising=False)
    monkeypatch.setenv("COLUMNS", "200")


def test_help_names_every_command_and_what_it_is_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    shown = capsys.readouterr().out
    for command in COMMANDS:
        assert command.__doc__ is not None
        assert f"{command.__name__} " in shown
        assert command.__doc__.splitlines()[0] in shown


def test_no_arguments_is_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 0
    assert "Usage: topics COMMAND" in capsys.readouterr().out


def test_a_bad_setting_refuses_to_start(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOPICS_WAL_SHARDS", "many")
    assert run(["serve"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "TOPICS_WAL_SHARDS=many: expected a whole number, from 1 to 64" in captured.err


def test_settings_shows_every_value_in_effect(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TOPICS_HOT_BYTES", "1GiB")
    monkeypatch.setenv("TOPICS_WAL_SHARD", "3")
    (tmp_path / "topics.toml").write_text("port = 4123")
    assert run(["settings", "--config", str(tmp_path / "topics.toml")]) == 0
    shown = capsys.readouterr().out
    assert [setting.variable for setting in TABLE if setting.variable not in shown] == []
    assert "1 GiB" in shown and "4123" in shown
    assert "TOPICS_WAL_SHARD is set but is no setting; did you mean TOPICS_WAL_SHARDS?" in shown


def test_the_settings_document_is_fresh(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["settings", "--markdown"]) == 0
    assert capsys.readouterr().out == as_markdown()
    assert (ROOT / "docs" / "SETTINGS.md").read_text() == as_markdown(), "docs/SETTINGS.md is stale: run `make docs`"


def test_an_unknown_command_is_an_error() -> None:
    done = subprocess.run([sys.executable, "-m", "topics", "bogus"], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 2
    assert 'Unknown command "bogus"' in done.stderr


def test_the_module_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "topics", "version"], capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stdout.split()[0]) == (0, "topics")
