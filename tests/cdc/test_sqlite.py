from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cdc.outboxes import everything, told
from topics.cdc import sqlite
from topics.cdc.outbox import OUTBOX, Outbox, Place
from topics.cdc.sqlite import SqliteOutbox
from topics.errors import DatabaseFailed, InvalidRequest, NotFound
from topics.tablemodel import TableColumn


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(tmp_path / "chat.db", isolation_level=None)
    connection.execute("CREATE TABLE messages (id INTEGER PRIMARY KEY, body TEXT, ok BOOLEAN, raw BLOB, price REAL)")
    yield connection
    connection.close()


@pytest.fixture
def outbox(tmp_path: Path, writer: sqlite3.Connection) -> Iterator[Outbox]:
    made = SqliteOutbox(str(tmp_path / "chat.db"))
    yield made
    made.close()


def row(number: int, body: str | None = "a", **fields: object) -> dict[str, object]:
    return {"id": number, "body": body, "ok": None, "raw": None, "price": None} | fields


def test_each_change_is_kept_with_both_images(writer: sqlite3.Connection, outbox: Outbox) -> None:
    writer.execute("INSERT INTO messages (id, body) VALUES (1, 'before')")
    assert outbox.install("messages")
    writer.execute("INSERT INTO messages VALUES (2, 'it''s', TRUE, x'00ff', 1.5), (3, NULL, FALSE, NULL, NULL)")
    writer.execute("UPDATE messages SET body = 'b' WHERE id = 2")
    writer.execute("UPDATE messages SET id = 9 WHERE id = 3")
    writer.execute("DELETE FROM messages WHERE id = 1")
    two = row(2, "it's", ok=True, raw="00FF", price=1.5)
    three = row(3, None, ok=False)
    assert [told(change) for change in everything(outbox, "messages")] == [
        ("insert", {"id": 2}, None, two),
        ("insert", {"id": 3}, None, three),
        ("update", {"id": 2}, two, two | {"body": "b"}),
        ("update", {"id": 9}, three, three | {"id": 9}),
        ("delete", {"id": 1}, row(1, "before"), None),
    ]


def test_a_transaction_that_is_rolled_back_leaves_nothing(writer: sqlite3.Connection, outbox: Outbox) -> None:
    outbox.install("messages")
    writer.execute("BEGIN")
    writer.execute("INSERT INTO messages (id) VALUES (1)")
    writer.execute("ROLLBACK")
    writer.execute("INSERT INTO messages (id) VALUES (2)")
    assert [told(change)[1] for change in everything(outbox, "messages")] == [{"id": 2}]


def test_what_is_read_goes_on_behind_a_place(writer: sqlite3.Connection, outbox: Outbox) -> None:
    outbox.install("messages")
    writer.executemany("INSERT INTO messages (id) VALUES (?)", [(number,) for number in range(5)])
    assert [change.id for change in outbox.changes("messages", Place(1), 4, 2)] == [2, 3]
    assert outbox.settled("messages") == 5
    assert outbox.prune("messages", 4) == 4
    (status,) = outbox.status()
    assert (status.change_count, status.last_id, outbox.settled("messages")) == (1, 5, 5)
    assert outbox.prune("messages", 5) == 1 and outbox.settled("messages") == 5, "ids are not given again"


def test_a_snapshot_and_what_came_after(writer: sqlite3.Connection, outbox: Outbox) -> None:
    outbox.install("messages")
    writer.executemany("INSERT INTO messages (id) VALUES (?)", [(number,) for number in range(3)])
    writer.execute("PRAGMA journal_mode = WAL")
    with outbox.snapshot("messages", batch=2) as snapshot:
        writer.execute("INSERT INTO messages (id) VALUES (7)")
        found = [json.loads(text) for batch in snapshot.rows for text in batch]
        place = snapshot.place
    assert found == [row(number, None) for number in range(3)]
    assert [told(change)[1] for change in everything(outbox, "messages", place)] == [{"id": 7}]


def test_installing_again_changes_nothing_or_brings_it_up_to_date(writer: sqlite3.Connection, outbox: Outbox) -> None:
    assert outbox.install("messages") and not outbox.install("messages")
    writer.execute("ALTER TABLE messages ADD COLUMN extra TEXT")
    (status,) = outbox.status()
    assert status.problem is not None and "topics cdc install" in status.problem
    assert outbox.install("messages")
    (status,) = outbox.status("messages")
    assert status.problem is None and status.key == ("id",)
    writer.execute("INSERT INTO messages (id, extra) VALUES (1, 'x')")
    ((_, _, _, after),) = map(told, everything(outbox, "messages"))
    assert after == row(1, None, extra="x")
    assert outbox.install("messages", ["body", "id"])
    assert outbox.status()[0].key == ("body", "id")


def test_uninstalling_removes_everything(writer: sqlite3.Connection, outbox: Outbox) -> None:
    before = _schema(writer)
    writer.execute('CREATE TABLE "odd */ name" ("a b" INTEGER PRIMARY KEY)')
    with_odd = _schema(writer)
    outbox.install("messages")
    outbox.install("odd */ name")
    writer.execute('INSERT INTO "odd */ name" VALUES (1)')
    assert [status.key for status in outbox.status()] == [("id",), ("a b",)]
    assert outbox.uninstall("messages")
    assert [told(change)[3] for change in everything(outbox, "odd */ name")] == [{"a b": 1}]
    assert outbox.uninstall("odd */ name") and not outbox.uninstall("messages")
    assert _schema(writer) == with_odd
    writer.execute('DROP TABLE "odd */ name"')
    assert _schema(writer) == before and outbox.status() == []
    assert not outbox.status("messages")[0].installed


