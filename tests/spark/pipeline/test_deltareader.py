"""Offsets of a Delta table: what a batch reads is the same whenever it is read."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql.streaming.datasource import ReadAllAvailable

from tests.spark.pipeline import deltas
from topics.spark.pipeline.changesource import ChangesSource
from topics.spark.pipeline.deltachanges import committed_ms
from topics.spark.pipeline.deltareader import DeltaChangeReader
from topics.spark.pipeline.stops import PositionGone, TableChanged


def reader(location: str, **options: Any) -> DeltaChangeReader:
    source = ChangesSource({"location": location, "key": "id", "table": "t", **options})
    schema = source.schema()
    assert not isinstance(schema, str)
    found = source.streamReader(schema)
    assert isinstance(found, DeltaChangeReader)
    return found


def step(stream: DeltaChangeReader, start: dict[str, Any]) -> tuple[dict[str, Any], list[tuple[Any, ...]]]:
    """One batch: where it ends, and what it holds, read by tasks that get the reader pickled."""
    end = stream.latestOffset(start, ReadAllAvailable())
    return end, batch(stream, start, end)


def batch(stream: DeltaChangeReader, start: dict[str, Any], end: dict[str, Any]) -> list[tuple[Any, ...]]:
    task = pickle.loads(pickle.dumps(stream))
    parts = stream.partitions(start, end)
    rows = [row for part in parts for each in task.read(part) for row in each.to_pylist()]
    return [(row["op"], (row["after"] or row["before"])["id"]) for row in rows]


@pytest.fixture
def table(tmp_path: Path) -> str:
    location = deltas.make(tmp_path / "t")
    deltas.append(location, (1, "a", 0), (2, "b", 0))
    return location


def test_a_snapshot_and_then_each_change(table: str) -> None:
    stream = reader(table, start="snapshot")
    assert stream.getDefaultReadLimit() == ReadAllAvailable()
    begin = stream.initialOffset()
    first, found = step(stream, begin)
    assert (first, sorted(found)) == ({"version": 1}, [("insert", 1), ("insert", 2)])
    DeltaTable(table).delete("id = 1")
    assert sorted(batch(reader(table, start="snapshot"), begin, first)) == sorted(found), "the same after a crash"
    stream.commit(first)
    assert step(stream, first) == ({"version": 2}, [("delete", 1)])
    assert step(stream, {"version": 2}) == ({"version": 2}, [])


def test_a_snapshot_in_parts_is_put_aside_once(table: str, tmp_path: Path) -> None:
    deltas.append(table, *[(number, "x", 0) for number in range(3, 6)])
    options = {"start": "snapshot", "spool": str(tmp_path / "spool"), "rowsPerTrigger": "2"}
    stream = reader(table, **options)
    place, parts = stream.initialOffset(), []
    for _ in range(4):
        begin = place
        place, found = step(stream, begin)
        DeltaTable(table).delete(f"id = {len(parts) + 1}")
        assert batch(reader(table, **options), begin, place) == found, "the same after a crash"
        stream.commit(place)
        parts.append(found)
        if place["at"] == place["of"]:
            break
    assert sorted(row for part in parts for row in part) == [("insert", number) for number in range(1, 6)]
    assert len(parts) > 1 and all(len(part) <= 2 for part in parts)
    assert not list((tmp_path / "spool").glob("snapshot-*")), "nobody needs it any more"
    end, changes = step(stream, place)
    assert changes == [("delete", number + 1) for number in range(len(parts))] and end.keys() == {"version"}


def test_a_part_of_a_snapshot_has_columns_that_came_since(table: str, tmp_path: Path) -> None:
    options = {"start": "snapshot", "spool": str(tmp_path / "spool"), "rowsPerTrigger": "1"}
    stream = reader(table, **options)
    place, first = step(stream, stream.initialOffset())
    deltas.append(table, (3, "c", 0))
    more = pa.table({"id": [4], "body": ["d"], "n": [0], "extra": ["new"]})
    write_deltalake(table, more, mode="append", schema_mode="merge")
    with pytest.raises(TableChanged, match="extra"):
        step(stream, place)
    again = reader(table, **options)
    place, second = step(again, place)
    assert sorted(first + second) == [("insert", 1), ("insert", 2)]
    assert step(again, place)[1] == [("insert", 3), ("insert", 4)]


def test_a_snapshot_of_nothing(tmp_path: Path) -> None:
    location = deltas.make(tmp_path / "empty")
    stream = reader(location, start="snapshot", spool=str(tmp_path / "spool"))
    place, found = step(stream, stream.initialOffset())
    assert found == [] and step(stream, place) == (place, [])
    deltas.append(location, (1, "a", 0))
    assert step(stream, place)[1] == [("insert", 1)]


def test_from_now_is_a_moment_and_not_a_place(table: str) -> None:
    moment = committed_ms(DeltaTable(table), 1)
    assert moment is not None
    stream = reader(table, start="now", sinceMs=str(moment + 1))
    deltas.append(table, (3, "c", 0))
    begin = stream.initialOffset()
    first, found = step(stream, begin)
    assert found == [] and first["version"] in (1, 2)
    assert batch(stream, begin, first) == []


def test_from_a_version_and_in_steps(table: str) -> None:
    for number in range(3, 8):
        deltas.append(table, (number, "x", 0))
    stream = reader(table, start="version", startVersion="2", versionsPerTrigger="2")
    place, read = stream.initialOffset(), []
    assert place == {"version": 1}
    while (found := step(stream, place))[0] != place:
        place = found[0]
        read.append([id for _, id in found[1]])
    assert read == [[3, 4], [5, 6], [7]]


def test_large_versions_are_not_taken_together(table: str) -> None:
    for number in range(3, 6):
        deltas.append(table, (number, "x" * 5000, 0))
    size_bytes = max(file.stat().st_size for file in Path(table).glob("*.parquet"))
    stream = reader(table, start="version", startVersion="2", bytesPerTrigger=str(2 * size_bytes))
    assert [id for _, id in step(stream, {"version": 1})[1]] == [3, 4]
    small = reader(table, bytesPerTrigger="1")
    assert [id for _, id in step(small, {"version": 2})[1]] == [4], "one version is always taken"


def test_all_there_is_now_ends(table: str) -> None:
    stream = reader(table, start="version", startVersion="0")
    stream.prepareForTriggerAvailableNow()
    deltas.append(table, (3, "c", 0))
    assert stream.latestOffset({"version": -1}, ReadAllAvailable()) == {"version": 1}
    assert stream.reportLatestOffset() == {"version": 2}


def test_other_columns_end_the_query(table: str) -> None:
    stream = reader(table, start="snapshot")
    wider = pa.schema([*deltas.COLUMNS, pa.field("more", pa.string())])
    deltas.append(table, (9, "i", 9, "x"), columns=wider)
    with pytest.raises(TableChanged, match="more:string"):
        stream.latestOffset({"version": 1}, ReadAllAvailable())
    assert step(reader(table), {"version": 1}) == ({"version": 2}, [("insert", 9)])


def test_a_table_that_was_made_anew_is_noticed(table: str) -> None:
    with pytest.raises(PositionGone, match=r"is at version 1, and version 7 was read already"):
        reader(table).latestOffset({"version": 7}, ReadAllAvailable())


def test_a_beginning_before_the_feed_is_refused(tmp_path: Path) -> None:
    location = deltas.make(tmp_path / "late", feed=False)
    DeltaTable(location).alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    with pytest.raises(PositionGone, match="kept no change data"):
        reader(location).latestOffset({"version": -1}, ReadAllAvailable())
