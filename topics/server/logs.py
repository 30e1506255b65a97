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
from typing import TextIO

import msgspec

from topics.settings import Settings

LOGGERS = ("topics", "asyncio", "opentelemetry")
"""Ours, the one where the event loop says what nobody caught, and the one where spans are complained about."""
_CREDENTIAL = re.compile(r"(?i)(\bbearer(?:\s|%20)+)\S+|(\btoken=)[^\s&]+")


def fields(**values: object) -> dict[str, object]:
    """The fields of a line, for the `extra` of a logging call."""
    return {"fields": values}


def redact(text: str) -> str:
    return _CREDENTIAL.sub(r"\1\2***", text)


def configure(settings: Settings, stream: TextIO) -> None:
    """Write the lines of this package, of the event loop and of the tracing to a stream, and nowhere else."""
    pretty = settings.log_format == "pretty" or (settings.log_format == "auto" and stream.isatty())
    handler = _pretty(stream) if pretty else JsonLines(stream)
    for name in LOGGERS:
        logger = logging.getLogger(name)
        logger.setLevel(settings.log_level.upper())
        logger.propagate = False
        for earlier in logger.handlers[:]:
            logger.removeHandler(earlier)
        logger.addHandler(handler)


def _pretty(stream: TextIO) -> Lines:
    # A server that nobody watches starts without what draws for people.
    from topics.server.prettylines import PrettyLines

    return PrettyLines(stream)


class Lines(logging.Handler, ABC):
    """Writes what `text` makes of each record."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self.stream = stream

    @abstractmethod
    def text(self, record: logging.LogRecord) -> str: ...

    def emit(self, record: logging.LogRecord) -> None:
        try:
            # One write a line, so that lines of several threads do not run into each other.
            self.stream.write(self.text(record) + "\n")
            self.stream.flush()
        except OSError:
            self.handleError(record)


class JsonLines(Lines):
    """One JSON object a line: `time`, `level`, `logger`, `event`, then the fields."""

    def text(self, record: logging.LogRecord) -> str:
        line = {
            "time": time_of(record).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": redact(record.getMessage()),
            **fields_of(record),
        }
        if record.exc_info:
            line["traceback"] = traceback_of(record)
        return msgspec.json.encode(line).decode()


def time_of(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)


def fields_of(record: logging.LogRecord) -> dict[str, object]:
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


def traceback_of(record: logging.LogRecord) -> str:
    assert record.exc_info
    return redact(logging.Formatter().formatException(record.exc_info))
