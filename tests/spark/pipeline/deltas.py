"""Delta tables for tests: made, changed and read by delta-rs, as anybody would."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, Schema, write_deltalake

COLUMNS = pa.schema([("id", pa.int64()), ("body", pa.string()), ("n", pa.int64())])


def make(path: Path, columns: Any = COLUMNS, feed: bool = True) -> str:
    configuration = {"delta.enableChangeDataFeed": "true"} if feed else {}
    DeltaTable.create(str(path), Schema.from_arrow(columns), configuration=configuration)
    return str(path)


def rows(*values: tuple[Any, ...], columns: Any = COLUMNS) -> Any:
    return pa.Table.from_pylist([dict(zip(columns.names, value, strict=True)) for value in values], schema=columns)


def append(location: str, *values: tuple[Any, ...], columns: Any = COLUMNS) -> None:
    write_deltalake(location, rows(*values, columns=columns), mode="append", schema_mode="merge")


def upsert(location: str, *values: tuple[Any, ...], key: str = "id") -> None:
    merger = DeltaTable(location).merge(rows(*values), f"t.{key} = s.{key}", source_alias="s", target_alias="t")
    merger.when_matched_update_all().when_not_matched_insert_all().execute()


def content(location: str, key: str = "id") -> list[dict[str, Any]]:
    return sorted(pa.table(DeltaTable(location).scan()).to_pylist(), key=lambda row: row[key])
