"""An outbox in SQLite, see `outbox.py`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import quote

from topics.cdc import sqlitetext as text
from topics.cdc.outbox import OUTBOX, Captured, Change, Json, Place, Snapshot
from topics.cdc.sqlitetext import OPERATIONS, Column
from topics.errors import DatabaseFailed, InvalidRequest, NotFound
from topics.tablemodel import TableColumn

BUSY_SECONDS = 30.0
"""How long to wait for another writer."""
_PASSING = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN}
"""What is wrong with the file for now, and not with what was asked."""


class SqliteOutbox:
    def __init__(self, location: str) -> None:
        # As an address, because that can say not to make a file that is not there.
        address = f"file:{quote(location)}?mode=rw"
        try:
            self._connection = sqlite3.connect(address, timeout=BUSY_SECONDS, isolation_level=None, uri=True)
            self._connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
        except sqlite3.Error as error:
            raise DatabaseFailed(f"{location} cannot be opened as a database of SQLite: {error}") from None

    def close(self) -> None:
        self._connection.close()

    # ---- the table

    def columns(self, table: str) -> tuple[TableColumn, ...]:
        return tuple(
            TableColumn(name, text.spark_type(declared), not (not_null or place))
            for name, declared, not_null, place in self._described(table)
        )

    def key_of(self, table: str) -> tuple[str, ...]:
        parts = [(place, name) for name, _, _, place in self._described(table) if place]
        return tuple(name for _, name in sorted(parts))

    def _described(self, table: str) -> list[tuple[str, str, bool, int]]:
        """Name, declared type, whether null is refused, and place in the primary key from 1 or 0, of each column."""
        found = self._ask('SELECT name, type, "notnull", pk FROM pragma_table_info(?) ORDER BY cid', [table])
        if not found:
            tables = [name for (name,) in self._ask("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1")]
            shown = ", ".join(name for name in tables if not name.startswith("sqlite_") and name != OUTBOX)
            raise NotFound(f"there is no table {table}; there are: {shown or 'none'}", table=table)
        return found

    # ---- capturing

    def install(self, table: str, key: Sequence[str] = ()) -> bool:
        described = self._described(table)
        names = [name for name, *_ in described]
        chosen = tuple(key) or self.key_of(table)
        wrong = next((column for column in chosen if column not in names), None)
        if wrong is not None or not chosen:
            reason = f"has no column {wrong}" if wrong is not None else "has no primary key"
            raise InvalidRequest(
                f"table {table} {reason}: name the columns that identify a row, --key id",
                field="key",
                expected=", ".join(names),
            )
        wanted = self._wanted(table, chosen)
        if self._triggers(table) == wanted and self._exists():
            return False
        with self._together():
            for statement in text.outbox():
                self._connection.execute(statement)
            self._drop_triggers(table)
            for statement in wanted.values():
                self._connection.execute(statement)
        return True

    def uninstall(self, table: str) -> bool:
        if not self._triggers(table) and not self._exists():
            return False
        with self._together():
            self._drop_triggers(table)
            if self._exists():
                self._connection.execute(f"DELETE FROM {OUTBOX} WHERE table_name = ?", [table])
            if not self._captured_tables():
                self._connection.execute(f"DROP TABLE IF EXISTS {OUTBOX}")
        return True

    def status(self, table: str | None = None) -> list[Captured]:
        tables = [table] if table is not None else self._captured_tables()
        return [self._captured(each) for each in tables]

    def is_captured(self, table: str) -> bool:
        return self._exists() and self._triggers(table).keys() == set(OPERATIONS)

    def prune(self, table: str, upto: int) -> int:
        with self._errors():
            return self._connection.execute(
                f"DELETE FROM {OUTBOX} WHERE table_name = ? AND id <= ?", [table, upto]
            ).rowcount

    def _captured(self, table: str) -> Captured:
        triggers = self._triggers(table)
        if not triggers:
            return Captured(table, False)
        key = text.key_in(next(iter(triggers.values())))
        ((count, oldest_ms),) = self._ask(f"SELECT count(*), min(ts) FROM {OUTBOX} WHERE table_name = ?", [table])
        problem = None
        if self._wanted(table, key) != triggers:
            problem = "the table has other columns than its triggers: `topics cdc install` again"
        return Captured(table, True, key, count, self.settled(table), oldest_ms, problem)

    def _wanted(self, table: str, key: Sequence[str]) -> dict[str, str]:
        columns = self._columns(table)
        return {operation: text.trigger(table, operation, key, columns) for operation in OPERATIONS}

    def _columns(self, table: str) -> list[Column]:
        return [Column(name, declared) for name, declared, *_ in self._described(table)]

    def _triggers(self, table: str) -> dict[str, str]:
        """The text of each trigger of ours that a table has, by operation."""
        found = dict(self._ask("SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ?", [table]))
        named = {operation: text.trigger_name(table, operation) for operation in OPERATIONS}
        return {operation: found[name] for operation, name in named.items() if name in found}

    def _captured_tables(self) -> list[str]:
        found = self._ask("SELECT DISTINCT tbl_name FROM sqlite_master WHERE type = 'trigger' ORDER BY 1")
        return [table for (table,) in found if self._triggers(table)]

    def _drop_triggers(self, table: str) -> None:
        for operation in OPERATIONS:
            self._connection.execute(f"DROP TRIGGER IF EXISTS {text.name(text.trigger_name(table, operation))}")

    def _exists(self) -> bool:
        return bool(self._ask("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", [OUTBOX]))

    # ---- reading

    def settled(self, table: str) -> int:
        """There is one writer at a time: what is seen is all that there is."""
        # One that is not there is told as such: by the sequence alone it would be one in which nothing came yet.
        self._ask(f"SELECT 1 FROM {OUTBOX} LIMIT 0")
        found = self._ask("SELECT seq FROM sqlite_sequence WHERE name = ?", [OUTBOX])
        return int(found[0][0]) if found else 0

    def changes(self, table: str, after: Place, upto: int, limit: int) -> list[Change]:
        statement = (
            f"SELECT id, NULL, ts, op, key, before, after FROM {OUTBOX} "
            "WHERE table_name = ? AND id > ? AND id <= ? ORDER BY id LIMIT ?"
        )
        return [Change(*row) for row in self._ask(statement, [table, after.id, upto, limit])]

    @contextmanager
    def snapshot(self, table: str, batch: int = 10_000) -> Iterator[Snapshot]:
        columns = self._columns(table)
        with self._together("BEGIN"):
            place = Place(self.settled(table))
            cursor = self._connection.execute(f"SELECT {text.image('r', columns)} FROM {text.name(table)} r")
            yield Snapshot(place, _batches(cursor, batch))

    # ---- the connection

    def _ask(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._errors():
            return self._connection.execute(statement, values).fetchall()

    @contextmanager
    def _together(self, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
        """All or nothing."""
        with self._errors():
            self._connection.execute(begin)
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                # Some errors have taken it back already; the first one is to be told.
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            # The lowest byte is the kind of error; of errors of the module itself there is none.
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in _PASSING:
                raise DatabaseFailed(f"SQLite says: {error}") from None
            if f"no such table: {OUTBOX}" in str(error):
                raise NotFound(f"SQLite says: {error}; `topics cdc install` makes it") from None
            raise InvalidRequest(f"SQLite says: {error}") from None


def _batches(cursor: sqlite3.Cursor, batch: int) -> Iterator[list[Json]]:
    while found := cursor.fetchmany(batch):
        yield [row for (row,) in found]
