from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from topics import __version__
from topics.cli import COMMANDS, PYTHON_NAMES, run
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
    for name in COMMANDS:
        function = PYTHON_NAMES.get(name, name)
        module = import_module(f"topics.cli.{function}")
        summary = module.SUMMARY if hasattr(module, "COMMANDS") else getattr(module, function).__doc__.splitlines()[0]
        assert f"{name} " in shown
        assert summary in shown


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
    monkeypatch.setenv("TOPICS_URL", "http://127.0.0.1:4000")
    monkeypatch.setenv("TOPICS_API_KEYS", "hunter2")
    config = ("settings", "--config", str(tmp_path / "topics.toml"))
    assert run([*config, "--no-json"]) == 0
    shown, said = capsys.readouterr()
    assert [setting.variable for setting in TABLE if setting.variable not in shown] == []
    assert "1 GiB" in shown and "4123" in shown and "hunter2" not in shown
    assert said == "TOPICS_WAL_SHARD is set but is no setting; did you mean TOPICS_WAL_SHARDS?\n"
    assert run(config) == 0
    rows = {row["variable"]: row["value"] for row in map(json.loads, capsys.readouterr().out.splitlines())}
    assert (rows["TOPICS_HOT_BYTES"], rows["TOPICS_PORT"], rows["TOPICS_API_KEYS"]) == (1 << 30, 4123, "***")
    assert len(rows) == len(TABLE)


def test_the_settings_document_is_fresh(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["settings", "--markdown"]) == 0
    assert capsys.readouterr().out == as_markdown()
    assert (ROOT / "docs" / "SETTINGS.md").read_text() == as_markdown(), "docs/SETTINGS.md is stale: run `make docs`"


def test_an_unknown_command_is_an_error() -> None:
    done = subprocess.run([sys.executable, "-m", "topics", "bogus"], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 2
    assert 'Unknown command "bogus"' in done.stderr


def test_a_slip_of_the_pen_is_one_line_with_what_to_do_next(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, words in (
        (["bogus"], 'topics: usage: Unknown command "bogus"'),
        (["bogus"], ", ...; see `topics --help`"),
        (["--url=http://b", "stat"], "topics: usage: --url comes behind a command; see `topics --help`"),
        (["topic", "--dir", "a", "ls"], "topics: usage: --dir comes behind a command; see `topics topic --help`"),
        (["wirte", "orders"], 'Did you mean "write"?'),
        (["read", "orders", "--bogus"], "topics: usage: Unknown option: --bogus; see `topics read --help`"),
        (["read"], "parameter TOPIC requires an argument; see `topics read --help`"),
        (["topic", "craete"], "see `topics topic --help`"),
        (["read", "orders", "--dir", "a", "--url", "http://b"], "--url and --dir both say where"),
        (["read", "orders", "--url", "nonsense"], "nonsense"),
        (["completion", "tcsh"], "bash"),
    ):
        assert run(arguments) == 2, arguments
        out, said = capsys.readouterr()
        assert (out, said.count("\n")) == ("", 1), said
        assert words in said


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "arguments", [[], ["--help"], ["read", "-h"], ["help"], ["version"], ["settings", "--no-json"]]
)
def test_output_that_nobody_reads(arguments: list[str], unbuffered: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "topics", *arguments]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, cwd=ROOT)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_bug_of_ours_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(app: object, name: str, section: object) -> None:
        raise AssertionError("a bug")

    monkeypatch.setattr("topics.cli._add", fail)
    with pytest.raises(AssertionError, match="a bug"):
        run(["version"])


def test_a_disk_that_fails_is_one_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(app: object, name: str, section: object) -> None:
        raise OSError(5, "Input/output error", "/data/wal")

    monkeypatch.setattr("topics.cli._add", fail)
    assert run(["version"]) == 1
    said = capsys.readouterr().err
    assert said == "topics: io_error: /data/wal: Input/output error; see to it and try again\n"


def test_the_version_is_a_flag_too(capsys: pytest.CaptureFixture[str]) -> None:
    said = []
    for arguments in (["version"], ["version", "--json"], ["--version"], ["--version", "--json"]):
        assert run(arguments) == 0
        said.append(capsys.readouterr().out)
    assert said[:2] == said[2:] and __version__ in said[0]


def test_the_module_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "topics", "version"], capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stdout.split()[0]) == (0, "topics")


def test_a_command_does_not_wait_for_what_only_another_one_needs() -> None:
    code = "import sys, topics.cli; sys.exit(any(name in sys.modules for name in ('numpy', 'rich.console', 'asyncio')))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0
