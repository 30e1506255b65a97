"""The shell with a person made of lines, and once with a terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.rig import spawn
from tests.cli.terminal import CTRL_D, Terminal
from topics.cli.screen import Screen
from topics.cli.sqlshell import HISTORY_VARIABLE, Completer, Shell, history_path
from topics.errors import InvalidSql
from topics.sqlmodel import SqlColumn, SqlResult


class Engine:
    """Remembers what it was asked, and answers one row."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, text: str) -> list[SqlResult]:
        self.asked.append(text)
        if "wrong" in text:
            raise InvalidSql("line 1, column 1: wrong\n  wrong\n  ^^^^^")
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