def test_whether_each_change_is_captured(writer: sqlite3.Connection, outbox: Outbox) -> None:
    writer.execute("CREATE TABLE others (id INTEGER PRIMARY KEY)")
    assert not outbox.is_captured("messages")
    outbox.install("others")
    assert outbox.is_captured("others") and not outbox.is_captured("messages")
    outbox.install("messages")
    assert outbox.is_captured("messages")
    writer.execute("DROP TRIGGER topics_capture_update_messages")
    assert not outbox.is_captured("messages") and outbox.install("messages") and outbox.is_captured("messages")
    writer.execute(f"DROP TABLE {OUTBOX}")
    assert not outbox.is_captured("messages")


def test_a_name_in_another_case_is_another_name_of_the_same_table(writer: sqlite3.Connection, outbox: Outbox) -> None:
    outbox.install("Messages")
    writer.execute("INSERT INTO messages (id) VALUES (1)")
    assert (outbox.is_captured("Messages"), outbox.is_captured("messages")) == (True, False)
    assert [each.table for each in outbox.status()] == ["Messages"] and len(everything(outbox, "Messages")) == 1
    assert not outbox.install("Messages") and outbox.uninstall("Messages") and outbox.status() == []


def test_a_table_that_is_gone_can_be_removed(writer: sqlite3.Connection, outbox: Outbox) -> None:
    outbox.install("messages")
    writer.execute("INSERT INTO messages (id) VALUES (1)")
    writer.execute("DROP TABLE messages")
    assert outbox.status() == [] and outbox.uninstall("messages") and not outbox.uninstall("messages")
    assert _schema(writer) == []


def test_an_outbox_that_is_gone_is_made_again_or_removed(writer: sqlite3.Connection, outbox: Outbox) -> None:
    outbox.install("messages")
    writer.execute(f"DROP TABLE {OUTBOX}")
    with pytest.raises(sqlite3.OperationalError, match=OUTBOX):
        writer.execute("INSERT INTO messages (id) VALUES (1)")
    with pytest.raises(NotFound, match="`topics cdc install` makes it"):
        outbox.status("messages")
    assert outbox.install("messages") and not outbox.install("messages")
    assert OUTBOX in dict(_schema(writer))
    writer.execute("INSERT INTO messages (id) VALUES (1)")
    assert [told(change)[1] for change in everything(outbox, "messages")] == [{"id": 1}]
    writer.execute(f"DROP TABLE {OUTBOX}")
    assert outbox.uninstall("messages")
    assert [name for name, _ in _schema(writer)] == ["messages"]
    writer.execute("INSERT INTO messages (id) VALUES (2)")


def test_what_fails_half_way_leaves_nothing(writer: sqlite3.Connection, outbox: Outbox) -> None:
    writer.execute("CREATE VIEW seen AS SELECT id FROM messages")
    before = _schema(writer)
    with pytest.raises(InvalidRequest, match="SQLite says: cannot create AFTER trigger on view"):
        outbox.install("seen", ["id"])
    assert _schema(writer) == before
    assert outbox.install("messages"), "nothing is open any more"


def test_an_error_is_told_even_when_nothing_can_be_taken_back(outbox: Outbox) -> None:
    outbox.install("messages")
    with pytest.raises(OSError, match="no room"), outbox.snapshot("messages"):
        outbox.close()
        raise OSError("no room for the snapshot")


def test_who_cannot_commit_for_now_may_try_again(
    writer: sqlite3.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.01)
    outbox = SqliteOutbox(str(tmp_path / "chat.db"))
    writer.execute("BEGIN")
    before = _schema(writer)
    with pytest.raises(DatabaseFailed, match="SQLite says: database is locked"):
        outbox.install("messages")
    writer.execute("COMMIT")
    assert _schema(writer) == before
    assert outbox.install("messages")
    outbox.close()


def _schema(writer: sqlite3.Connection) -> list[tuple[str, str]]:
    found = writer.execute("SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY 1")
    return found.fetchall()


def test_the_columns_are_told_as_spark_calls_them(outbox: Outbox) -> None:
    assert outbox.columns("messages") == (
        TableColumn("id", "bigint", False),
        TableColumn("body", "string"),
        TableColumn("ok", "boolean"),
        TableColumn("raw", "string"),
        TableColumn("price", "double"),
    )
    assert outbox.key_of("messages") == ("id",)


def test_what_cannot_be(writer: sqlite3.Connection, outbox: Outbox, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="there are: messages"):
        outbox.install("nothing")
    with pytest.raises(InvalidRequest, match="no column nope"):
        outbox.install("messages", ["nope"])
    writer.execute("CREATE TABLE keyless (a)")
    with pytest.raises(InvalidRequest, match="no primary key"):
        outbox.install("keyless")
    with pytest.raises(NotFound, match="topics cdc install"):
        outbox.changes("messages", Place(), 9, 9)
    with pytest.raises(NotFound, match="topics cdc install"):
        outbox.settled("messages")
    with pytest.raises(NotFound, match="topics cdc install"), outbox.snapshot("messages"):
        pass
    with pytest.raises(DatabaseFailed, match="cannot be opened"):
        SqliteOutbox(str(tmp_path / "missing.db"))
    (tmp_path / "text.db").write_text("this is no database, and long enough to be seen as none" * 20)
    with pytest.raises(DatabaseFailed, match="not a database"):
        SqliteOutbox(str(tmp_path / "text.db"))
    assert not (tmp_path / "missing.db").exists() and OUTBOX == "topics_outbox"
