"""Files of a lake: as large as they are to be, none without rows, and gone when they are deleted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark.lakes import lake_batch
from topics.spark import lakefile
from topics.spark.lakefile import delete_file, read_file, write_files

LAYOUT = ("topic", "date")


def test_a_file_ends_when_it_is_large_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = [lake_batch(first, first + 4, per_day=1000) for first in (1, 6, 11)]
    (whole,) = write_files(str(tmp_path), LAYOUT, batches)
    assert whole.row_count == 15
    monkeypatch.setattr(lakefile, "FILE_BYTES_MAX", 3 * batches[0].nbytes // 2)
    files = list(write_files(str(tmp_path), LAYOUT, batches))
    assert [file.row_count for file in files] == [10, 5]
    seqs = [read_file(str(tmp_path), file.path, file.partition_values)["seq"].to_pylist() for file in files]
    assert seqs == [[*range(1, 11)], [*range(11, 16)]], "the order is kept"


def test_without_rows_there_is_no_file(tmp_path: Path) -> None:
    assert list(write_files(str(tmp_path), LAYOUT, [lake_batch(1, 0)])) == []
    assert list(tmp_path.iterdir()) == []


def test_what_is_deleted_is_gone(tmp_path: Path) -> None:
    (file,) = write_files(str(tmp_path), LAYOUT, [lake_batch(1, 2)])
    assert (delete_file(str(tmp_path), file.path), delete_file(str(tmp_path), file.path)) == (True, False)
    assert not Path(tmp_path, file.path).exists()
