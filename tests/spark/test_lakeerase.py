"""Erased records are in no file of a lake any more."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.spark.lakes import filled, lake_batch, part_of, rows_of
from topics.clock import SystemClock
from topics.errors import Conflict
from topics.limits import HOUR_MS
from topics.spark.lakecare import optimize
from topics.spark.lakeerase import IN_FLIGHT_MS, erase
from topics.spark.lakefile import LakeFile, StoredFile, write_files
from topics.spark.laketable import Lake

SECRET = "a-very-secret-word"


def stored(root: str) -> bytes:
    """All bytes of all files; Parquet is compressed, so each file is read as a table as well."""
    import pyarrow.parquet as pq

    raw = b"".join(path.read_bytes() for path in Path(root).rglob("*") if path.is_file())
    return raw + b"".join(str(pq.read_table(path).to_pylist()).encode() for path in Path(root).rglob("part-*.parquet"))


def test_records_go_and_the_rest_stays(tmp_path: Path) -> None:
    lake = filled(tmp_path)
    lake.commit("q", 3, [part_of(lake, 31, 34, tag="user:7", data=SECRET), part_of(lake, 1, 2, "u", tag="user:7")])
    assert SECRET.encode() in stored(lake.root)
    receipt = erase(lake.root, "t", "user:7")
    assert (receipt.erased_count, receipt.complete, receipt.topic) == (4, True, "t")
    assert receipt.files_deleted == receipt.files_rewritten > 0
    assert SECRET.encode() not in stored(lake.root)
    assert [row["seq"] for row in rows_of(lake.root)] == [*range(1, 31), 1, 2], "the tag in another topic stays"
    again = erase(lake.root, "t", "user:7")
    assert (again.erased_count, again.files_rewritten, again.version) == (0, 0, receipt.version)
    assert Lake.open(lake.root).committed("q") == 3, "the marks are as they were"


def test_a_prefix(tmp_path: Path) -> None:
    lake = filled(tmp_path)
    receipt = erase(lake.root, "t", "t*")
    assert receipt.erased_count == 30
    assert rows_of(lake.root) == []
    assert not list(Path(lake.root).rglob("part-*.parquet"))


def test_files_that_compaction_left_are_erased_as_well(tmp_path: Path) -> None:
    lake = filled(tmp_path, parts=1)
    lake.commit("q", 1, [part_of(lake, 11, 12, per_day=1000, tag="x", data=SECRET)])
    lake = Lake.open(lake.root)
    lake.commit("q", 2, [part_of(lake, 13, 15, per_day=1000)])
    assert optimize(lake.root).files_removed > 0
    receipt = erase(lake.root, "t", "x")
    assert receipt.complete and receipt.erased_count == 2
    assert SECRET.encode() not in stored(lake.root)


def test_a_file_of_a_task_that_died_goes_when_it_is_nobodys(tmp_path: Path) -> None:
    lake = filled(tmp_path)
    (orphan,) = write_files(lake.root, lake.layout, [lake_batch(31, 32, per_day=1000, tag="x", data=SECRET)])
    receipt = erase(lake.root, "t", "x")
    assert receipt.pending_files == (orphan.path,) and not receipt.complete
    assert SECRET.encode() in stored(lake.root)
    later_ms = SystemClock().now_ms() + IN_FLIGHT_MS + HOUR_MS
    assert erase(lake.root, "t", "x", later_ms).complete
    assert SECRET.encode() not in stored(lake.root)


def test_a_file_that_was_never_finished_may_hold_anything(tmp_path: Path) -> None:
    lake = filled(tmp_path)
    torn = Path(lake.root, "topic=t", "date=2026-01-01", "part-torn.parquet")
    torn.write_bytes(b"PAR1 and then the process died")
    os.utime(torn, (0, 0))
    receipt = erase(lake.root, "t", "x")
    assert receipt.complete and receipt.files_deleted == 1
    assert not torn.exists()


def test_a_file_in_a_directory_of_somebody_elses(tmp_path: Path) -> None:
    """Its columns cannot be told, so it may hold anything."""
    lake = filled(tmp_path)
    strange = Path(lake.root, "copies", "old", "part-1.parquet")
    strange.parent.mkdir(parents=True)
    strange.write_bytes(next(Path(lake.root).rglob("part-*.parquet")).read_bytes())
    receipt = erase(lake.root, "t", "x")
    assert receipt.pending_files == ("copies/old/part-1.parquet",) and not receipt.complete


@pytest.fixture
def meddle(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Has somebody else do something each time a lake is about to be changed by an erasure."""

    def arrange(act: Callable[[], object]) -> None:
        replace = Lake.replace

        def late(lake: Lake, removed: Sequence[StoredFile], added: Sequence[LakeFile], is_change: bool = True) -> None:
            if is_change:
                act()
            replace(lake, removed, added, is_change)

        monkeypatch.setattr(Lake, "replace", late)

    return arrange


def test_a_lake_that_is_compacted_meanwhile_is_looked_at_anew(
    tmp_path: Path, meddle: Callable[[Callable[[], object]], None]
) -> None:
    lake = filled(tmp_path, parts=6)
    meddle(lambda: optimize(lake.root))
    receipt = erase(lake.root, "t", "t1")
    assert receipt.erased_count == 20 and receipt.complete
    assert {row["tag"] for row in rows_of(lake.root)} == {"t0", "t2"} and len(rows_of(lake.root)) == 40
    lake = Lake.open(lake.root)
    known = {file.path for file in lake.files()} | {*lake.table.vacuum(0, enforce_retention_duration=False)}
    there = {str(path.relative_to(lake.root)) for path in Path(lake.root).rglob("part-*.parquet")}
    assert there <= known, "what the first attempt wrote is gone as well"


def test_a_lake_that_changes_all_the_time_is_given_up(
    tmp_path: Path, meddle: Callable[[Callable[[], object]], None]
) -> None:
    lake = filled(tmp_path, parts=1)
    rounds = []

    def rewrite() -> None:
        """Another file in the place of each, with the same rows."""
        rounds.append(1)
        now = Lake.open(lake.root)
        now.commit("q", len(rounds), [part_of(now, 10 * len(rounds) + 1, 10 * len(rounds) + 10, per_day=1000)])
        optimize(lake.root)

    meddle(rewrite)
    with pytest.raises(Conflict, match="was changed meanwhile"):
        erase(lake.root, "t", "t1")
    assert len(rounds) == 5
    assert [row["seq"] for row in rows_of(lake.root)] == [*range(1, 61)], "nothing is erased, and nothing is twice"
