"""The columns of a lake: what the source gives of a record, the life of its topic, and the day it was written.

A lake is one Delta table for any number of topics. A record is named by topic, epoch, partition and seq; `epoch` tells
lives of a name apart, as everywhere. A loss is a row as well: `gap_from`, `gap_to` and `gap_reason` say what and why,
`seq` is the first seq that is missing, and everything else is null. `date` is the day of `ts` in UTC, of a gap the day
it was archived.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

SCHEMA: Final = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("epoch", pa.int64()),
        pa.field("partition", pa.int32()),
        pa.field("seq", pa.int64()),
        pa.field("ts", pa.timestamp("us", tz="UTC")),
        pa.field("node", pa.string()),
        pa.field("tag", pa.string()),
        pa.field("meta", pa.string()),
        pa.field("data", pa.string()),
        pa.field("gap_from", pa.int64()),
        pa.field("gap_to", pa.int64()),
        pa.field("gap_reason", pa.string()),
        pa.field("date", pa.string()),
    ]
)
LAYOUTS: Final = {"topic,date": ("topic", "date"), "topic": ("topic",), "date": ("date",)}
"""How the files of a lake are divided into directories, by what a user says."""
STATISTICS: Final = ("seq", "ts", "epoch", "partition", "gap_to")
"""Columns whose bounds are in the table's log. Never text: what is erased must not be left there."""
_DAY: Final = "%Y-%m-%d"


def stored_schema(layout: tuple[str, ...]) -> Any:
    """What is in the files: all but what their directories say."""
    return pa.schema([field for field in SCHEMA if field.name not in layout])


def lake_rows(batch: Any, epoch: int, now_ms: int) -> Any:
    """A batch of the source, as rows of a lake."""
    columns = {name: batch.column(name) for name in batch.schema.names}
    gaps = columns["gap"]
    for name, field in (("gap_from", "from_seq"), ("gap_to", "to_seq"), ("gap_reason", "reason")):
        columns[name] = pc.struct_field(gaps, field)
    columns["epoch"] = pa.repeat(pa.scalar(epoch, pa.int64()), batch.num_rows)
    today = pa.scalar(now_ms, pa.timestamp("ms", tz="UTC"))
    columns["date"] = pc.fill_null(pc.strftime(columns["ts"], _DAY), pc.strftime(today, _DAY))
    return pa.RecordBatch.from_arrays([columns[field.name].cast(field.type) for field in SCHEMA], schema=SCHEMA)


def day_at(now_ms: int) -> str:
    """The day in UTC that a time lies in."""
    return str(pc.strftime(pa.scalar(now_ms, pa.timestamp("ms", tz="UTC")), _DAY).as_py())
