"""Changes of a table of PostgreSQL or SQLite as a stream, out of the outbox that its triggers fill.

    {"id": 4711}                                    everything up to and with this id
    {"id": 17, "seen": "7:9:8"}                     the same behind a snapshot, and what that snapshot had seen already
    {"id": 17, "seen": "7:9:8", "rows": "…", …}     within the rows of that snapshot, put aside by snapshots.py
    {"start": "snapshot"}                           nothing yet; the first batches are the table

Rows are JSON text, as the database wrote them; an update that changes the key of a row is a delete and an insert.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import LongType, StringType, StructField, StructType

from topics.cdc.opening import opened
from topics.cdc.outbox import Change, Outbox, Place, Snapshot
from topics.cdc.postgres import PostgresOutbox
from topics.cdc.sqlite import SqliteOutbox
from topics.clock import SystemClock
from topics.spark.pipeline.changeoptions import SNAPSHOT, VERSION, ChangeOptions
from topics.spark.pipeline.snapshots import Part, Snapshots, is_within, part_between
from topics.spark.pipeline.stops import NotCaptured, PositionGone, TableChanged
from topics.sql.sparktext import spark_name
from topics.tablemodel import TableColumn, TableFormat

PAGE_ROWS: Final = 10_000
SCHEMA: Final = StructType(
    [
        StructField("op", StringType()),
        StructField("before", StringType()),
        StructField("after", StringType()),
        StructField("position", StringType()),
        StructField("ts", LongType()),
    ]
)
_ARROW: Final = pa.schema(
    [
        ("op", pa.string()),
        ("before", pa.string()),
        ("after", pa.string()),
        ("position", pa.string()),
        ("ts", pa.int64()),
    ]
)
_rows = msgspec.json.Decoder(dict[str, msgspec.Raw])


@dataclass(frozen=True)
class Ids(InputPartition):
    """What one task reads: ids behind a place, up to and with one."""

    after: int
    seen: str
    upto: int


def ddl_of(columns: Sequence[TableColumn]) -> str:
    return ", ".join(f"{spark_name(each.name)} {each.type}" for each in columns)


def database_ddl(options: ChangeOptions) -> str:
    """The columns of the table as the database has them now."""
    with opened(options.location, options.format) as outbox:
        return ddl_of(outbox.columns(options.source))


class OutboxReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: ChangeOptions) -> None:
        self._options = options
        self._outbox: Outbox | None = None
        self._end: int | None = None
        """With AvailableNow: where the query stops."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_outbox": None}

    def initialOffset(self) -> dict[str, Any]:
        if self._options.start == SNAPSHOT:
            return {"start": SNAPSHOT}
        # From NOW: what is older is left out by its time, and where it ends need not be known.
        return {"id": max(0, self._options.start_version - 1) if self._options.start == VERSION else 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._end = self._opened().settled(self._options.source)

    def reportLatestOffset(self) -> dict[str, Any]:
        return {"id": self._opened().settled(self._options.source)}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        options, outbox = self._options, self._opened()
        settled = outbox.settled(options.source)
        # Behind the ids, not before them: a row that is there has no column that is not seen here.
        self._check_columns(outbox)
        if start.get("start") == SNAPSHOT:
            return self._snapshots.further(self._take_snapshot(outbox))
        if is_within(start):
            return self._snapshots.further(start)
        place = _place(start)
        if settled < place.id and not place.snapshot:
            self._refuse_anew(outbox, place.id)
        upto = settled if self._end is None else min(settled, self._end)
        waiting = outbox.changes(options.source, place, upto, 1) if upto > place.id else []
        if not waiting:
            return start
        last = min(upto, waiting[0].id + options.rows_per_trigger - 1)
        return {"id": last, "seen": place.snapshot} if place.snapshot else {"id": last}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        if start.get("start") == SNAPSHOT or is_within(start):
            part = part_between(start, end)
            return [part] if part is not None else []
        place = _place(start)
        return [Ids(place.id, place.snapshot, int(end["id"]))]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        if isinstance(partition, Part):
            yield from (batch for _, batch in self._snapshots.read(partition))
            return
        assert isinstance(partition, Ids)
        place = Place(partition.after, partition.seen)
        with opened(self._options.location, self._options.format) as outbox:
            while changes := outbox.changes(self._options.source, place, partition.upto, PAGE_ROWS):
                yield pa.RecordBatch.from_pylist(
                    [row for change in changes for row in told(change, self._options.key)], schema=_ARROW
                )
                place = Place(changes[-1].id, partition.seen)

    def commit(self, end: dict[str, Any]) -> None:
        self._snapshots.forget(end)

    def stop(self) -> None:
        if self._outbox is not None:
            self._outbox.close()
            self._outbox = None

    def _opened(self) -> Outbox:
        """One connection for the driver's questions: what is settled is learnt over time."""
        if self._outbox is None:
            is_postgres = self._options.format is TableFormat.POSTGRESQL
            self._outbox = (PostgresOutbox if is_postgres else SqliteOutbox)(self._options.location)
        self._check_captured(self._outbox)
        return self._outbox

    @property
    def _snapshots(self) -> Snapshots:
        return Snapshots(self._options.spool, self._options.rows_per_trigger)

    def _take_snapshot(self, outbox: Outbox) -> dict[str, Any]:
        with outbox.snapshot(self._options.source) as snapshot:
            kept = self._snapshots.keep(_ARROW, _inserts(snapshot))
            return {"id": snapshot.place.id, "seen": snapshot.place.snapshot, **kept}

    def _check_captured(self, outbox: Outbox) -> None:
        """Asked each time: an outbox without triggers looks like a table to which nothing happens."""
        source = self._options.source
        if not outbox.is_captured(source):
            raise NotCaptured(
                f'the changes of table "{self._options.table}" are not captured: `topics cdc install DATABASE --table '
                f"{source}` begins with it. They count from then on; ALTER TOPIC … ADD SOURCE … FROM SNAPSHOT has what "
                "the table is by then as well",
                table=self._options.table,
            )

    def _check_columns(self, outbox: Outbox) -> None:
        found = ddl_of(outbox.columns(self._options.source))
        if found != self._options.columns:
            raise TableChanged(
                f'the columns of table "{self._options.table}" were {self._options.columns} and are {found} now',
                table=self._options.table,
            )

    def _refuse_anew(self, outbox: Outbox, position: int) -> None:
        """An outbox that is behind what was read already was made anew; one that only has to settle is not."""
        captured = outbox.status(self._options.source)
        if captured and captured[0].last_id >= position:
            return
        raise PositionGone(
            f'the outbox of table "{self._options.table}" has nothing up to id {position}, which was read already: it '
            "was made anew. Say where to go on: ALTER TOPIC … ADD SOURCE … FROM SNAPSHOT",
            table=self._options.table,
        )


def told(change: Change, key: Sequence[str]) -> list[dict[str, Any]]:
    """A change as rows of the stream: one, or two when the key itself was changed."""
    row = {"op": change.operation, "before": change.before, "after": change.after, "ts": change.ts}
    if change.operation == "update" and change.before is not None and change.after is not None:
        old, new = _rows.decode(change.before), _rows.decode(change.after)
        if any(old.get(name) != new.get(name) for name in key):
            return [
                {**row, "op": "delete", "after": None, "position": f"i{change.id}.0"},
                {**row, "op": "insert", "before": None, "position": f"i{change.id}.1"},
            ]
    return [{**row, "position": f"i{change.id}"}]


def _inserts(snapshot: Snapshot) -> Iterator[Any]:
    """The rows of a table as changes."""
    now_ms, at = SystemClock().now_ms(), 0
    for rows in snapshot.rows:
        count = len(rows)
        positions = [f"s{snapshot.place.id}.{number}" for number in range(at, at + count)]
        columns = [["insert"] * count, [None] * count, rows, positions, [now_ms] * count]
        arrays = [pa.array(values, kind) for values, kind in zip(columns, _ARROW.types, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=_ARROW)
        at += count


def _place(offset: dict[str, Any]) -> Place:
    return Place(int(offset["id"]), offset.get("seen", ""))
