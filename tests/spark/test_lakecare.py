from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.spark.lakes import filled, part_of, rows_of
from topics.errors import InvalidRequest
from topics.spark.lakecare import optimize, state, vacuum
from topics.spark.laketable import Lake


@pytest.mark.parametrize("layout", ["topic,date", "date"])
def test_what_is_in_a_lake(tmp_path: Path, layout: str) -> None:
    lake = filled(tmp_path, layout=layout)
    lake.commit("q", 3, [part_of(lake, 1, 2, "u")])
    found = state(lake.root)
    assert (found.count, found.layout, found.location) == (32, layout, lake.root)
    assert [(each.topic, each.count) for each in found.topics] == [("t", 30), ("u", 2)]
    assert (found.topics[0].first_date, found.topics[0].last_date) == ("2026-01-01", "2026-01-04")
    assert found.bytes == sum(file.size_bytes for file in Lake.open(lake.root).files())


def test_small_files_become_large_ones(tmp_path: Path) -> None:
    lake = filled(tmp_path, parts=6)
    before = rows_of(lake.root)
    files = state(lake.root).files
    told = optimize(lake.root)
    assert told.files_removed > told.files_added > 0
    assert state(lake.root).files == files - told.files_removed + told.files_added
    assert rows_of(lake.root) == before
    assert Lake.open(lake.root).committed("q") == 5


def test_old_days_and_leftovers_go(tmp_path: Path) -> None:
    lake = filled(tmp_path)
    orphan = Path(lake.root, "topic=t", "date=2026-01-01", "part-nobody.parquet")
    orphan.write_bytes(b"")
    os.utime(orphan, (0, 0))
    assert vacuum(lake.root, dry_run=True).files_deleted == 1
    assert orphan.exists()
    assert vacuum(lake.root).files_deleted == 1
    assert not orphan.exists()
    trial = vacuum(lake.root, keep_days=1, dry_run=True)
    told = vacuum(lake.root, keep_days=1)
    assert trial.rows_dropped == told.rows_dropped == 30
    assert rows_of(lake.root) == []


def test_what_may_be_about_to_be_committed_is_left(tmp_path: Path) -> None:
    lake = filled(tmp_path, parts=1)
    Path(lake.root, "topic=t", "date=2026-01-01", "part-young.parquet").write_bytes(b"")
    assert vacuum(lake.root, older_than_hours=1).files_deleted == 0
    with pytest.raises(InvalidRequest, match="about to be committed"):
        vacuum(lake.root, older_than_hours=0)
