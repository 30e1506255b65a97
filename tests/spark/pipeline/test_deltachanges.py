"""What a Delta table says of its changes, whoever made them, and what it cannot say any more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.spark.pipeline import deltas
from topics.errors import NotFound, Unavailable
from topics.spark.pipeline.deltachanges import (
    check_feed,
    check_feed_at,
    committed_ms,
    last_within,
    open_table,
    read_snapshot,
    read_versions,
    row_type,
    snapshot_ms,
    version_before,
)
from topics.spark.pipeline.stops import NotCaptured, PositionGone


def changes(location: str, first: int, last: int) -> list[dict[str, Any]]:
    row = row_type(DeltaTable(location))
    return [each for batch in read_versions(location, "t", first, last, ["id"], row) for each in batch.to_pylist()]


def told(location: str, first: int, last: int) -> list[tuple[Any, ...]]:
    return [
        (each["position"], each["op"], _n(each["before"]), _n(each["after"])) for each in changes(location, first, last)
    ]


def _n(row: dict[str, Any] | None) -> Any:
    return None if row is None else (row["id"], row["n"])


@pytest.fixture
def table(tmp_path: Path) -> str:
    location = deltas.make(tmp_path / "t")
    deltas.append(location, (1, "a", 0), (2, "b", 0))
    DeltaTable(location).update(updates={"n": "n + 1"}, predicate="id = 1")
    deltas.upsert(location, (2, "B", 7), (3, "c", 7))
    DeltaTable(location).delete("id = 1")
    return location


def test_inserts_updates_deletes_and_merges_are_told(table: str) -> None:
    assert told(table, 0, 4) == [
        ("v1.0", "insert", None, (1, 0)),
        ("v1.1", "insert", None, (2, 0)),
        ("v2.0", "update", (1, 0), (1, 1)),
        ("v3.0", "update", (2, 0), (2, 7)),
        ("v3.1", "insert", None, (3, 7)),
        ("v4.0", "delete", (1, 1), None),
    ]
    assert told(table, 3, 3) == told(table, 0, 4)[3:5]


def test_a_changed_key_is_a_delete_and_an_insert(table: str) -> None:
    DeltaTable(table).update(updates={"id": "id + 10"}, predicate="id = 2")
    assert told(table, 5, 5) == [("v5.0", "delete", (2, 7), None), ("v5.1", "insert", None, (12, 7))]


def test_what_moves_rows_without_changing_them_is_no_change(table: str) -> None:
    deltas.append(table, (8, "h", 8))
    before = DeltaTable(table).version()
    DeltaTable(table).optimize.compact()
    after = DeltaTable(table).version()
    assert after > before and told(table, before + 1, after) == []


def test_an_update_that_changes_nothing_is_no_change(table: str) -> None:
    DeltaTable(table).update(updates={"n": "n"}, predicate="id = 2")
    assert told(table, 5, DeltaTable(table).version()) == []


def test_a_table_that_is_overwritten_changes_by_its_keys(table: str) -> None:
    write_deltalake(table, deltas.rows((2, "B", 8), (3, "c", 7), (4, "d", 0)), mode="overwrite")
    assert told(table, 5, 5) == [("v5.0", "update", (2, 7), (2, 8)), ("v5.1", "insert", None, (4, 0))]


def test_a_new_column_is_null_in_what_was_before(table: str) -> None:
    wider = pa.schema([*deltas.COLUMNS, pa.field("more", pa.string())])
    deltas.append(table, (9, "i", 9, "x"), columns=wider)
    found = changes(table, 4, 5)
    assert [each["before"] or each["after"] for each in found] == [
        {"id": 1, "body": "a", "n": 1, "more": None},
        {"id": 9, "body": "i", "n": 9, "more": "x"},
    ]


def test_a_snapshot_is_the_table_at_one_version(table: str) -> None:
    row = row_type(DeltaTable(table))
    found = [each for batch in read_snapshot(table, "t", 3, row) for each in batch.to_pylist()]
    assert sorted(_n(each["after"]) for each in found) == [(1, 1), (2, 7), (3, 7)]
    assert {each["op"] for each in found} == {"insert"}
    assert {each["ts"] for each in found} == {committed_ms(DeltaTable(table), 3)}
    assert sorted(each["position"] for each in found) == ["s3.0", "s3.1", "s3.2"]


def test_the_version_before_a_moment(table: str) -> None:
    found = DeltaTable(table)
    moment = committed_ms(found, 2)
    assert moment is not None
    assert version_before(found, moment) <= 1
    assert version_before(found, moment + 3_600_000) == 4
    assert version_before(found, 0) == -1


def test_files_that_were_removed_stop_it_with_a_way_on(table: str) -> None:
    DeltaTable(table).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    with pytest.raises(PositionGone, match=r"version 1 of table .* FROM VERSION 2 …, or FROM SNAPSHOT"):
        told(table, 1, 4)


def cut(table: str) -> None:
    """Versions 0 to 2 are in no file of their own any more."""
    DeltaTable(table).create_checkpoint()
    for version in range(3):
        (Path(table) / "_delta_log" / f"{version:020}.json").unlink()


def test_a_log_that_was_cut_stops_it_with_the_earliest_version(table: str) -> None:
    cut(table)
    row = row_type(DeltaTable(table))
    reads: list[Callable[[], object]] = [
        lambda: told(table, 1, 4),
        lambda: check_feed_at(table, "t", 1),
        lambda: list(read_snapshot(table, "t", 1, row)),
    ]
    for read in reads:
        with pytest.raises(PositionGone, match=r"the log begins at version 3; .* FROM VERSION 3 …"):
            read()


def test_what_a_cut_log_does_not_say_is_reckoned_with(table: str) -> None:
    cut(table)
    found = DeltaTable(table)
    assert committed_ms(found, 1) is None and committed_ms(found, 3) is not None
    assert snapshot_ms(table, "t", 1) >= (committed_ms(found, 4) or 0), "the time it is read at"
    assert last_within(table, 0, 4, 1) == 2, "of what is cut no size is known"


def test_a_version_that_is_not_there_yet_may_come(table: str) -> None:
    with pytest.raises(Unavailable, match=r'version 99 of table "t" cannot be read now'):
        check_feed_at(table, "t", 99)


def test_a_table_without_a_feed_is_refused(tmp_path: Path) -> None:
    location = deltas.make(tmp_path / "plain", feed=False)
    with pytest.raises(NotCaptured, match=r"set delta.enableChangeDataFeed = true"):
        check_feed(DeltaTable(location), "t")
    with pytest.raises(NotFound, match=r'where table "t" is registered'):
        open_table(str(tmp_path / "nothing"), "t")


def test_versions_from_before_the_feed_are_gone(tmp_path: Path) -> None:
    location = deltas.make(tmp_path / "late", feed=False)
    deltas.append(location, (1, "a", 0))
    DeltaTable(location).alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    deltas.append(location, (2, "b", 0))
    with pytest.raises(PositionGone, match=r"version 1 of table .* kept no change data at that time"):
        check_feed_at(location, "t", 1)
    check_feed_at(location, "t", 2)
    assert told(location, 3, 3) == [("v3.0", "insert", None, (2, 0))]
