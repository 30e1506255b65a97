"""The server's log: lines with an event, fields and no secrets, as JSON or for people.

A line is made anywhere by the standard library, with its fields beside the event:

    logging.getLogger(__name__).info("ready", extra=fields(topics=3))

`configure` decides, once a process, how lines look and which are written. Whatever looks like a credential is struck
out of the finished line, wherever in it it stands: the last place before it leaves the process.
"""

from __future__ import annotations

import logging
import re
from datetime import UTC, datetime

import msgspec
from rich.console import Console
from rich.text import Text

from topics.settings import Settings

ROOT = "topics"
_CREDENTIAL = re.compile(r"(?i)(\bbearer(?:\s|%20|\+)+|\btoken=)[^\s\"'&,;]+")
_LEVEL_STYLES = {"debug": "dim", "info": "green", "warning": "yellow", "error": "bold red", "critical": "bold red"}


def fields(**values: object) -> dict[str, object]:
    """The fields of a line, for the `extra` of a logging call."""
    return {"fields": values}


def redact(text: str) -> str:
    return _CREDENTIAL.sub(r"\1***", text)


def configure(settings: Settings, console: Console) -> None:
    """Write the lines of this package to a console, and nowhere else."""
    pretty = settings.log_format == "pretty" or (settings.log_format == "auto" and console.is_terminal)
    logger = logging.getLogger(ROOT)
    logger.setLevel(settings.log_level.upper())
    logger.propagate = False
    for handler in logger.handlers[:]:
        logger.removeHandler(handler)
    logger.addHandler(Pretty(console) if pretty else JsonLines(console))


class JsonLines(logging.Handler):
    """One JSON object a line: `time`, `level`, `logger`, `event`, then the fields."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._file = console.file

    def emit(self, record: logging.LogRecord) -> None:
        line = {
            "time": _time(record).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            line["traceback"] = _traceback(record)
        # One write a line, so that lines of several threads do not run into each other.
        self._file.write(redact(msgspec.json.encode(line, enc_hook=str).decode()) + "\n")
        self._file.flush()


class Pretty(logging.Handler):
    """For a person who watches: time of day, level, event, fields."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        level = record.levelname.lower()
        line = Text(_time(record).astimezone().strftime("%H:%M:%S "), style="dim")
        line.append(f"{level:<8}", style=_LEVEL_STYLES.get(level, ""))
        line.append(redact(record.getMessage()), style="bold")
        for name, value in _fields(record).items():
            line.append(f"  {name}=", style="cyan")
            line.append(redact(str(value)), style="default")
        if record.exc_info:
            line.append(f"\n{redact(_traceback(record))}", style="red")
        self._console.print(line, soft_wrap=True)


def _time(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)


def _fields(record: logging.LogRecord) -> dict[str, object]:
    given = record.__dict__.get("fields")
    return dict(given) if isinstance(given, dict) else {}


def _traceback(record: logging.LogRecord) -> str:
    assert record.exc_info
    return logging.Formatter().formatException(record.exc_info)
