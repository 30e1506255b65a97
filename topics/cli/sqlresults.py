"""Results of statements on a screen: tables for a person, JSON lines or CSV for a program.

What is said beside the rows (what a statement did, records that were lost) goes to stderr; among JSON lines it is a
line of its own before the rows, with `message` or `tombstone`.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec
from rich.table import Table
from rich.text import Text

from topics.cli.lines import encode
from topics.cli.screen import Screen, counted, printable
from topics.sqlmodel import SqlResult, SqlTombstone

Format = Literal["table", "json", "csv"]

READABLE_CHARS = 16
"""What a wide value needs at least to be worth a column."""
WIDTH_ROWS = 100

_NUMBERS = ("BIGINT", "UBIGINT", "INTEGER", "DOUBLE", "HUGEINT", "FLOAT", "DECIMAL", "SMALLINT", "TINYINT")


def show_results(screen: Screen, results: Sequence[SqlResult], format: Format, took_ms: float | None = None) -> None:
    """All results of one text; a table says how long it took when that is known."""
    for number, result in enumerate(results, 1):
        last = took_ms if number == len(results) else None
        _show(screen, result, format, last)


def _show(screen: Screen, result: SqlResult, format: Format, took_ms: float | None) -> None:
    lost = result.tombstones or ([result.tombstone] if result.tombstone is not None else [])
    for each in lost:
        if format == "json":
            screen.lines([msgspec.json.encode({"tombstone": each})])
        else:
            screen.note(_loss(each), style="yellow")
    if result.message is not None and format == "json":
        screen.lines([msgspec.json.encode({"message": result.message})])
    elif result.message is not None:
        screen.note(result.message, style="green")
    if not result.columns:
        return
    if format == "json":
        screen.lines(_json_lines(result))
    elif format == "csv":
        screen.lines(_csv_lines(result))
    else:
        fits = _narrowest(result) <= screen.out.width
        screen.out.print(_table(result) if fits else _records(result))
        took = "" if took_ms is None else f", {took_ms:,.1f} ms"
        screen.note(f"{counted(result.row_count, 'row')}{took}")


def _loss(lost: SqlTombstone) -> str:
    what = f"{lost.topic} partition {lost.partition}: offsets {lost.gap_from} to {lost.gap_to}"
    return f"{what} are lost ({lost.reason.value})"


def _names(result: SqlResult) -> list[str]:
    """The names of the columns, each once: a second `a` is `a_2`."""
    seen: dict[str, int] = {}
    names = []
    for column in result.columns:
        count = seen[column.name] = seen.get(column.name, 0) + 1
        names.append(column.name if count == 1 else f"{column.name}_{count}")
    return names


def _json_lines(result: SqlResult) -> Iterator[bytes]:
    names = _names(result)
    for row in result.rows:
        yield encode(dict(zip(names, row, strict=True)))


def _csv_lines(result: SqlResult) -> Iterator[bytes]:
    for row in ([column.name for column in result.columns], *result.rows):
        line = _Line()
        csv.writer(line, lineterminator="").writerow(["" if value is None else _plain(value) for value in row])
        yield line.text.encode()


class _Line:
    """What a writer of CSV writes one row to."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> None:
        self.text += text


def _table(result: SqlResult) -> Table:
    table = Table(show_edge=False, header_style="bold", pad_edge=False)
    for column in result.columns:
        is_number = column.type.startswith(_NUMBERS)
        table.add_column(printable(column.name), justify="right" if is_number else "left", overflow="fold")
    for row in result.rows:
        table.add_row(*map(_shown, row))
    return table


def _narrowest(result: SqlResult) -> int:
    """Characters in a line of a table whose columns can still be read."""
    widths = []
    for at, column in enumerate(result.columns):
        widest = max((len(_plain(row[at])) for row in result.rows[:WIDTH_ROWS]), default=0)
        widths.append(max(len(column.name), min(widest, READABLE_CHARS)) + len(" │ "))
    return sum(widths)


def _records(result: SqlResult) -> Table:
    """A line a value, row after row, for what is too wide for a table."""
    table = Table(show_edge=False, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for number, row in enumerate(result.rows, 1):
        table.add_row(Text(f"row {number}", "dim"), "")
        for column, value in zip(result.columns, row, strict=True):
            table.add_row(printable(column.name), _shown(value))
    return table


def _shown(value: Any) -> Text:
    return Text("null", "dim") if value is None else Text(printable(_plain(value)))


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else encode(value).decode()
