"""A snapshot that was put aside: parts of it are bounded, and together they are all of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from topics.spark.pipeline import snapshots
from topics.spark.pipeline.snapshots import Snapshots, is_within, part_between

SCHEMA = pa.schema([("n", pa.int64())])


def batch(first: int, end: int) -> Any:
    return pa.RecordBatch.from_pydict({"n": list(range(first, end))}, schema=SCHEMA)


def parts(kept: Snapshots, offset: dict[str, Any]) -> list[list[int]]:
    found = []
    while is_within(offset):
        end = kept.further(offset)
        part = part_between(offset, end)
        assert part is not None
        rows = [(before, each["n"].to_pylist()) for before, each in kept.read(part)]
        assert all(numbers[0] == before for before, numbers in rows), "it is known how many are before"
        found.append([number for _, numbers in rows for number in numbers])
        offset = end
    assert part_between(offset, offset) is None
    return found


def test_parts_have_as_many_rows_as_they_may(tmp_path: Path) -> None:
    kept = Snapshots(str(tmp_path), rows_per_part=4)
    offset = kept.keep(SCHEMA, [batch(0, 3), batch(3, 5), batch(5, 14)])
    found = parts(kept, offset)
    assert [number for part in found for number in part] == list(range(14))
    assert len(found) > 3 and all(len(part) <= 4 for part in found)


def test_parts_have_no_more_bytes_than_they_may_or_are_one_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "GROUP_ROWS", 2)
    kept = Snapshots(str(tmp_path), rows_per_part=100)
    offset = kept.keep(SCHEMA, [batch(0, 6)])
    assert parts(kept, offset) == [list(range(6))]
    monkeypatch.setattr(snapshots, "PART_BYTES", 1)
    assert parts(kept, offset) == [[0, 1], [2, 3], [4, 5]], "a group that is larger goes alone"


def test_it_is_forgotten_behind_its_last_part_and_not_before(tmp_path: Path) -> None:
    kept = Snapshots(str(tmp_path), rows_per_part=1)
    offset = kept.keep(SCHEMA, [batch(0, 2)])
    first = kept.further(offset)
    kept.forget(first)
    assert parts(kept, first) == [[1]]
    kept.forget(kept.further(first))
    assert not list(tmp_path.iterdir())
    kept.forget({"id": 3})
