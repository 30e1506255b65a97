"""Commits of a pipeline's table: the latest row of each key, and each batch once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tests.spark.pipeline import deltas
from topics.errors import InvalidRequest
from topics.spark.pipeline.mergetable import RowTable, latest_rows
from topics.spark.pipeline.rowflows import GONE

COLUMNS = pa.schema([("id", pa.int64()), ("Body text", pa.string()), (GONE, pa.bool_())])


def rows(*values: tuple[Any, ...]) -> Any:
    return deltas.rows(*values, columns=COLUMNS)


def there(path: Path) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in deltas.content(str(path))]


def test_the_last_row_of_a_key_stays(tmp_path: Path) -> None:
    table = RowTable(str(tmp_path / "t"), ["id"])
    assert table.columns() is None
    assert table.commit("q", 0, rows((1, "a", False), (2, "b", False), (1, "A", False), (3, "c", True)))
    assert there(tmp_path / "t") == [(1, "A"), (2, "b")]
    assert table.commit("q", 1, rows((2, "b", True), (3, "c", False), (1, "x", True), (1, "back", False)))
    assert there(tmp_path / "t") == [(1, "back"), (3, "c")]
    found = table.columns()
    assert found is not None and found.names == ["id", "Body text"]


def test_a_batch_that_comes_again_changes_nothing(tmp_path: Path) -> None:
    table = RowTable(str(tmp_path / "t"), ["id"])
    table.commit("q", 0, rows((1, "a", False)))
    assert RowTable(str(tmp_path / "t"), ["id"]).commit("other", 0, rows((1, "other", False)))
    before = DeltaTable(str(tmp_path / "t")).version()
    assert not table.commit("q", 0, rows((1, "again", False)))
    assert DeltaTable(str(tmp_path / "t")).version() == before
    assert there(tmp_path / "t") == [(1, "other")]


def test_appending_is_once_too(tmp_path: Path) -> None:
    table = RowTable(str(tmp_path / "t"))
    plain = rows((1, "a", False), (1, "a", False)).drop_columns([GONE])
    assert table.commit("q", 0, plain) and not table.commit("q", 0, plain)
    assert there(tmp_path / "t") == [(1, "a"), (1, "a")]


def test_a_new_column_joins_the_table(tmp_path: Path) -> None:
    table = RowTable(str(tmp_path / "t"), ["id"])
    table.commit("q", 0, rows((1, "a", False)))
    wider = rows((2, "b", False)).append_column("more", pa.array([7]))
    table.commit("q", 1, wider)
    assert there(tmp_path / "t") == [(1, "a", None), (2, "b", 7)]


def test_a_row_without_its_key_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="column id is in KEY, and a row has no value"):
        latest_rows(rows((None, "a", False)), ["id"])
    with pytest.raises(InvalidRequest, match="no column at, which is in KEY"):
        latest_rows(rows((1, "a", False)), ["at"])
    assert latest_rows(rows(), ["id"]).num_rows == 0
