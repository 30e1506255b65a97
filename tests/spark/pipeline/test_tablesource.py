"""A table that is joined is read as it is when its rows are needed, not when the query was planned."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

from pyspark.sql.types import StructType

from tests.spark.pipeline import deltas
from topics.spark.pipeline.tablesource import TableSource, preset_table


def planned(source: TableSource) -> tuple[Any, Any]:
    """What Spark keeps: a reader and its partitions."""
    schema = source.schema()
    found = source.reader(schema if isinstance(schema, StructType) else StructType())
    return pickle.dumps(found), found.partitions()


def ids(plan: tuple[Any, Any]) -> list[int]:
    reader = pickle.loads(plan[0])
    return sorted(row["id"] for part in plan[1] for batch in reader.read(part) for row in batch.to_pylist())


def test_a_delta_table(tmp_path: Path) -> None:
    location = deltas.make(tmp_path / "t", feed=False)
    deltas.append(location, (1, "a", 0))
    plan = planned(preset_table("joined", location=location, key="id")({}))
    assert ids(plan) == [1]
    deltas.append(location, (2, "b", 0))
    assert ids(plan) == [1, 2]


def test_files(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,name\n1,x\n")
    plan = planned(TableSource({"location": str(tmp_path), "tableFormat": "csv"}))
    assert ids(plan) == [1]
    (tmp_path / "b.csv").write_text("id,name\n2,y\n")
    assert ids(plan) == [1, 2]
    assert TableSource({"location": str(tmp_path), "tableFormat": "csv", "columns": "`id` int"}).schema() == "`id` int"
