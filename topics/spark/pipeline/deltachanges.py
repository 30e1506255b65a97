"""What happened to a Delta table, version by version, out of its change data feed; and a table as it is at one version.

A version is what somebody committed, and is read whole. What the feed does not say, such as a version whose files are
gone, is an error that tells how to go on: a hole would be a lie.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from topics.clock import SystemClock
from topics.errors import NotFound, TopicsError, Unavailable
from topics.spark.lakefile import file_system
from topics.spark.pipeline.pairing import INSERT, KIND, TIME, VERSION, changes_of
from topics.spark.pipeline.stops import NotCaptured, PositionGone

FEED: Final = "delta.enableChangeDataFeed"
_GONE: Final = re.compile("not found|no such file|change data", re.I)
"""What is said of files that were removed, and of versions from before the table kept its changes."""
BATCH_ROWS: Final = 32_768
_MARKS: Final = {KIND: pa.string(), VERSION: pa.int64(), TIME: pa.timestamp("ms")}


class _File(msgspec.Struct, rename={"size_bytes": "size", "is_change": "dataChange"}):
    size_bytes: int | None = None
    is_change: bool = True


class _Action(msgspec.Struct):
    """As much of a line of Delta's log as says how large it is."""

    add: _File | None = None
    remove: _File | None = None
    cdc: _File | None = None


_action = msgspec.json.Decoder(_Action)


def open_table(location: str, table: str) -> DeltaTable:
    try:
        return DeltaTable(location)
    except TableNotFoundError:
        raise NotFound(
            f'there is no Delta table at {location}, where table "{table}" is registered', table=table
        ) from None


def check_feed(found: DeltaTable, table: str) -> None:
    """`NotCaptured` when the table keeps no changes."""
    if found.metadata().configuration.get(FEED, "").lower() != "true":
        raise NotCaptured(
            f'the Delta table of "{table}" keeps no changes: set {FEED} = true on it (ALTER TABLE … SET '
            "TBLPROPERTIES, or DeltaTable.alter.set_table_properties); changes count from then on",
            table=table,
        )


def check_feed_at(location: str, table: str, version: int) -> None:
    """`PositionGone` when the table kept no changes yet at a version: its files alone would tell half the truth."""
    try:
        then = DeltaTable(location, version=version)
    except (DeltaError, OSError, ValueError) as error:
        raise _unread(open_table(location, table), table, version, error) from error
    if then.metadata().configuration.get(FEED, "").lower() != "true":
        raise _unread(then, table, version, NotCaptured("it kept no change data at that time"))


def row_type(found: DeltaTable) -> Any:
    """The type of a row as Arrow has it."""
    return pa.struct(list(pa.schema(found.schema().to_arrow())))


def earliest_version(found: DeltaTable) -> int:
    """The first version whose commit is still in the log."""
    return min(int(entry["version"]) for entry in found.history())


def version_before(found: DeltaTable, moment_ms: int) -> int:
    """The last version committed before a moment; when there is none, the one before the first that is known."""
    entries = found.history()
    known = [int(entry["version"]) for entry in entries if int(entry.get("timestamp", 0)) < moment_ms]
    return max(known) if known else min(int(entry["version"]) for entry in entries) - 1


def committed_ms(found: DeltaTable, version: int) -> int | None:
    """When a version was committed, if the log still says."""
    for entry in found.history(max(1, found.version() - version + 1)):
        if int(entry["version"]) == version:
            return int(entry.get("timestamp", 0)) or None
    return None


def last_within(location: str, after: int, latest: int, bytes_max: int) -> int:
    """The last version to be read together with those behind `after`: one at least, and no more than so much."""
    total_bytes = 0
    for version in range(after + 1, latest + 1):
        total_bytes += _bytes_of(location, version)
        if total_bytes > bytes_max:
            return max(after + 1, version - 1)
    return latest


