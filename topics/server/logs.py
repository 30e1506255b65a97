"""The server's log: lines with an event, fields and no secrets, as JSON or for people.

A line is made anywhere by the standard library, with its fields beside the event:

    logging.getLogger(__name__).info("ready", extra=fields(topics=3))

`configure` decides, once a process, how lines look and which are written. Whatever looks like a credential is struck
out of every text in a line, whoever wrote it. A line that cannot be written, because nobody reads the pipe any more or
the disk is full, is lost: serving goes on without it.
"""

from __future__ import annotations

import logging
import re
from abc import ABC, abstractmethod
from datetime import UTC, datetime

import msgspec
from rich.console import Console
from rich.text import Text

from topics.settings import Settings

LOGGERS = ("topics", "asyncio")
"""Ours, and the one where the event loop says what nobody caught."""
_CREDENTIAL = re.compile(r"(?i)(\bbearer(?:\s|%20)+)\S+|(\btoken=)[^\s&]+")
_LEVEL_STYLES = {"debug": "dim", "info": "green", "warning": "yellow", "error": "bold red", "critical": "bold red"}


def fields(**values: object) -> dict[str, object]:
    """The fields of a line, for the `extra` of a logging call."""
    return {"fields": values}


def redact(text: str) -> str:
    return _CREDENTIAL.sub(r"\1\2***", text)


def configure(settings: Settings, console: Console) -> None:
    """Write the lines of this package and of the event loop to a console, and nowhere else."""
    pretty = settings.log_format == "pretty" or (settings.log_format == "auto" and console.is_terminal)
    handler = Pretty(console) if pretty else JsonLines(console)
    for name in LOGGERS:
        logger = logging.getLogger(name)
        logger.setLevel(settings.log_level.upper())
        logger.propagate = False
        for earlier in logger.handlers[:]:
            logger.removeHandler(earlier)
        logger.addHandler(handler)


class Lines(logging.Handler, ABC):
    """Writes what `text` makes of each record."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self.console = console

    @abstractmethod
    def text(self, record: logging.LogRecord) -> str: ...

    def emit(self, record: logging.LogRecord) -> None:
        try:
            # One write a line, so that lines of several threads do not run into each other.
            self.console.file.write(self.text(record) + "\n")
            self.console.file.flush()
        except OSError:
            self.handleError(record)


class JsonLines(Lines):
    """One JSON object a line: `time`, `level`, `logger`, `event`, then the fields."""

    def text(self, record: logging.LogRecord) -> str:
        line = {
            "time": _time(record).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": redact(record.getMessage()),
            **_fields(record),
        }
        if record.exc_info:
            line["traceback"] = _traceback(record)
        return msgspec.json.encode(line).decode()


class Drawing(Console):
    """Makes styled text. Other consoles end the process when they find that nobody reads."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError("nobody reads the log")


class Pretty(Lines):
    """For a person who watches: time of day, level, event, fields."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._drawing = Drawing(stderr=True, force_terminal=console.is_terminal)

    def text(self, record: logging.LogRecord) -> str:
        level = record.levelname.lower()
        line = Text()
        line.append(_time(record).astimezone().strftime("%H:%M:%S "), style="dim")
        line.append(f"{level:<8}", style=_LEVEL_STYLES.get(level, ""))
        line.append(redact(record.getMessage()), style="bold")
        for name, value in _fields(record).items():
            line.append(f"  {name}=", style="cyan")
            line.append(str(value), style="default")
        if record.exc_info:
            line.append(f"\n{_traceback(record)}", style="red")
        with self._drawing.capture() as captured:
            self._drawing.print(line, soft_wrap=True, end="")
        return captured.get()


def _time(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)


def _fields(record: logging.LogRecord) -> dict[str, object]:
    given = record.__dict__.get("fields")
    return {name: _safe(value) for name, value in given.items()} if isinstance(given, dict) else {}


def _safe(value: object) -> object:
    """A value that JSON knows, without credentials."""
    match value:
        case bool() | int() | float() | None:
            return value
        case dict():
            return {str(name): _safe(each) for name, each in value.items()}
        case list() | tuple():
            return [_safe(each) for each in value]
        case _:
            return redact(str(value))


def _traceback(record: logging.LogRecord) -> str:
    assert record.exc_info
    return redact(logging.Formatter().formatException(record.exc_info))
