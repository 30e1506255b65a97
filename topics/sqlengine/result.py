"""The result of a statement on its way out: as JSON text, or as an Arrow stream.

Rows that statements of our own make are Python lists. A query's result comes from its process in the form that the
client asked for, and passes through as bytes. Values of JSON columns are text all the way, and stand in the answer as
they were written.
"""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import msgspec

from topics.errors import InvalidSql
from topics.sqlmodel import SqlColumn, SqlResult, SqlTombstone

JSON_TYPE = "JSON"

Buffer = bytes | bytearray | memoryview

_encoder = msgspec.json.Encoder(decimal_format="number")
_decoder = msgspec.json.Decoder(list[SqlResult])


@dataclass(frozen=True, slots=True)
class Result:
    columns: tuple[SqlColumn, ...] = ()
    rows: Sequence[Sequence[Any]] = ()
    message: str | None = None
    tombstones: tuple[SqlTombstone, ...] = ()
    text: bytes | bytearray | None = None
    """Of a query in place of columns and rows: columns, rows and their count as a JSON object."""
    stream: bytes | bytearray | None = None
    """Of a query in place of columns and rows: an Arrow stream."""

    @property
    def answer_bytes(self) -> int:
        """How much the answer of a query is, or of a statement that shows as much as there is."""
        return len(self.text or self.stream or b"")

    def encode(self) -> bytes:
        """As it stands in an answer."""
        beside: dict[str, object] = {}
        if self.message is not None:
            beside["message"] = self.message
        if self.tombstones:
            beside["tombstone"] = self.tombstones[0]
        if len(self.tombstones) > 1:
            beside["tombstones"] = self.tombstones
        if self.text is None:
            assert self.stream is None, "a query was asked for as an Arrow stream"
            return _encoder.encode({"columns": self.columns, "rows": self.rows, "row_count": len(self.rows), **beside})
        if not beside:
            return bytes(self.text)
        return b",".join((memoryview(self.text)[:-1], _encoder.encode(beside)[1:]))

    def arrow(self) -> bytes:
        """As an Arrow stream, whose schema says in `message` and `tombstones` what JSON would say beside the rows."""
        assert self.text is None, "a query was asked for as JSON"
        said = {}
        if self.message is not None:
            said["message"] = self.message
        if self.tombstones:
            said["tombstones"] = _encoder.encode(self.tombstones).decode()
        if self.stream is not None and not said:
            return bytes(self.stream)
        import pyarrow as pa

        if self.stream is not None:
            table = pa.ipc.open_stream(self.stream).read_all()
        else:
            table = _as_table(self.columns, self.rows)
        if said:
            table = table.replace_schema_metadata(said)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return bytes(sink.getvalue())


class RowsText:
    """A result as JSON, written some rows at a time: columns, rows and their count."""

    def __init__(self, named: Sequence[SqlColumn]) -> None:
        self._pieces: list[Buffer] = [b'{"columns":%b,"rows":[' % _encoder.encode(named)]
        self._count = 0

    def add(self, rows: Sequence[Sequence[Any]]) -> int:
        """Add rows; how many bytes they are."""
        if not rows:
            return 0
        text = memoryview(_encoder.encode(rows))[1:-1]
        self._pieces += [b"," if self._count else b"", text]
        self._count += len(rows)
        return len(text)

    def parts(self) -> list[Buffer]:
        """The whole text."""
        return [*self._pieces, b'],"row_count":%d}' % self._count]

    def end(self) -> bytes:
        return b"".join(self.parts())


def columns(*named: tuple[str, str]) -> tuple[SqlColumn, ...]:
    return tuple(SqlColumn(name, kind) for name, kind in named)


def encode_results(results: Iterable[Result]) -> bytes:
    """An array of results."""
    return b"[%b]" % b",".join(result.encode() for result in results)


def as_values(results: Iterable[Result]) -> list[SqlResult]:
    """The results as somebody elsewhere gets them."""
    return _decoder.decode(encode_results(results))


def table_rows(table: Any, named: Sequence[SqlColumn]) -> list[list[Any]]:
    """The rows of an Arrow table or batch, of values that JSON has."""
    made = []
    for column, about in zip(table.columns, named, strict=True):
        try:
            values = column.to_pylist()
        except OverflowError as error:
            raise InvalidSql(
                f"column {about.name} has a time that is not within the years 1 to 9999, and as JSON it has none: "
                f"CAST({about.name} AS VARCHAR)"
            ) from error
        if about.type == JSON_TYPE:
            made.append([None if value is None else msgspec.Raw(value.encode()) for value in values])
        elif _is_plain(column.type):
            made.append(values)
        else:
            made.append([_plain(value) for value in values])
    return [list(row) for row in zip(*made, strict=True)]


def _is_plain(kind: Any) -> bool:
    import pyarrow as pa

    types = pa.types
    return bool(types.is_integer(kind) or types.is_string(kind) or types.is_boolean(kind) or types.is_null(kind))


def _plain(value: Any) -> Any:
    """A value as JSON has it: times as text in UTC, bytes as base64, what is no number as its name."""
    match value:
        case float():
            return value if math.isfinite(value) else str(value)
        case Decimal():
            return int(value) if value == value.to_integral_value() else value
        case datetime():
            return _time(value)
        case date() | time():
            return value.isoformat()
        case timedelta():
            return str(value)
        case bytes():
            return b64encode(value).decode()
        case dict():
            return {str(name): _plain(each) for name, each in value.items()}
        case tuple() if hasattr(value, "nanoseconds"):
            return _interval(*value)
        case list() | tuple():
            return [_plain(each) for each in value]
        case None | bool() | int() | str():
            return value
        case _:
            return str(value)


def _time(value: datetime) -> str:
    precision = "microseconds" if value.microsecond % 1000 else "milliseconds"
    if value.tzinfo is None:
        return value.isoformat(timespec=precision)
    return value.astimezone(UTC).isoformat(timespec=precision).removesuffix("+00:00") + "Z"


def _interval(months: int, days: int, nanoseconds: int) -> str:
    return f"{months} months {days} days {nanoseconds / 1e9:g} seconds"


def iso_time(time_ms: int) -> str:
    """Milliseconds since 1970 as text."""
    try:
        return _time(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=time_ms))
    except OverflowError:
        return str(time_ms)


_ARROW = {"BIGINT": "int64", "UBIGINT": "uint64", "INTEGER": "int32", "BOOLEAN": "bool_", "DOUBLE": "float64"}


def _as_table(named: Sequence[SqlColumn], rows: Sequence[Sequence[Any]]) -> Any:
    import pyarrow as pa

    arrays = []
    fields = []
    for at, column in enumerate(named):
        kind = getattr(pa, _ARROW.get(column.type, "string"))()
        values = [bytes(value).decode() if isinstance(value, msgspec.Raw) else value for value in (r[at] for r in rows)]
        metadata = {"ARROW:extension:name": "arrow.json"} if column.type == JSON_TYPE else None
        arrays.append(pa.array(values, kind))
        fields.append(pa.field(column.name, kind, metadata=metadata))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))