def _bytes_of(location: str, version: int) -> int:
    """The size of the files that tell what a version changed; 0 when its commit is in no file of its own any more."""
    fs, base = file_system(location.removeprefix("file://"))
    try:
        with fs.open_input_stream(f"{base}/_delta_log/{version:020}.json") as commit:
            lines = commit.readall().splitlines()
    except (OSError, pa.ArrowException):
        return 0
    sizes: Counter[str] = Counter()
    for line in lines:
        action = _action.decode(line)
        for name in ("add", "remove", "cdc"):
            file = getattr(action, name)
            if file is not None and (name == "cdc" or file.is_change):
                sizes[name] += file.size_bytes or 0
    return sizes["cdc"] or sizes["add"] + sizes["remove"]


def read_versions(location: str, table: str, first: int, last: int, key: Sequence[str], row: Any) -> Iterator[Any]:
    """The changes of some versions, in order, in batches of `op`, `before`, `after`, `position` and `ts`."""
    found = open_table(location, table)
    check_feed(found, table)
    try:
        feed = _plain(pa.table(found.load_cdf(starting_version=first, ending_version=last)), row)
    except (DeltaError, OSError, ValueError) as error:
        raise _unread(found, table, first, error) from error
    changes = changes_of(feed, key, row, table)
    positions = pc.binary_join_element_wise(
        "v", changes["version"].cast(pa.string()), ".", changes["at"].cast(pa.string()), ""
    )
    shaped = pa.table(
        {
            "op": changes["op"],
            "before": changes["before"],
            "after": changes["after"],
            "position": positions,
            "ts": changes["time"],
        }
    )
    yield from shaped.to_batches(max_chunksize=BATCH_ROWS)


def scan_version(location: str, table: str, version: int) -> Any:
    """A reader of all rows of a version, in no order."""
    try:
        return pa.RecordBatchReader.from_stream(DeltaTable(location, version=version).scan())
    except (DeltaError, OSError, ValueError) as error:
        raise _unread(open_table(location, table), table, version, error) from error


def read_snapshot(location: str, table: str, version: int, row: Any) -> Iterator[Any]:
    """All rows of a version, as inserts that happened when it was committed."""
    at = 0
    rows = scan_version(location, table, version)
    ts = snapshot_ms(location, table, version)
    for batch in rows:
        yield as_inserts(batch, row, version, at, ts)
        at += batch.num_rows


def snapshot_ms(location: str, table: str, version: int) -> int:
    return committed_ms(open_table(location, table), version) or SystemClock().now_ms()


def as_inserts(batch: Any, row: Any, version: int, at: int, ts: int) -> Any:
    """Rows of a version as changes; `at` are before them. A column that was added since is null."""
    count = batch.num_rows
    columns = {name: batch.column(name) for name in batch.schema.names}
    arrays = [
        columns[each.name].cast(each.type) if each.name in columns else pa.nulls(count, each.type) for each in row
    ]
    numbers = pa.array(np.arange(at, at + count)).cast(pa.string())
    return pa.RecordBatch.from_pydict(
        {
            "op": pa.repeat(pa.scalar(INSERT), count),
            "before": pa.nulls(count, row),
            "after": pa.StructArray.from_arrays(arrays, fields=list(row)),
            "position": pc.binary_join_element_wise(f"s{version}.", numbers, ""),
            "ts": pa.repeat(pa.scalar(ts, pa.int64()), count),
        }
    )


def _plain(feed: Any, row: Any) -> Any:
    """The feed with the types that a row is to have: what reads it has others for the same, some without functions."""
    wanted = {**_MARKS, **{field.name: field.type for field in row}}
    names = [name for name in feed.column_names if name in wanted]
    return pa.table({name: feed[name].cast(wanted[name]) for name in names})


def _unread(found: DeltaTable, table: str, version: int, error: Exception) -> TopicsError:
    """Why a version cannot be read: for now, or never again."""
    earliest = earliest_version(found)
    if version >= earliest and not _GONE.search(str(error)):
        return Unavailable(f'version {version} of table "{table}" cannot be read now: {error}', table=table)
    return PositionGone(
        f'version {version} of table "{table}" cannot be read any more (the log begins at version {earliest}; '
        f"{error}). Nothing was skipped. To go on without what is lost, say the route again with a place: ALTER TOPIC "
        f"… ADD SOURCE {table} ON … FROM VERSION {max(earliest, version + 1)} …, or FROM SNAPSHOT to begin with all "
        "rows as they are now",
        table=table,
        version=version,
        earliest=earliest,
    )
