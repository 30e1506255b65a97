"""The sink of rows by hand, as a task and a driver call it; the runner's tests have it in Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import TaskContext
from pyspark.sql.types import LongType, StructField, StructType

from tests.spark.pipeline import deltas
from topics.errors import Internal, InvalidRequest
from topics.spark.pipeline.mergesource import RowSink, RowWriter, Written
from topics.spark.pipeline.spool import Spool

SCHEMA = StructType([StructField("id", LongType())])


@pytest.fixture
def options(tmp_path: Path) -> dict[str, str]:
    return {"location": str(tmp_path / "t"), "key": "id", "spool": str(tmp_path / "spool")}


@pytest.fixture
def task() -> Iterator[None]:
    """A task of a query, as a worker of Spark sets it."""
    context = TaskContext._getOrCreate()
    context._partitionId, context._localProperties = 3, {"sql.streaming.queryId": "q"}
    yield
    TaskContext._setTaskContext(None)


@pytest.mark.usefixtures("task")
def test_all_rows_of_a_task_are_one_file(options: dict[str, str]) -> None:
    writer = RowSink(options).streamWriter(SCHEMA, overwrite=False)
    batches = [pa.record_batch({"id": pa.array(ids, pa.int64())}) for ids in ([], [1, 2], [], [3])]
    assert writer.write(iter(batches[:1])) == Written(3, "q"), "without rows there is no file"
    told = writer.write(iter(batches))
    assert isinstance(told, Written) and (told.task, told.query_id) == (3, "q")
    assert Spool(options["spool"]).names() == [told.name]
    writer.commit([told], 0)
    assert deltas.content(options["location"]) == [{"id": 1}, {"id": 2}, {"id": 3}]


def test_another_mode_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(InvalidRequest, match="output_mode 'append' or 'update'"):
        RowSink(options).streamWriter(SCHEMA, overwrite=True)


def test_a_task_that_does_not_know_its_query_is_refused(options: dict[str, str]) -> None:
    writer = RowSink(options).streamWriter(SCHEMA, overwrite=False)
    assert isinstance(writer, RowWriter)
    with pytest.raises(Internal, match="does not say which query this is"):
        writer.write(iter([pa.record_batch({"id": [1]})]))
    assert not Path(options["location"]).exists() and not list(Path(options["spool"]).glob("*"))


def test_what_a_batch_that_failed_left_is_swept_with_the_next(options: dict[str, str]) -> None:
    writer = RowSink(options).streamWriter(SCHEMA, overwrite=False)
    spool = Spool(options["spool"])
    for name in ("rows-failed.parquet", "rows-done.parquet"):
        with spool.create(name) as sink:
            pq.write_table(pa.table({"id": [len(name)]}), sink)
    writer.abort([Written(0, "q", "rows-failed.parquet"), None], 0)
    assert spool.names("rows-") == ["rows-done.parquet", "rows-failed.parquet"]
    writer.commit([Written(1, "q"), Written(0, "q", "rows-done.parquet"), None], 0)
    assert deltas.content(options["location"]) == [{"id": len("rows-done.parquet")}]
    assert spool.names("rows-") == []
