"""Log lines for a person who watches: time of day, level, event, fields, in the colours that the terminal has."""

from __future__ import annotations

from logging import LogRecord
from typing import TextIO

from rich.console import Console
from rich.text import Text

from topics.server.logs import Lines, fields_of, redact, time_of, traceback_of

_LEVEL_STYLES = {"debug": "dim", "info": "green", "warning": "yellow", "error": "bold red", "critical": "bold red"}


class Drawing(Console):
    """Makes styled text. Other consoles end the process when they find that nobody reads."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError("nobody reads the log")


class PrettyLines(Lines):
    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._drawing = Drawing(stderr=True, force_terminal=stream.isatty())

    def text(self, record: LogRecord) -> str:
        level = record.levelname.lower()
        line = Text()
        line.append(time_of(record).astimezone().strftime("%H:%M:%S "), style="dim")
        line.append(f"{level:<8}", style=_LEVEL_STYLES.get(level, ""))
        line.append(redact(record.getMessage()), style="bold")
        for name, value in fields_of(record).items():
            line.append(f"  {name}=", style="cyan")
            line.append(str(value), style="default")
        if record.exc_info:
            line.append(f"\n{traceback_of(record)}", style="red")
        with self._drawing.capture() as captured:
            self._drawing.print(line, soft_wrap=True, end="")
        return captured.get()
