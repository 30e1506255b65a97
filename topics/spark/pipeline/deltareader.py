"""Changes of a Delta table as a stream: the offset is the version up to which everything was read.

    {"version": 17}                    everything up to and with version 17
    {"version": 17, "rows": "…", …}    within the table as it was then, which was put aside (snapshots.py)
    {"start": "snapshot"}              nothing yet; the first batches are the table at the version they go up to
    {"start": "now", "since_ms": …}    nothing yet; the first batch is empty and goes up to the last version before

So a first batch that is done again after a crash is the same one: which version it ends at is in the checkpoint.
Without a spool to put it into, the table is one batch. Commits are noticed by a look at the log, which costs the same
however large the table is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import LongType, StringType, StructField, StructType

from topics.spark.pipeline.changeoptions import NOW, SNAPSHOT, ChangeOptions
from topics.spark.pipeline.deltachanges import (
    as_inserts,
    check_feed,
    check_feed_at,
    last_within,
    open_table,
    read_snapshot,
    read_versions,
    row_type,
    scan_version,
    snapshot_ms,
    version_before,
)
from topics.spark.pipeline.snapshots import Part, Snapshots, is_within, part_between
from topics.spark.pipeline.stops import PositionGone, TableChanged

VERSIONS_PER_TASK: Final = 250


@dataclass(frozen=True)
class Versions(InputPartition):
    """What one task reads: some versions, or the table as it is at one."""

    first: int
    last: int
    is_snapshot: bool = False


@dataclass(frozen=True)
class PartOfVersion(InputPartition):
    """What one task reads of a version that was put aside."""

    version: int
    part: Part


def change_schema(row: StructType) -> StructType:
    """The columns of a change whose rows are typed."""
    return StructType(
        [
            StructField("op", StringType()),
            StructField("before", row),
            StructField("after", row),
            StructField("position", StringType()),
            StructField("ts", LongType()),
        ]
    )


def delta_schema(options: ChangeOptions) -> StructType:
    found = open_table(options.location, options.table)
    check_feed(found, options.table)
    return change_schema(from_arrow_schema(pa.schema(list(row_type(found)))))


class DeltaChangeReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: ChangeOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._table: DeltaTable | None = None
        self._is_checked = False
        self._end: int | None = None
        """With AvailableNow: where the query stops."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_table": None}

    def initialOffset(self) -> dict[str, Any]:
        match self._options.start:
            case "snapshot":
                return {"start": SNAPSHOT}
            case "now":
                return {"start": NOW, "since_ms": self._options.since_ms}
            case _:
                return {"version": self._options.start_version - 1}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._end = self._latest().version()

    def reportLatestOffset(self) -> dict[str, Any]:
        return {"version": self._latest().version()}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        found = self._latest()
        self._check_columns(found)
        latest = found.version() if self._end is None else self._end
        if start.get("start") == SNAPSHOT and not self._options.spool:
            return {"version": latest}
        if start.get("start") == SNAPSHOT:
            return self._snapshots.further(self._take_snapshot(latest))
        if is_within(start):
            return self._snapshots.further(start)
        if start.get("start") == NOW:
            return {"version": min(latest, version_before(found, start["since_ms"]))}
        version = int(start["version"])
        if found.version() < version:
            raise PositionGone(
                f'table "{self._options.table}" is at version {found.version()}, and version {version} was read '
                "already: it was made anew. Say where to go on: ALTER TOPIC … ADD SOURCE … FROM SNAPSHOT, or "
                "FROM VERSION 0",
                table=self._options.table,
            )
        if not self._is_checked and version < found.version():
            check_feed_at(self._options.location, self._options.table, version + 1)
            self._is_checked = True
        upto = min(latest, version + self._options.versions_per_trigger)
        if upto > version + 1:
            upto = last_within(self._options.location, version, upto, self._options.bytes_per_trigger)
        return {"version": upto} if upto > version else start

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        last = int(end["version"])
        part = part_between(start, end)
        if part is not None:
            return [PartOfVersion(last, part)]
        if "rows" in end:
            return []
        if start.get("start") == SNAPSHOT:
            return [Versions(last, last, is_snapshot=True)]
        if start.get("start") == NOW:
            return []
        first = int(start["version"]) + 1
        return [
            Versions(begin, min(begin + VERSIONS_PER_TASK - 1, last))
            for begin in range(first, last + 1, VERSIONS_PER_TASK)
        ]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, Versions | PartOfVersion)
        options = self._options
        wanted = to_arrow_schema(self._schema, timezone="UTC")
        row = wanted.field("after").type
        found: Iterator[Any]
        if isinstance(partition, PartOfVersion):
            ts = snapshot_ms(options.location, options.table, partition.version)
            found = (
                as_inserts(batch, row, partition.version, at, ts) for at, batch in self._snapshots.read(partition.part)
            )
        elif partition.is_snapshot:
            found = read_snapshot(options.location, options.table, partition.last, row)
        else:
            found = read_versions(options.location, options.table, partition.first, partition.last, options.key, row)
        for batch in found:
            yield pa.RecordBatch.from_arrays([batch.column(name) for name in wanted.names], schema=wanted)

    def commit(self, end: dict[str, Any]) -> None:
        if self._options.spool:
            self._snapshots.forget(end)

    @property
    def _snapshots(self) -> Snapshots:
        return Snapshots(self._options.spool, self._options.rows_per_trigger)

    def _take_snapshot(self, version: int) -> dict[str, Any]:
        rows = scan_version(self._options.location, self._options.table, version)
        return {"version": version, **self._snapshots.keep(rows.schema, rows)}

    def _latest(self) -> DeltaTable:
        if self._table is None:
            self._table = open_table(self._options.location, self._options.table)
        else:
            self._table.update_incremental()
        return self._table

    def _check_columns(self, found: DeltaTable) -> None:
        row = from_arrow_schema(pa.schema(list(row_type(found))))
        known = self._schema["after"].dataType
        if row.simpleString() != known.simpleString():
            raise TableChanged(
                f'the columns of table "{self._options.table}" were {known.simpleString()} and are '
                f"{row.simpleString()} now",
                table=self._options.table,
            )
