"""Rows for a lake, and a lake with some."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from topics.spark.lakecolumns import SCHEMA
from topics.spark.lakefile import write_files
from topics.spark.laketable import Lake, Part

DAY = datetime(2026, 1, 1, tzinfo=UTC)


def lake_batch(first: int, last: int, topic: str = "t", per_day: int = 10, **columns: Any) -> Any:
    """Records by seq, so many a day."""
    rows = []
    for seq in range(first, last + 1):
        ts = DAY + timedelta(days=seq // per_day)
        row = {"topic": topic, "epoch": 1, "partition": 0, "seq": seq, "ts": ts, "tag": f"t{seq % 3}"}
        rows.append({**row, "data": str(seq), "date": ts.strftime("%Y-%m-%d"), **columns})
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def part_of(lake: Lake, first: int, last: int, topic: str = "t", **columns: Any) -> Part:
    files = list(write_files(lake.root, lake.layout, [lake_batch(first, last, topic, **columns)]))
    return Part(topic, 1, 0, first - 1, last, files)


def filled(tmp_path: Path, parts: int = 3, layout: str = "topic,date", topic: str = "t") -> Lake:
    """A lake with ten records a batch."""
    root = str(tmp_path / "lake")
    lake = Lake.create(root, layout)
    for number in range(parts):
        lake.commit("q", number, [part_of(lake, 10 * number + 1, 10 * number + 10, topic)])
        lake = Lake.open(root)
    return lake


def rows_of(root: str) -> list[dict[str, Any]]:
    found = Lake.open(root).table.to_pyarrow_table().to_pylist()
    return sorted(found, key=lambda row: (row["topic"], row["partition"], row["epoch"], row["seq"]))
