from __future__ import annotations

import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Event

import pytest

from tests.spark.lakes import filled, part_of, rows_of
from topics.errors import Conflict, InvalidRequest
from topics.spark.lakecare import optimize, state, vacuum
from topics.spark.lakeerase import erase
from topics.spark.laketable import Lake

GUARD_S = 60


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
    with pytest.raises(InvalidRequest, match="keep_days must be 0, which keeps all, or more, not -1"):
        vacuum(lake.root, keep_days=-1)


def test_a_large_file_is_made_of_as_many_as_it_takes(tmp_path: Path) -> None:
    lake = filled(tmp_path, parts=6, layout="topic")
    before = rows_of(lake.root)
    sizes = [file.size_bytes for file in lake.files()]
    assert optimize(lake.root, max(sizes)).files_added == 0, "each is large enough"
    told = optimize(lake.root, 2 * max(sizes))
    assert (told.files_removed, told.files_added) == (6, 3)
    assert [file.row_count for file in Lake.open(lake.root).files()] == [20, 20, 20]
    assert rows_of(lake.root) == before


@pytest.mark.parametrize("meanwhile", ["compacted", "erased", "archived"])
def test_what_others_do_while_files_are_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, meanwhile: str) -> None:
    """The lake was opened before that, and is changed after it."""
    lake = filled(tmp_path, parts=6)
    stale = Lake.open(lake.root)
    match meanwhile:
        case "compacted":
            assert optimize(lake.root).files_added == 5
        case "erased":
            assert erase(lake.root, "t", "t*").complete
        case "archived":
            lake.commit("q", 6, [part_of(lake, 61, 62)])
    before = rows_of(lake.root)
    opened, first = Lake.open, iter([stale])
    monkeypatch.setattr(Lake, "open", lambda root: next(first, None) or opened(root))
    told = optimize(lake.root)
    assert rows_of(lake.root) == before, "nothing is twice, and nothing is back"
    assert told.files_added == (5 if meanwhile == "archived" else 0)
    known = {file.path for file in Lake.open(lake.root).files()}
    known |= {*lake.table.vacuum(0, enforce_retention_duration=False), *(file.path for file in stale.files())}
    assert {str(path.relative_to(lake.root)) for path in Path(lake.root).rglob("*.parquet")} - known == set()


def test_days_are_not_let_go_when_somebody_else_was_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = filled(tmp_path)
    optimize(lake.root)
    before = rows_of(lake.root)
    with monkeypatch.context() as patch:
        patch.setattr(Lake, "open", lambda root: lake)
        with pytest.raises(Conflict, match="was changed meanwhile: try again"):
            vacuum(lake.root, keep_days=1)
    assert rows_of(lake.root) == before


def test_each_record_is_there_once_or_erased_whatever_happens_at_once(tmp_path: Path) -> None:
    lake = filled(tmp_path)
    done = Event()

    def archive() -> None:
        try:
            for number in range(3, 13):
                now = Lake.open(lake.root)
                first = 10 * number + 1
                now.commit("q", number, [part_of(now, first, first + 9, per_day=50, tag=f"e{number % 2}")])
        finally:
            done.set()

    def look_after() -> None:
        while not done.is_set():
            optimize(lake.root)

    def forget() -> int:
        count = 0
        while not done.is_set():
            # Who comes too late each time may try again.
            with suppress(Conflict):
                count += erase(lake.root, "t", "e0").erased_count
        return count

    with ThreadPoolExecutor(4) as threads:
        forgetting, *others = [threads.submit(each) for each in (forget, archive, look_after, look_after)]
        for other in others:
            other.result(GUARD_S)
        erased_count = forgetting.result(GUARD_S)
    assert erased_count + erase(lake.root, "t", "e0").erased_count == 50
    seqs = Counter(row["seq"] for row in rows_of(lake.root))
    assert set(seqs.values()) == {1} and len(seqs) == 80
    assert not any(row["tag"] == "e0" for row in rows_of(lake.root))
