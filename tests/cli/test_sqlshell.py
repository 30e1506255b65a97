"""The shell with a person made of lines, and once with a terminal."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.cli.rig import spawn
from tests.cli.terminal import CTRL_D, Terminal
from topics.cli.screen import Screen
from topics.cli.sqlshell import HELP, HISTORY_VARIABLE, Completer, Shell, edit_lines, history_path, remember
from topics.errors import ConnectionFailed, InvalidSql
from topics.sqlmodel import SqlColumn, SqlResult


class Engine:
    """Remembers what it was asked, and answers one row."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, text: str) -> list[SqlResult]:
        self.asked.append(text)
        if "wrong" in text:
            raise InvalidSql("line 1, column 1: wrong\n  wrong\n  ^^^^^")
        if "ctrl-c" in text:
            signal.raise_signal(signal.SIGINT)
        return [SqlResult(columns=[SqlColumn("name", "VARCHAR")], rows=[["orders"], ["a-b"]], row_count=2)]


def shell(*lines: str | type[BaseException]) -> Engine:
    engine = Engine()
    left = list(lines)

    def ask(prompt: str) -> str:
        line = left.pop(0) if left else EOFError
        if isinstance(line, str):
            return line
        raise line

    Shell(engine, Screen(json=False), "table", ask).loop()
    assert not left
    return engine


def test_a_statement_is_run_at_its_semicolon(capsys: pytest.CaptureFixture[str]) -> None:
    engine = shell("select 'a;", "b' -- c;", "from x;", "", "show topics;")
    assert engine.asked == ["select 'a;\nb' -- c;\nfrom x;", "show topics;"]
    assert "orders" in capsys.readouterr().out


def test_an_error_is_shown_and_the_shell_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    engine = shell("wrong;", "right;")
    assert engine.asked == ["wrong;", "right;"]
    assert "topics: invalid_sql: line 1, column 1: wrong\n  wrong\n  ^^^^^\n" in capsys.readouterr().err


def test_commands_of_the_shell(capsys: pytest.CaptureFixture[str]) -> None:
    engine = shell("\\watch", "select 1;", "\\watch 0 2", "\\d", '\\d a"b', "\\x", "select 2;", "\\q")
    assert engine.asked == [
        "select 1;",
        "select 1;",
        "select 1;",
        "SHOW TOPICS",
        'DESCRIBE TOPIC "a""b"',
        "select 2;",
    ]
    out, err = capsys.readouterr()
    assert '{"name":"orders"}' in out and "nothing to watch" in err


def test_ctrl_c_gives_up_what_was_typed() -> None:
    assert shell("select 1", KeyboardInterrupt, "select 2;").asked == ["select 2;"]


def test_words_names_and_tables_are_completed() -> None:
    completer = Completer(Engine())

    def offered(text: str) -> list[str]:
        found = []
        while (word := completer(text, len(found))) is not None:
            found.append(word)
        return found

    assert offered("CONSU") == ["CONSUME", "CONSUMER"]
    assert offered("consu") == ["consume", "consumer"]
    assert offered("or") == ["or", "order", "orders"]
    assert offered("a-") == ['"a-b"'] and offered('"a') == ['"a-b"']
    assert offered("system.topic_o") == ["system.topic_offsets"]


def test_the_history_is_where_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/elsewhere")
    monkeypatch.delenv(HISTORY_VARIABLE, raising=False)
    assert history_path() == "/elsewhere/.topics_sql_history"
    monkeypatch.setenv(HISTORY_VARIABLE, "")
    assert history_path() == ""


def wait_for_end(terminal: Terminal, text: str) -> None:
    while not terminal.shown.endswith(text):
        assert terminal._read(), terminal.shown


def test_at_a_terminal(tmp_path: Path) -> None:
    """A whole session: a statement over two lines, a name that Tab completes, the history kept."""
    data, history = tmp_path / "data", tmp_path / "history"
    assert spawn("write", "orders", "1", "--dir", data).returncode == 0
    with Terminal("sql", "--dir", data, TOPICS_SQL_HISTORY=str(history)) as terminal:
        terminal.wait_for("topics> ")
        terminal.press(b"SELECT 40 + count(*) AS answer\n")
        terminal.wait_for("-> ")
        terminal.press(b"FROM system.topic_of\t")
        terminal.wait_for("system.topic_offsets")
        terminal.press(b";\n")
        # A key that is pressed before the line editor is there may be lost.
        wait_for_end(terminal, "ms\ntopics> ")
        terminal.press(b"\\d\n")
        terminal.wait_for("orders │")
        wait_for_end(terminal, "ms\ntopics> ")
        terminal.press(CTRL_D)
        assert terminal.end() == 0
    assert "40 " in terminal.shown
    assert history.read_text().startswith("SELECT 40 + count(*) AS answer FROM system.topic_offsets")


def test_what_the_shell_does_not_understand(capsys: pytest.CaptureFixture[str]) -> None:
    assert shell("\\?", "\\wacth 5", "\\watch soon", "\\d a b").asked == []
    first, *others = capsys.readouterr().err.splitlines()[1:5]
    assert first == HELP
    assert others == [f"{line} is not understood here. {HELP}" for line in ("\\wacth 5", "\\watch soon", "\\d a b")]


def test_ctrl_c_stops_a_statement_and_the_shell_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    assert shell("press ctrl-c;", "\\watch 0", "select 2;").asked == ["press ctrl-c;", "press ctrl-c;", "select 2;"]
    out, err = capsys.readouterr()
    assert err.count("stopped\n") == 2 and out.count("orders") == 1


def test_ctrl_c_ends_a_watch(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading.Event, "wait", lambda event, timeout: signal.raise_signal(signal.SIGINT))
    assert shell("select 1;", "\\watch 3600", "select 2;").asked == ["select 1;", "select 1;", "select 2;"]
    assert "stopped" not in capsys.readouterr().err


def test_names_that_cannot_be_had_are_not_completed() -> None:
    def fail(text: str) -> list[SqlResult]:
        raise ConnectionFailed("nobody is there")

    completer = Completer(fail)
    assert [completer("ord", number) for number in range(2)] == ["order", None]


@pytest.fixture
def editor() -> Iterator[ModuleType]:
    """The line editor, which is as it was behind the test."""
    import readline

    readline.clear_history()
    yield readline
    readline.clear_history()
    readline.set_completer(None)
    readline.set_auto_history(True)


def test_the_history_is_kept_and_found_again(
    editor: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(HISTORY_VARIABLE, str(tmp_path / "history"))
    save = edit_lines(Engine())
    remember("select 1\nfrom orders;")
    remember("select 2 -- two\nfrom orders;")
    save()
    assert (tmp_path / "history").read_text() == "select 1 from orders;\nselect 2 -- two\nfrom orders;\n"
    editor.clear_history()
    edit_lines(Engine())
    assert editor.get_history_item(1) == "select 1 from orders;"


@pytest.mark.parametrize("place", ["", "no-such-directory/history"])
def test_a_history_that_cannot_be_kept_is_no_hindrance(
    editor: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(HISTORY_VARIABLE, place)
    save = edit_lines(Engine())
    remember("select 1;")
    save()
    assert list(tmp_path.iterdir()) == [] and editor.get_history_item(1) == "select 1;"


def test_a_python_without_a_line_editor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "readline", None)
    monkeypatch.setenv(HISTORY_VARIABLE, str(tmp_path / "history"))
    save = edit_lines(Engine())
    assert shell("select 1;").asked == ["select 1;"]
    save()
    assert list(tmp_path.iterdir()) == []
