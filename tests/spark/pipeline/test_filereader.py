"""New files are new rows, each once, in the order in which they were found."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import LongType, StringType, StructField, StructType

from topics.errors import InvalidRequest, NotFound
from topics.spark.pipeline.changesource import ChangesSource
from topics.spark.pipeline.deltareader import change_schema
from topics.spark.pipeline.filereader import FileReader

ROW = StructType([StructField("id", LongType()), StructField("name", StringType())])


def reader(place: Path, kind: str = "csv", **options: Any) -> FileReader:
    given = {"location": str(place), "tableFormat": kind, "spool": str(place.parent / "spool"), "table": "t", **options}
    found = ChangesSource(given).streamReader(change_schema(ROW))
    assert isinstance(found, FileReader)
    return found


def batch(stream: FileReader, start: int, end: int) -> list[tuple[Any, ...]]:
    task = pickle.loads(pickle.dumps(stream))
    parts = stream.partitions({"files": start}, {"files": end})
    rows = [row for part in parts for each in task.read(part) for row in each.to_pylist()]
    return [(row["position"], *row["after"].values()) for row in rows]


def upto(stream: FileReader, start: int) -> int:
    return int(stream.latestOffset({"files": start}, ReadAllAvailable())["files"])


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "files").mkdir()
    return tmp_path / "files"


def put(path: Path, text: str, at_s: int = 1000) -> None:
    path.write_text(text)
    os.utime(path, (at_s, at_s))


def test_files_are_read_once_whatever_their_time(place: Path) -> None:
    put(place / "b.csv", "id,name\n2,b\n", 2000)
    put(place / "a.csv", "id,name\n1,a\n", 3000)
    put(place / "_c.csv", "id,name\n9,not yet\n", 1)
    stream = reader(place)
    assert stream.getDefaultReadLimit() == ReadAllAvailable()
    assert upto(stream, 0) == 2
    assert batch(stream, 0, 2) == [("f0.b.csv.0", 2, "b"), ("f1.a.csv.0", 1, "a")]
    put(place / "late.csv", "id,name\n3,older than all\n4,\n", 500)
    again = reader(place)
    assert upto(again, 2) == 3
    assert batch(again, 2, 3) == [("f2.late.csv.0", 3, "older than all"), ("f2.late.csv.1", 4, None)]
    assert batch(again, 0, 2) == batch(stream, 0, 2), "numbers are for good"
    assert upto(again, 3) == 3


def test_where_it_begins(place: Path) -> None:
    put(place / "a.csv", "id,name\n1,a\n", 1000)
    put(place / "b.csv", "id,name\n2,b\n", 2000)
    assert reader(place, start="version", startVersion="2").initialOffset() == {"files": 1}
    now = reader(place, start="now", sinceMs="1500000")
    assert batch(now, 0, upto(now, 0)) == [("f1.b.csv.0", 2, "b")]
    ending = reader(place)
    ending.prepareForTriggerAvailableNow()
    put(place / "c.csv", "id,name\n3,c\n")
    assert upto(ending, 0) == 2 and ending.reportLatestOffset() == {"files": 3}


def test_json_and_parquet(place: Path) -> None:
    put(place / "a.jsonl", '{"id": 1, "name": "x", "else": 3}\n{"name": "y"}\n')
    pq.write_table(pa.table({"name": ["z"], "id": pa.array([5], pa.int32())}), place / "b.parquet")
    lines, tables = reader(place, "json"), reader(place, "parquet", spool=str(place.parent / "other"))
    assert batch(lines, 0, upto(lines, 0)) == [("f0.a.jsonl.0", 1, "x"), ("f0.a.jsonl.1", None, "y")]
    assert batch(tables, 0, upto(tables, 0)) == [("f0.b.parquet.0", 5, "z")]


def test_what_does_not_fit_is_said(place: Path) -> None:
    put(place / "a.csv", "id,name\nnumber,a\n")
    stream = reader(place)
    with pytest.raises(InvalidRequest, match=r'a.csv does not fit the columns of table "t"'):
        batch(stream, 0, upto(stream, 0))
    with pytest.raises(NotFound, match="there is no directory"):
        upto(reader(place / "nowhere"), 0)


def test_columns_are_those_of_the_first_file_unless_said(place: Path) -> None:
    given = {"location": str(place), "tableFormat": "csv", "spool": str(place), "table": "t"}
    with pytest.raises(InvalidRequest, match="has no files yet and no columns"):
        ChangesSource(given).schema()
    put(place / "a.csv", "id,name\n1,a\n")
    found = ChangesSource(given).schema()
    assert isinstance(found, StructType) and found["after"].dataType == ROW
    put(place / "a.jsonl", '{"id": 1, "name": "x"}\n')
    pq.write_table(pa.table({"id": [1], "name": ["z"]}), place / "a.parquet")
    for kind in ("json", "parquet"):
        same = ChangesSource({**given, "tableFormat": kind}).schema()
        assert isinstance(same, StructType) and same["after"].dataType == ROW, kind
    told = ChangesSource({**given, "columns": "`id` int"}).schema()
    assert told == "op string, before struct<`id` int>, after struct<`id` int>, position string, ts bigint"
