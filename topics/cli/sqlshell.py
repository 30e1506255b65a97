"""The shell of `topics sql`: lines become statements at a semicolon, results become tables.

    \\d [NAME]             the topics, or the options of one
    \\watch [SECONDS [N]]  the last statement again and again, until Ctrl-C or N times
    \\x                    JSON lines instead of tables, and back
    \\q                    leave, as Ctrl-D does

What was typed is kept in ~/.topics_sql_history, or in the file that TOPICS_SQL_HISTORY names. Tab completes words of
the language, names of topics and system tables.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from os import environ

from topics.cli.complaint import complain
from topics.cli.screen import Screen
from topics.cli.sqlresults import Format, show_results
from topics.clock import SystemClock
from topics.errors import TopicsError
from topics.sql.words import SYSTEM_TABLES, WORDS, ends
from topics.sqlmodel import SqlResult

PROMPT = "topics> "
MORE_PROMPT = "     -> "
WATCH_SECONDS = 2.0
HISTORY_MAX = 1000
HISTORY_VARIABLE = "TOPICS_SQL_HISTORY"
HELP = "Statements end with ;   \\d [NAME]  \\watch [SECONDS [TIMES]]  \\x  \\q   See docs/SQL.md"

Run = Callable[[str], list[SqlResult]]
"""Runs a text of statements."""


class Shell:
    def __init__(self, run: Run, screen: Screen, format: Format, ask: Callable[[str], str] = input) -> None:
        self._run = run
        self._screen = screen
        self._format = format
        self._ask = ask
        self._last = ""
        self._clock = SystemClock()
        self._pause = threading.Event()
        """Never set: waiting for it is waiting for a time, or for Ctrl-C."""

    def loop(self) -> None:
        """Until the input ends or says so."""
        self._screen.note(HELP)
        typed = ""
        while True:
            try:
                line = self._ask(MORE_PROMPT if typed else PROMPT)
            except EOFError:
                self._screen.errors.print()
                return
            except KeyboardInterrupt:
                typed = ""
                self._screen.errors.print()
                continue
            if not typed and line.strip().startswith("\\"):
                if line.split()[0] == "\\q":
                    return
                self._command(line.split())
                continue
            typed = f"{typed}\n{line}" if typed else line
            if not typed.strip() or ends(typed):
                if typed.strip():
                    self._last = typed
                    remember(typed)
                    self._try(typed)
                typed = ""

    def _command(self, words: list[str]) -> None:
        match words:
            case ["\\d"]:
                self._try("SHOW TOPICS")
            case ["\\d", name]:
                self._try('DESCRIBE TOPIC "' + name.replace('"', '""') + '"')
            case ["\\x"]:
                self._format = "table" if self._format == "json" else "json"
            case ["\\watch", *numbers] if len(numbers) <= 2 and all(map(_is_number, numbers)):
                seconds = float(numbers[0]) if numbers else WATCH_SECONDS
                self._watch(seconds, int(float(numbers[1])) if len(numbers) == 2 else None)
            case ["\\?"]:
                self._screen.note(HELP)
            case _:
                self._screen.note(f"{' '.join(words)} is not understood here. {HELP}", "yellow")

    def _watch(self, seconds: float, times: int | None) -> None:
        if not self._last:
            self._screen.note("there is nothing to watch yet: run a statement first")
            return
        count = 0
        try:
            while self._try(self._last) and (times is None or (count := count + 1) < times):
                self._pause.wait(seconds)
        except KeyboardInterrupt:
            self._screen.errors.print()

    def _try(self, text: str) -> bool:
        """Run a text and show what comes of it; whether it worked."""
        began_ns = self._clock.ticks_ns()
        try:
            results = self._run(text)
        except TopicsError as error:
            complain(error)
            return False
        except KeyboardInterrupt:
            self._screen.note("stopped")
            return False
        show_results(self._screen, results, self._format, (self._clock.ticks_ns() - began_ns) / 1e6)
        return True


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdecimal()


# ---- the line editor


def edit_lines(run: Run) -> Callable[[], None]:
    """Have lines edited, remembered and completed, where there is a line editor; call the answer at the end."""
    try:
        import readline
    except ImportError:
        return lambda: None
    path = history_path()
    if path:
        try:
            readline.read_history_file(path)
        except OSError:
            # There is none yet, or nobody may read it.
            readline.clear_history()
    readline.set_auto_history(False)
    readline.set_history_length(HISTORY_MAX)
    readline.set_completer_delims(" \t\n,;()=")
    readline.set_completer(Completer(run))
    readline.parse_and_bind("tab: complete")

    def save() -> None:
        if path:
            try:
                readline.write_history_file(path)
            except OSError:
                return

    return save


def remember(text: str) -> None:
    """One entry for what may have been several lines."""
    try:
        import readline
    except ImportError:
        return
    readline.add_history(text if "--" in text else " ".join(text.split("\n")))


def history_path() -> str:
    """Where the history is kept; empty is nowhere."""
    home = environ.get("HOME", "")
    return environ.get(HISTORY_VARIABLE, f"{home}/.topics_sql_history" if home else "")


class Completer:
    """What a line editor asks: the first word that fits, the second, …, None."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._found: list[str] = []

    def __call__(self, typed: str, number: int) -> str | None:
        if number == 0:
            self._found = self._matching(typed)
        return self._found[number] if number < len(self._found) else None

    def _matching(self, typed: str) -> list[str]:
        upper = typed.upper()
        words = [word if typed.isupper() else word.lower() for word in WORDS if typed and word.startswith(upper)]
        bare = typed.strip('"')
        names = [name for name in [*SYSTEM_TABLES, *self._topics()] if name.startswith(bare)]
        return [*words, *(name if _is_bare(name) else f'"{name}"' for name in names)]

    def _topics(self) -> list[str]:
        try:
            (result,) = self._run("SHOW TOPICS")
        except TopicsError:
            # Nobody types faster because of an error now; the statement will say it.
            return []
        return [row[0] for row in result.rows]


def _is_bare(name: str) -> bool:
    return all(part.isidentifier() and part.isascii() for part in name.split("."))
