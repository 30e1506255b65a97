"""Changes out of an outbox, on real databases: a snapshot without hole or overlap, and each commit once."""

from __future__ import annotations

import json
import pickle
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from topics.cdc.opening import opened
from topics.spark.pipeline.changesource import ChangesSource
from topics.spark.pipeline.outboxreader import OutboxReader, database_ddl
from topics.spark.pipeline.stops import NotCaptured, PositionGone, TableChanged
from topics.tablemodel import TableFormat

Reads = Callable[..., OutboxReader]


class Stream:
    """A query by hand: it keeps its offset, and reads as tasks do, with a reader that was pickled."""

    def __init__(self, location: str, form: TableFormat, spool: Path, source: str, **options: Any) -> None:
        given = {
            "location": location,
            "tableFormat": form.value,
            "spool": str(spool),
            "source": source,
            "key": "id",
            **options,
        }
        given["columns"] = database_ddl(ChangesSource(given)._options)
        found = ChangesSource(given).streamReader(ChangesSource(given).schema())  # type: ignore[arg-type]
        assert isinstance(found, OutboxReader)
        self.reader = found
        self.place = found.initialOffset()

    def batch(self, start: dict[str, Any], end: dict[str, Any]) -> list[tuple[Any, ...]]:
        task = pickle.loads(pickle.dumps(self.reader))
        rows = [
            row for part in self.reader.partitions(start, end) for each in task.read(part) for row in each.to_pylist()
        ]
        return [(row["op"], _body(row["before"]), _body(row["after"])) for row in rows]

    def step(self) -> list[tuple[Any, ...]]:
        end = self.reader.latestOffset(self.place, ReadAllAvailable())
        if end == self.place:
            return []
        found = self.batch(self.place, end)
        self.place = end
        return found


def _body(text: str | None) -> Any:
    return None if text is None else tuple(json.loads(text).values())


