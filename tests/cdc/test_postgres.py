"""An outbox on a real PostgreSQL: what is kept, in which order it is read, and what an open transaction holds back."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cdc.outboxes import everything, told
from topics.cdc import postgres
from topics.cdc.outbox import Captured, Outbox, Place
from topics.cdc.postgres import PostgresOutbox
from topics.errors import DatabaseFailed, Forbidden, InvalidRequest, NotFound, NotInstalled
from topics.tablemodel import TableColumn

psycopg = pytest.importorskip("psycopg")
pytestmark = pytest.mark.xdist_group("postgres")

TABLE = "chat.messages"


@pytest.fixture
def outbox(database: str) -> Iterator[Outbox]:
    with psycopg.connect(database, autocommit=True) as made:
        made.execute("CREATE SCHEMA chat")
        made.execute(f"CREATE TABLE {TABLE} (id bigint PRIMARY KEY, body text, price numeric(12,3))")
    opened = PostgresOutbox(database)
    opened.install(TABLE)
    yield opened
    opened.close()


@pytest.fixture
def one(database: str, outbox: Outbox) -> Iterator[Any]:
    """A writer; each statement begins a transaction unless one is open."""
    with psycopg.connect(database) as connection:
        yield connection


@pytest.fixture
def two(database: str, outbox: Outbox) -> Iterator[Any]:
    with psycopg.connect(database) as connection:
        yield connection


def insert(connection: Any, number: int, body: str = "a") -> None:
    connection.execute(f"INSERT INTO {TABLE} VALUES (%s, %s)", [number, body])


def keys(outbox: Outbox, after: Place | None = None, table: str = TABLE) -> list[int]:
    return [json.loads(change.key)["id"] for change in everything(outbox, table, after)]


def row(number: int, body: str = "a") -> dict[str, Any]:
    return {"id": number, "body": body, "price": None}


def test_each_change_is_kept_with_both_images(one: Any, outbox: Outbox) -> None:
    one.execute(f"INSERT INTO {TABLE} VALUES (1, 'it''s \\d', 12345678.9), (2, NULL, NULL)")
    one.execute(f"UPDATE {TABLE} SET body = 'b' WHERE id = 1")
    one.execute(f"UPDATE {TABLE} SET id = 9 WHERE id = 2")
    one.execute(f"DELETE FROM {TABLE} WHERE id = 1")
    one.commit()
    found = everything(outbox, TABLE)
    first = {"id": 1, "body": "it's \\d", "price": 12345678.9}
    second = {"id": 2, "body": None, "price": None}
    assert [told(change) for change in found] == [
        ("insert", {"id": 1}, None, first),
        ("insert", {"id": 2}, None, second),
        ("update", {"id": 1}, first, first | {"body": "b"}),
        ("update", {"id": 9}, second, second | {"id": 9}),
        ("delete", {"id": 1}, first | {"body": "b"}, None),
    ]
    assert found[0].after is not None and '"price": 12345678.900' in found[0].after, "numbers are exact"
    assert len({change.xid for change in found}) == 1


def test_a_transaction_that_is_rolled_back_leaves_nothing(one: Any, outbox: Outbox) -> None:
    insert(one, 1)
    one.rollback()
    insert(one, 2)
    one.commit()
    assert keys(outbox) == [2]


def test_an_earlier_id_that_is_committed_later_is_not_passed_over(one: Any, two: Any, outbox: Outbox) -> None:
    insert(one, 1)
    insert(two, 2)
    two.commit()
    assert keys(outbox) == [], "the first may still come"
    one.commit()
    assert keys(outbox) == [1, 2]


def test_one_that_gives_up_holds_nothing_back_any_more(one: Any, two: Any, outbox: Outbox) -> None:
    insert(one, 1)
    insert(two, 2)
    two.commit()
    one.rollback()
    assert keys(outbox) == [2]


def test_what_comes_while_one_is_open_is_read_as_far_as_it_was_before_it(one: Any, two: Any, outbox: Outbox) -> None:
    insert(one, 1)
    one.commit()
    assert keys(outbox) == [1]
    insert(one, 2)
    insert(two, 3)
    two.commit()
    assert outbox.settled(TABLE) == 1
    one.commit()
    insert(two, 4)
    assert outbox.settled(TABLE) == 3, "the one that is open now had nothing at that time"
    two.commit()
    assert keys(outbox) == [1, 2, 3, 4]


def test_changes_of_a_row_are_in_the_order_they_happened(one: Any, two: Any, outbox: Outbox) -> None:
    """The first transaction has the lower number and changes the row last."""
    insert(one, 1)
    insert(two, 2, "second")
    two.commit()
    one.execute(f"UPDATE {TABLE} SET body = 'first' WHERE id = 2")
    one.commit()
    changes = [change for change in everything(outbox, TABLE) if json.loads(change.key) == {"id": 2}]
    assert [json.loads(change.after or "")["body"] for change in changes] == ["second", "first"]
    assert changes[0].xid is not None and changes[1].xid is not None and changes[0].xid > changes[1].xid


def test_a_prepared_transaction_is_open_too(one: Any, two: Any, outbox: Outbox) -> None:
    one.execute("BEGIN")
    insert(one, 1)
    one.execute("PREPARE TRANSACTION 'later'")
    one.commit()
    insert(two, 2)
    two.commit()
    assert keys(outbox) == []
    two.autocommit = True
    two.execute("COMMIT PREPARED 'later'")
    assert keys(outbox) == [1, 2]


def test_truncate_deletes_each_row(one: Any, outbox: Outbox) -> None:
    insert(one, 1)
    insert(one, 2)
    one.execute(f"TRUNCATE {TABLE}")
    one.commit()
    assert [told(change)[:3] for change in everything(outbox, TABLE)[2:]] == [
        ("delete", {"id": 1}, row(1)),
        ("delete", {"id": 2}, row(2)),
    ]


def test_partitions_are_captured_under_the_name_of_their_table(one: Any, outbox: Outbox) -> None:
    one.execute("CREATE TABLE chat.parts (id bigint PRIMARY KEY) PARTITION BY RANGE (id)")
    one.execute("CREATE TABLE chat.part1 PARTITION OF chat.parts FOR VALUES FROM (0) TO (100)")
    one.commit()
    outbox.install("chat.parts")
    one.execute("INSERT INTO chat.parts VALUES (1), (2)")
    one.execute("TRUNCATE chat.parts")
    one.commit()
    found = [told(change)[:2] for change in everything(outbox, "chat.parts")]
    assert found == [(op, {"id": number}) for op in ("insert", "delete") for number in (1, 2)]
    assert [status.table for status in outbox.status()] == ["chat.messages", "chat.parts"]


def test_a_snapshot_and_changes_have_neither_hole_nor_overlap(one: Any, two: Any, outbox: Outbox) -> None:
    insert(one, 1)
    one.commit()
    insert(two, 2)  # open while the snapshot is taken
    insert(one, 3)
    one.commit()
    with outbox.snapshot(TABLE, batch=1) as snapshot:
        two.commit()
        insert(one, 4)
        one.commit()
        rows = [json.loads(text)["id"] for batch in snapshot.rows for text in batch]
        place = snapshot.place
    assert rows == [1, 3]
    assert keys(outbox, place) == [2, 4]


def test_random_transactions_rebuild_the_table(one: Any, two: Any, outbox: Outbox) -> None:
    """Two writers at random, a reader in between: replaying what it reads gives the table, whatever was rolled back."""
    chance = random.Random(7)
    state: dict[int, Any] = {}
    place = Place()
    for _ in range(300):
        connection = chance.choice((one, two))
        connection.execute("SET lock_timeout = 50")
        number = chance.randrange(6)
        statement = chance.choice(
            [
                f"INSERT INTO {TABLE} VALUES ({number}, '{chance.random()}') ON CONFLICT DO NOTHING",
                f"UPDATE {TABLE} SET body = '{chance.random()}' WHERE id = {number}",
                f"DELETE FROM {TABLE} WHERE id = {number}",
            ]
        )
        try:
            connection.execute(statement)
        except psycopg.errors.LockNotAvailable:
            connection.rollback()
        if chance.random() < 0.3:
            connection.commit() if chance.random() < 0.7 else connection.rollback()
        if chance.random() < 0.2:
            place = _replayed(outbox, place, state)
    one.commit()
    two.commit()
    _replayed(outbox, place, state)
    found = dict(one.execute(f"SELECT id, body FROM {TABLE}").fetchall())
    assert {number: value["body"] for number, value in state.items()} == found


def _replayed(outbox: Outbox, place: Place, state: dict[int, Any]) -> Place:
    upto = outbox.settled(TABLE)
    for change in outbox.changes(TABLE, place, upto, 10_000):
        _, key, before, after = told(change)
        assert state.get(key["id"]) == before, "each change is behind the one before it"
        state.pop(key["id"], None)
        if after is not None:
            state[after["id"]] = after
    return Place(max(upto, place.id))


def test_installing_and_removing(one: Any, outbox: Outbox) -> None:
    assert not outbox.install(TABLE), "it is there already"
    assert outbox.install(TABLE, ["id", "body"]) and outbox.status()[0].key == ("id", "body")
    one.execute("CREATE TABLE chat.other (id bigint PRIMARY KEY)")
    one.commit()
    outbox.install("chat.other")
    insert(one, 1)
    one.commit()
    assert outbox.uninstall(TABLE) and [status.table for status in outbox.status()] == ["chat.other"]
    assert outbox.status(TABLE) == [Captured(TABLE, False)]
    assert everything(outbox, TABLE) == []
    assert outbox.uninstall("chat.other") and not outbox.uninstall(TABLE)
    left = one.execute(
        "SELECT relname FROM pg_class WHERE relname LIKE 'topics%' UNION ALL "
        "SELECT proname FROM pg_proc WHERE proname LIKE 'topics%' UNION ALL "
        "SELECT tgname FROM pg_trigger WHERE tgname LIKE 'topics%'"
    ).fetchall()
    assert left == []
    insert(one, 2)
    one.commit()


@pytest.mark.parametrize(
    "what",
    ["DISABLE TRIGGER USER", "DISABLE TRIGGER topics_capture_truncate", "ENABLE REPLICA TRIGGER topics_capture_rows"],
)
def test_whether_each_change_is_captured(one: Any, outbox: Outbox, what: str) -> None:
    one.execute("CREATE TABLE chat.others (id bigint PRIMARY KEY)")
    one.commit()
    assert (outbox.is_captured(TABLE), outbox.is_captured("chat.others")) == (True, False)
    one.execute(f"ALTER TABLE {TABLE} {what}")
    one.commit()
    assert_mended_by_installing_again(outbox, TABLE)
    insert(one, 1)
    one.commit()
    assert keys(outbox) == [1]


def test_a_truncate_that_nobody_would_see_is_told(one: Any, outbox: Outbox) -> None:
    insert(one, 1)
    one.execute(f"DROP TRIGGER topics_capture_truncate ON {TABLE}")
    one.commit()
    assert_mended_by_installing_again(outbox, TABLE)
    one.execute(f"TRUNCATE {TABLE}")
    one.commit()
    assert [change.operation for change in everything(outbox, TABLE)] == ["insert", "delete"]


def test_a_partition_without_its_trigger_is_told(one: Any, outbox: Outbox) -> None:
    one.execute("CREATE TABLE chat.parts (id bigint PRIMARY KEY) PARTITION BY RANGE (id)")
    one.execute("CREATE TABLE chat.high PARTITION OF chat.parts FOR VALUES FROM (100) TO (900) PARTITION BY RANGE (id)")
    one.execute("CREATE TABLE chat.higher PARTITION OF chat.high FOR VALUES FROM (500) TO (900)")
    one.commit()
    outbox.install("chat.parts")
    assert outbox.is_captured("chat.parts")
    one.execute("ALTER TABLE chat.higher DISABLE TRIGGER topics_capture_rows")
    one.commit()
    assert_mended_by_installing_again(outbox, "chat.parts")
    one.execute("INSERT INTO chat.parts VALUES (500)")
    one.commit()
    assert keys(outbox, table="chat.parts") == [500]


def assert_mended_by_installing_again(outbox: Outbox, table: str) -> None:
    (found,) = outbox.status(table)
    assert not outbox.is_captured(table)
    assert found.problem == "a trigger of it is disabled or gone: `topics cdc install` again"
    assert outbox.install(table) and outbox.is_captured(table) and outbox.status(table)[0].problem is None


def test_a_key_that_the_table_has_no_more_is_told(one: Any, outbox: Outbox) -> None:
    one.execute(f"ALTER TABLE {TABLE} RENAME COLUMN id TO number")
    one.commit()
    (found,) = outbox.status(TABLE)
    assert found.problem == "the key has id, and the table does not: install again with another key"
    assert outbox.install(TABLE) and outbox.status(TABLE)[0].problem is None


def test_a_table_that_is_gone_can_be_removed(one: Any, outbox: Outbox) -> None:
    insert(one, 1)
    one.execute(f"DROP TABLE {TABLE}")
    one.commit()
    assert outbox.status() == [] and outbox.uninstall(TABLE) and not outbox.uninstall(TABLE)


def test_pruning(one: Any, outbox: Outbox) -> None:
    for number in range(5):
        insert(one, number)
    one.commit()
    assert outbox.prune(TABLE, 3) == 3 and keys(outbox) == [3, 4]
    (status,) = outbox.status(TABLE)
    assert (status.change_count, status.last_id, status.oldest_ms is not None) == (2, 5, True)


def test_who_writes_needs_no_right_on_the_outbox(one: Any, outbox: Outbox, database: str) -> None:
    one.execute("CREATE ROLE app LOGIN")
    one.execute("GRANT USAGE ON SCHEMA chat TO app")
    one.execute(f"GRANT SELECT, INSERT ON {TABLE} TO app")
    one.commit()
    try:
        with psycopg.connect(database.replace("postgres@", "app@"), autocommit=True) as app:
            insert(app, 1)
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                app.execute("DELETE FROM chat.topics_outbox")
        theirs = PostgresOutbox(database.replace("postgres@", "app@"))
        with pytest.raises(Forbidden, match="the owner of the table"):
            theirs.install(TABLE, ["body"])
        theirs.close()
        assert keys(outbox) == [1]
    finally:
        one.execute("DROP OWNED BY app")
        one.execute("DROP ROLE app")
        one.commit()


def test_the_columns_are_told_as_spark_calls_them(one: Any, outbox: Outbox) -> None:
    assert outbox.columns(TABLE) == (
        TableColumn("id", "bigint", False),
        TableColumn("body", "string"),
        TableColumn("price", "decimal(12,3)"),
    )
    one.execute(
        "CREATE TABLE typed (a int, b smallint, c boolean, d real, e double precision, f date, g timestamp, "
        "h timestamptz, i numeric, j uuid, k jsonb, l int[], m numeric(39,2))"
    )
    one.commit()
    kinds = [column.type for column in outbox.columns("typed")]
    assert kinds[:8] == ["int", "smallint", "boolean", "float", "double", "date", "timestamp_ntz", "timestamp"]
    assert kinds[8:] == ["string"] * 5


def test_what_cannot_be(one: Any, outbox: Outbox, database: str) -> None:
    with pytest.raises(NotFound, match="does not exist"):
        outbox.install("chat.nothing")
    with pytest.raises(NotFound, match="topics cdc install"):
        outbox.settled("elsewhere")
    with pytest.raises(InvalidRequest, match="no column nope"):
        outbox.install(TABLE, ["nope"])
    one.execute("CREATE TABLE keyless (a int)")
    one.commit()
    with pytest.raises(InvalidRequest, match="no primary key"):
        outbox.install("keyless")
    with pytest.raises(DatabaseFailed, match="cannot be reached"):
        PostgresOutbox("postgresql://127.0.0.1:1/x")


def test_what_fails_half_way_leaves_nothing(one: Any, outbox: Outbox) -> None:
    one.execute("CREATE SCHEMA seen")
    one.execute(f"CREATE VIEW seen.messages AS SELECT id FROM {TABLE}")
    one.commit()
    with pytest.raises(InvalidRequest, match=r"PostgreSQL says: .*view"):
        outbox.install("seen.messages", ["id"])
    assert one.execute("SELECT to_regclass('seen.topics_outbox')").fetchall() == [(None,)]
    assert [status.table for status in outbox.status()] == [TABLE]


def test_a_server_that_goes_away_is_told_as_such(one: Any, outbox: Outbox) -> None:
    others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    one.execute(f"SELECT pg_terminate_backend(pid, 10000) {others}")
    for _ in range(2):
        with pytest.raises(DatabaseFailed, match=r"PostgreSQL says: .*connection"):
            outbox.settled(TABLE)


def test_an_older_server_is_refused(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "VERSION_MIN", 990_000)
    with pytest.raises(InvalidRequest, match=r"this is PostgreSQL \d\d, and capturing changes needs 14 or later"):
        PostgresOutbox(database)


def test_what_is_not_installed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(NotInstalled, match=r"pip install 'topics\[postgres\]'") as refused:
        PostgresOutbox("postgresql://127.0.0.1:1/x")
    assert refused.value.detail == {"install": "pip install 'topics[postgres]'"}
