"""What a server answers to statements, as DataFrames: a column as SQL calls its type, and a row for a word on what was
done where there are no columns.

Rows are few (a CONSUME has a limit, a listing the length of what there is), and the frames hold them: what was consumed
is consumed once, however often the DataFrame is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa

from topics.sql.systemcolumns import FLAG, JSON, LARGE, REAL, TIME, WHOLE
from topics.sqlmodel import SqlColumn, SqlTombstone

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MESSAGE: Final = "message"

_TYPES: Final = {
    WHOLE: pa.int64(),
    LARGE: pa.decimal128(20),
    FLAG: pa.bool_(),
    REAL: pa.float64(),
    TIME: pa.timestamp("us", tz="UTC"),
}


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one statement."""

    frame: DataFrame
    message: str | None
    """In words, what a statement without rows did."""
    tombstones: tuple[SqlTombstone, ...]
    """Records that were lost before the statement could read them."""


class _Result(msgspec.Struct):
    columns: list[SqlColumn]
    rows: list[list[msgspec.Raw]]
    message: str | None = None
    tombstone: SqlTombstone | None = None
    tombstones: tuple[SqlTombstone, ...] = ()


class _Results(msgspec.Struct):
    results: list[_Result]


_decoder = msgspec.json.Decoder(_Results)


def arrow_type(sql_type: str) -> Any:
    """The type of a column that SQL calls so; what has no other is text."""
    return _TYPES.get(sql_type, pa.string())


def answers(spark: SparkSession, body: bytes) -> list[Answer]:
    """An answer for each statement of a request."""
    return [_answer(spark, result) for result in _decoder.decode(body).results]


def _answer(spark: SparkSession, result: _Result) -> Answer:
    told = result.tombstones or (() if result.tombstone is None else (result.tombstone,))
    return Answer(spark.createDataFrame(_table(result)), result.message, told)


def _table(result: _Result) -> Any:
    if not result.columns:
        return pa.table({MESSAGE: pa.array([result.message], pa.string())})
    return pa.table(
        {
            column.name: _column(column.type, [row[at] for row in result.rows])
            for at, column in enumerate(result.columns)
        }
    )


def _column(sql_type: str, cells: Sequence[msgspec.Raw]) -> Any:
    if sql_type == JSON:
        texts = [bytes(cell).decode() for cell in cells]
        return pa.array([None if text == "null" else text for text in texts], pa.string())
    values = msgspec.json.decode(b"[%b]" % b",".join(map(bytes, cells)))
    if sql_type == TIME:
        values = [None if value is None else datetime.fromisoformat(value) for value in values]
    if sql_type not in _TYPES:
        said = zip(values, cells, strict=True)
        values = [value if value is None or isinstance(value, str) else bytes(cell).decode() for value, cell in said]
    return pa.array(values, arrow_type(sql_type))
