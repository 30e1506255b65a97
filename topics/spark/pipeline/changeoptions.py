"""What `format("topics_changes")` is told of a table: where it is, what identifies a row, where to begin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from topics.errors import InvalidRequest
from topics.tablemodel import TableFormat

NOW: Final = "now"
SNAPSHOT: Final = "snapshot"
VERSION: Final = "version"
_DEFAULTS: Final = {
    "table": "",
    "tableFormat": "delta",
    "location": "",
    "source": "",
    "key": "",
    "columns": "",
    "start": SNAPSHOT,
    "startVersion": "0",
    "sinceMs": "0",
    "spool": "",
    "versionsPerTrigger": "1000",
    "rowsPerTrigger": "200000",
    "bytesPerTrigger": str(16 << 20),
    "header": "true",
    "sep": ",",
}


@dataclass(frozen=True)
class ChangeOptions:
    """All of them. The location may have a password in it: it is in no repr."""

    table: str
    format: TableFormat
    location: str = field(repr=False)
    source: str = ""
    """What a database calls the table."""
    key: tuple[str, ...] = ()
    columns: str = ""
    """DDL of the rows, where files have no schema of their own."""
    start: str = SNAPSHOT
    start_version: int = 0
    since_ms: int = 0
    """With `now`: the moment that is meant."""
    spool: str = ""
    """A directory that drivers and tasks share, for what has to outlive a query."""
    versions_per_trigger: int = 1000
    rows_per_trigger: int = 200_000
    bytes_per_trigger: int = 16 << 20
    """Of the files of Delta, which are compressed: as JSON it is some ten times as much."""
    header: bool = True
    separator: str = ","


def parse_change_options(given: Mapping[str, str], preset: Mapping[str, str] | None = None) -> ChangeOptions:
    said = {name.lower(): value for name, value in {**(preset or {}), **given}.items()}
    values = {name: said.get(name.lower(), default) for name, default in _DEFAULTS.items()}
    if not values["location"]:
        raise _refuse("location", "", "where the table is: a path, an address or a connection string")
    try:
        kind = TableFormat(values["tableFormat"].lower())
    except ValueError:
        raise _refuse("tableFormat", values["tableFormat"], ", ".join(TableFormat)) from None
    start = values["start"].lower()
    if start not in (NOW, SNAPSHOT, VERSION):
        raise _refuse("start", values["start"], f"{NOW}, {SNAPSHOT} or {VERSION}")
    key = tuple(name.strip() for name in values["key"].split(",") if name.strip())
    if not key and not kind.is_files:
        raise _refuse("key", "", "the columns that identify a row, with commas between")
    if (kind.is_database or kind.is_files) and not values["spool"]:
        raise _refuse("spool", "", "a directory that outlives the query, such as one in its checkpoint")
    return ChangeOptions(
        table=values["table"] or values["source"] or kind.value,
        format=kind,
        location=values["location"],
        source=values["source"],
        key=key,
        columns=values["columns"],
        start=start,
        start_version=_number("startVersion", values["startVersion"]),
        since_ms=_number("sinceMs", values["sinceMs"]),
        spool=values["spool"],
        versions_per_trigger=max(1, _number("versionsPerTrigger", values["versionsPerTrigger"])),
        rows_per_trigger=max(1, _number("rowsPerTrigger", values["rowsPerTrigger"])),
        bytes_per_trigger=max(1, _number("bytesPerTrigger", values["bytesPerTrigger"])),
        header=values["header"].lower() == "true",
        separator=values["sep"],
    )


def _number(name: str, text: str) -> int:
    if not (text.strip().isascii() and text.strip().isdecimal()):
        raise _refuse(name, text, "a whole number from 0")
    return int(text)


def _refuse(name: str, value: str, expected: str) -> InvalidRequest:
    found = f'not "{value}"' if value else "and it is missing"
    return InvalidRequest(f"option {name} must be {expected}, {found}", field=name, expected=expected)
