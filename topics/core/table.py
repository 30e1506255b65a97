"""What may be registered as a table: checked completely before it is stored.

A location is stored as it is given and shown to whoever may see the table, so one with a password in it is refused.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlsplit

from topics.core.names import shorten
from topics.errors import InvalidRequest
from topics.limits import LOCATION_BYTES_MAX, NAME_BYTES_MAX, TABLE_COLUMNS_MAX, TABLE_OPTIONS_MAX
from topics.tablemodel import TableConfig, TableFormat

FILE_OPTIONS = (
    *("dateFormat", "encoding", "escape", "header", "multiLine", "pathGlobFilter", "quote", "recursiveFileLookup"),
    *("sep", "timestampFormat"),
)
"""What may be said about how Spark reads files. None of them can hold a secret."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEYWORD_PASSWORD = re.compile(r"(?:^|\s)(?:ssl)?password\s*=", re.IGNORECASE)
_SECRET_WORDS = ("password", "sslpassword", "secret", "token", "sig")


def check_config(name: str, config: TableConfig) -> None:
    """`InvalidRequest` when a table cannot be registered like this."""
    _check_location(config)
    _check_columns(config)
    if not config.key and not config.format.is_files:
        raise _wrong("key", f'table "{name}" needs a key: the columns that identify a row', "KEY (id)")
    if config.source and not config.format.is_database:
        raise _wrong("source", f"only a table of a database has a name of its own, not {config.format}", "no source")
    if len(config.source.encode()) > NAME_BYTES_MAX:
        raise _wrong("source", f"the name of a table has at most {NAME_BYTES_MAX} bytes", "a shorter name")
    _check_options(config)


def _check_location(config: TableConfig) -> None:
    location, variable = config.location, config.location_env
    if bool(location) == bool(variable):
        said = "says neither" if not location else "says both"
        raise _wrong(
            "location",
            f"a table has a location, or the name of an environment variable of the runner that holds it; this {said}",
            "location or location_env",
        )
    if variable and not _VARIABLE.fullmatch(variable):
        raise _wrong("location_env", f'"{shorten(variable)}" is no name of an environment variable', "such as PG_DSN")
    if len(location.encode()) > LOCATION_BYTES_MAX:
        raise _wrong("location", f"a location has at most {LOCATION_BYTES_MAX} bytes", "a shorter location")
    if has_secret(location, config.format):
        raise _wrong(
            "location",
            "the location has a password in it, which would be stored and shown; put the whole location into an "
            "environment variable of the runner and give its name in location_env (--dsn-env at the command line), or "
            "leave the password out and let the runner find it in ~/.pgpass or PGPASSWORD",
            "a location without a password",
        )


def has_secret(location: str, form: TableFormat) -> bool:
    """Whether a location has something in it that nobody should see."""
    if "://" in location:
        try:
            parts = urlsplit(location.strip())
            words = {word.lower() for word, _ in parse_qsl(parts.query, keep_blank_values=True)}
            return parts.password is not None or bool(words.intersection(_SECRET_WORDS))
        except ValueError:
            return True
    return form is TableFormat.POSTGRESQL and _KEYWORD_PASSWORD.search(location) is not None


def _check_columns(config: TableConfig) -> None:
    if len(config.columns) > TABLE_COLUMNS_MAX:
        raise _wrong("columns", f"a table has at most {TABLE_COLUMNS_MAX} columns", "fewer columns")
    names = [column.name for column in config.columns]
    for column in config.columns:
        if not column.name or not column.type:
            raise _wrong("columns", "a column has a name and a type", "a name and a type")
    for field, words in (("columns", names), ("key", list(config.key))):
        double = next((word for at, word in enumerate(words) if word.lower() in map(str.lower, words[:at])), None)
        if double is not None:
            raise _wrong(field, f"{field} names {shorten(double)} twice", "each column once")
    if any(not column for column in config.key):
        raise _wrong("key", "a column of the key has no name", "names of columns")
    missing = [column for column in config.key if names and column not in names]
    if missing:
        raise _wrong(
            "key", f"the table has no column {shorten(missing[0])}, which is in the key", ", ".join(names[:50])
        )


def _check_options(config: TableConfig) -> None:
    if len(config.options) > TABLE_OPTIONS_MAX:
        raise _wrong("options", f"a table has at most {TABLE_OPTIONS_MAX} options", "fewer options")
    if config.options and not config.format.is_files:
        raise _wrong("options", f"options are for files, and this table is {config.format}", "no options")
    for option, value in config.options.items():
        if option not in FILE_OPTIONS:
            raise _wrong("options", f"{shorten(option)} is no option of a table", ", ".join(FILE_OPTIONS))
        if len(value.encode()) > NAME_BYTES_MAX:
            raise _wrong("options", f"{option} has at most {NAME_BYTES_MAX} bytes", "a shorter value")


def _wrong(field: str, message: str, expected: str) -> InvalidRequest:
    return InvalidRequest(message, field=field, expected=expected)