@pytest.fixture
def lite(tmp_path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(tmp_path / "s.db", isolation_level=None)
    database.execute("CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT)")
    database.execute("INSERT INTO items VALUES (1, 'a'), (2, 'b')")
    with opened(str(tmp_path / "s.db")) as outbox:
        outbox.install("items")
    return database


def stream(tmp_path: Path, **options: Any) -> Stream:
    return Stream(str(tmp_path / "s.db"), TableFormat.SQLITE, tmp_path / "spool", "items", **options)


def test_sqlite_a_snapshot_and_then_each_change(lite: sqlite3.Connection, tmp_path: Path) -> None:
    found = stream(tmp_path)
    begin = found.place
    assert found.step() == [("insert", None, (1, "a")), ("insert", None, (2, "b"))]
    lite.execute("UPDATE items SET name = 'A' WHERE id = 1")
    lite.execute("BEGIN")
    lite.execute("DELETE FROM items")
    lite.execute("ROLLBACK")
    lite.execute("UPDATE items SET id = 20 WHERE id = 2")
    assert found.batch(begin, found.place) == [("insert", None, (1, "a")), ("insert", None, (2, "b"))], "as it was"
    assert found.step() == [
        ("update", (1, "a"), (1, "A")),
        ("delete", (2, "b"), None),
        ("insert", None, (20, "b")),
    ]
    assert found.step() == [] and found.reader.reportLatestOffset() == {"id": found.place["id"]}


def test_sqlite_a_snapshot_comes_in_parts_and_is_forgotten_then(lite: sqlite3.Connection, tmp_path: Path) -> None:
    for number in range(3, 6):
        lite.execute("INSERT INTO items VALUES (?, 'x')", [number])
    found, parts = stream(tmp_path, rowsPerTrigger="2"), []
    for _ in range(3):
        begin = found.place
        parts.append([row[2][0] for row in found.step()])
        lite.execute("DELETE FROM items WHERE id = 5")
        again = stream(tmp_path, rowsPerTrigger="2")
        assert [row[2][0] for row in again.batch(begin, found.place)] == parts[-1], "the same after a crash"
        found.reader.commit(found.place)
    assert parts == [[1, 2], [3, 4], [5]] and not list((tmp_path / "spool").glob("snapshot-*"))
    assert found.step() == [("delete", (5, "x"), None)] and found.step() == []


def test_sqlite_a_snapshot_of_nothing(lite: sqlite3.Connection, tmp_path: Path) -> None:
    lite.execute("DELETE FROM items")
    found = stream(tmp_path)
    assert found.step() == [] and found.step() == []
    lite.execute("INSERT INTO items VALUES (7, 'new')")
    assert found.step() == [("insert", None, (7, "new"))]


def test_sqlite_where_it_begins_and_how_much_it_takes(lite: sqlite3.Connection, tmp_path: Path) -> None:
    for number in range(3, 9):
        lite.execute("INSERT INTO items VALUES (?, 'x')", [number])
    found = stream(tmp_path, start="version", startVersion="3", rowsPerTrigger="2")
    assert [[row[2][0] for row in found.step()] for _ in range(3)] == [[5, 6], [7, 8], []]
    now = stream(tmp_path, start="now")
    now.reader.prepareForTriggerAvailableNow()
    lite.execute("INSERT INTO items VALUES (9, 'later')")
    assert [row[2][0] for row in now.step()] == [3, 4, 5, 6, 7, 8], "older ones are left out by their time, elsewhere"
    assert now.step() == []


def test_other_columns_end_the_query(lite: sqlite3.Connection, tmp_path: Path) -> None:
    found = stream(tmp_path)
    found.step()
    lite.execute("ALTER TABLE items ADD COLUMN price REAL")
    with pytest.raises(TableChanged, match="`price` double"):
        found.step()


def test_an_outbox_that_was_made_anew_is_noticed(lite: sqlite3.Connection, tmp_path: Path) -> None:
    lite.execute("INSERT INTO items VALUES (3, 'c')")
    found = stream(tmp_path, start="now")
    found.step()
    with opened(str(tmp_path / "s.db")) as outbox:
        outbox.uninstall("items")
        outbox.install("items")
    again = stream(tmp_path, start="now")
    again.place = found.place
    with pytest.raises(PositionGone, match=r"which was read already: it was made anew.*FROM SNAPSHOT"):
        again.step()


@pytest.mark.parametrize("start", ["snapshot", "now"])
def test_a_table_that_is_not_captured_is_told_at_once(lite: sqlite3.Connection, tmp_path: Path, start: str) -> None:
    """Whether there is no outbox at all, or one with the changes of another table only."""
    with opened(str(tmp_path / "s.db")) as outbox:
        outbox.uninstall("items")
        for other in (False, True):
            if other:
                lite.execute("CREATE TABLE others (id INTEGER PRIMARY KEY)")
                outbox.install("others")
            found = stream(tmp_path, start=start)
            for asked in (found.step, found.reader.reportLatestOffset, found.reader.prepareForTriggerAvailableNow):
                with pytest.raises(NotCaptured, match=r"`topics cdc install DATABASE --table items` begins with it"):
                    asked()
        outbox.install("items")
    found.step()
    lite.execute("INSERT INTO items VALUES (3, 'c')")
    assert found.step() == [("insert", None, (3, "c"))], "nothing else is in the way"
    lite.execute("DROP TRIGGER topics_capture_delete_items")
    with pytest.raises(NotCaptured):
        found.step()


def test_postgresql_a_snapshot_among_open_transactions(pipeline_postgres: str, tmp_path: Path) -> None:
    """What the snapshot has seen does not come again, what it has not seen comes, whatever the ids are."""
    with (
        psycopg.connect(pipeline_postgres, autocommit=True) as early,
        psycopg.connect(pipeline_postgres, autocommit=True) as late,
    ):
        early.execute("DROP TABLE IF EXISTS seats CASCADE")
        early.execute("CREATE TABLE seats (id bigint PRIMARY KEY, name text)")
        with opened(pipeline_postgres) as outbox:
            outbox.install("public.seats")
        early.execute("INSERT INTO seats VALUES (1, 'a')")
        early.execute("BEGIN")
        early.execute("INSERT INTO seats VALUES (2, 'open')")
        late.execute("INSERT INTO seats VALUES (3, 'c')")
        found = Stream(pipeline_postgres, TableFormat.POSTGRESQL, tmp_path, "public.seats", rowsPerTrigger="1")
        assert sorted(found.step() + found.step()) == [("insert", None, (1, "a")), ("insert", None, (3, "c"))]
        late.execute("UPDATE seats SET name = 'C' WHERE id = 3")
        assert found.step() == [], "an older transaction is still open"
        early.execute("COMMIT")
        late.execute("BEGIN")
        late.execute("DELETE FROM seats")
        late.execute("ROLLBACK")
        assert found.step() == [("insert", None, (2, "open"))]
        assert found.step() == [("update", (3, "c"), (3, "C"))], "and not the insert, whose id lies between"
        assert found.step() == []
        found.reader.stop()


def test_postgresql_a_place_behind_what_is_settled_is_waited_for(pipeline_postgres: str, tmp_path: Path) -> None:
    """An open transaction holds all ids behind its own back; that is no outbox that was made anew."""
    with (
        psycopg.connect(pipeline_postgres, autocommit=True) as early,
        psycopg.connect(pipeline_postgres, autocommit=True) as late,
    ):
        early.execute("DROP TABLE IF EXISTS chairs CASCADE")
        early.execute("CREATE TABLE chairs (id bigint PRIMARY KEY, name text)")
        with opened(pipeline_postgres) as outbox:
            outbox.install("public.chairs")
            early.execute("BEGIN")
            early.execute("INSERT INTO chairs VALUES (1, 'open')")
            late.execute("INSERT INTO chairs VALUES (2, 'b')")
            late.execute("INSERT INTO chairs VALUES (3, 'c')")
            last = outbox.status("public.chairs")[0].last_id
        found = Stream(
            pipeline_postgres,
            TableFormat.POSTGRESQL,
            tmp_path,
            "public.chairs",
            start="version",
            startVersion=str(last),
        )
        assert found.reader.getDefaultReadLimit() == ReadAllAvailable()
        assert found.step() == []
        early.execute("COMMIT")
        assert found.step() == [("insert", None, (3, "c"))]
        found.reader.stop()
        found.reader.stop()
