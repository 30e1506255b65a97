"""An outbox in PostgreSQL, see `outbox.py`. It needs the extra `topics[postgres]`, and a primary, not a standby."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple

from topics.cdc import postgrestext as text
from topics.cdc.horizon import Horizon, Mark
from topics.cdc.outbox import OUTBOX, Captured, Change, Json, Place, Snapshot
from topics.cdc.postgrestext import TableName
from topics.errors import DatabaseFailed, Forbidden, InvalidRequest, NotFound, NotInstalled
from topics.tablemodel import TableColumn

INSTALL = "pip install 'topics[postgres]'"
VERSION_MIN = 140_000
"""As PostgreSQL counts: 14, which replaces triggers without locking readers out."""


class Capture(NamedTuple):
    """The triggers of a table."""

    key: tuple[str, ...]
    enabled: bool = True
    """Whether each of them is there and fires."""


class PostgresOutbox:
    def __init__(self, location: str) -> None:
        try:
            self._psycopg: Any = import_module("psycopg")
        except ImportError:
            raise NotInstalled(f"PostgreSQL needs its client: {INSTALL}", install=INSTALL) from None
        try:
            self._connection = self._psycopg.connect(location, autocommit=True)
        except self._psycopg.Error as error:
            raise DatabaseFailed(f"PostgreSQL cannot be reached: {_said(error)}") from None
        self._horizons: dict[str, Horizon] = {}
        self._sequences: dict[str, str] = {}
        version = self._connection.info.server_version
        if version < VERSION_MIN:
            self.close()
            raise InvalidRequest(f"this is PostgreSQL {version // 10_000}, and capturing changes needs 14 or later")

    def close(self) -> None:
        self._connection.close()

    # ---- the table

    def columns(self, table: str) -> tuple[TableColumn, ...]:
        found = self._ask(text.COLUMNS, [TableName.of(table).quoted])
        return tuple(TableColumn(name, text.spark_type(kind, size), not strict) for name, kind, size, strict in found)

    def key_of(self, table: str) -> tuple[str, ...]:
        return tuple(name for (name,) in self._ask(text.PRIMARY_KEY, [TableName.of(table).quoted]))

    # ---- capturing

    def install(self, table: str, key: Sequence[str] = ()) -> bool:
        name = TableName.of(table)
        columns = [column.name for column in self.columns(table)]
        chosen = tuple(key) or self.key_of(table)
        if not chosen:
            raise InvalidRequest(
                f"table {name.text} has no primary key: name the columns that identify a row, --key id",
                field="key",
                expected=", ".join(columns),
            )
        for column in chosen:
            if column not in columns:
                raise InvalidRequest(
                    f"table {name.text} has no column {column}", field="key", expected=", ".join(columns)
                )
        before = self._installed().get(name.text)
        with self._together():
            for statement in text.install(name, chosen):
                self._run(statement)
        return before != Capture(chosen)

    def uninstall(self, table: str) -> bool:
        name = TableName.of(table)
        if name.text not in self._installed() and not self._exists(name):
            return False
        with self._together():
            for statement in text.uninstall(name):
                self._run(statement)
            left = [TableName.of(each) for each in self._installed()]
            if not any(each.schema == name.schema for each in left):
                for statement in text.uninstall_schema(name.schema):
                    self._run(statement)
        return True

    def status(self, table: str | None = None) -> list[Captured]:
        installed = self._installed()
        tables = [TableName.of(table).text] if table is not None else list(installed)
        return [self._captured(each, installed.get(each)) for each in tables]

    def _captured(self, table: str, capture: Capture | None) -> Captured:
        name = TableName.of(table)
        if capture is None:
            return Captured(table, False)
        ((count, oldest_ms),) = self._ask(text.waiting(name.outbox), [table])
        ((last_id,),) = self._ask(text.last_given(self._sequence(name.outbox)))
        problem = None if capture.enabled else "a trigger of it is disabled or gone: `topics cdc install` again"
        gone = [column for column in capture.key if column not in [each.name for each in self.columns(table)]]
        if gone:
            problem = f"the key has {gone[0]}, and the table does not: install again with another key"
        return Captured(table, True, capture.key, count, last_id, oldest_ms, problem)

    def is_captured(self, table: str) -> bool:
        found = self._installed().get(TableName.of(table).text)
        return found is not None and found.enabled

    def prune(self, table: str, upto: int) -> int:
        name = TableName.of(table)
        with self._errors(), self._connection.cursor() as cursor:
            cursor.execute(text.prune(name.outbox), [name.text, upto])
            return int(cursor.rowcount)

    def _installed(self) -> dict[str, Capture]:
        """What each table is captured by, if it has the trigger for its rows."""
        found = self._ask(text.INSTALLED, [text.TRUNCATE_TRIGGER, text.FUNCTION, text.ROW_TRIGGER])
        return {
            f"{schema}.{table}": Capture(_arguments(arguments)[1:], enabled)
            for schema, table, arguments, enabled in found
        }

    def _exists(self, name: TableName) -> bool:
        ((found,),) = self._ask("SELECT to_regclass(%s) IS NOT NULL", [name.outbox])
        return bool(found)

    # ---- reading

    def settled(self, table: str) -> int:
        outbox = TableName.of(table).outbox
        horizon = self._horizons.setdefault(outbox, Horizon())
        ((given,),) = self._ask(text.last_given(self._sequence(outbox)))
        if given > horizon.noted:
            # Behind the id, not before it: who has got the id has a lower transaction id by now.
            ((transaction,),) = self._ask(text.NEXT_TRANSACTION)
            horizon.note(Mark(given, transaction))
        ((oldest,),) = self._ask(text.OLDEST_RUNNING)
        return horizon.ended(oldest)

    def changes(self, table: str, after: Place, upto: int, limit: int) -> list[Change]:
        name = TableName.of(table)
        snapshot = after.snapshot or None
        found = self._ask(text.changes(name.outbox), [name.text, after.id, snapshot, snapshot, upto, limit])
        return [Change(*row) for row in found]

    @contextmanager
    def snapshot(self, table: str, batch: int = 10_000) -> Iterator[Snapshot]:
        settled = self.settled(table)
        with self._together("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"):
            ((seen,),) = self._ask("SELECT pg_current_snapshot()::text")
            with self._connection.cursor(name="topics_snapshot") as cursor:
                cursor.execute(text.rows(TableName.of(table)))
                yield Snapshot(Place(settled, seen), _batches(cursor, batch))

    def _sequence(self, outbox: str) -> str:
        if outbox not in self._sequences:
            ((sequence,),) = self._ask(text.SEQUENCE, [outbox])
            self._sequences[outbox] = sequence
        return self._sequences[outbox]

    # ---- the connection

    def _ask(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._errors():
            found: list[tuple[Any, ...]] = self._connection.execute(statement, values).fetchall()
            return found

    def _run(self, statement: str) -> None:
        with self._errors():
            self._connection.execute(statement)

    @contextmanager
    def _together(self, first: str = "") -> Iterator[None]:
        """All or nothing."""
        with self._errors(), self._connection.transaction():
            if first:
                self._run(first)
            yield

    @contextmanager
    def _errors(self) -> Iterator[None]:
        errors = self._psycopg.errors
        try:
            yield
        except (errors.UndefinedTable, errors.InvalidSchemaName) as error:
            hint = "; `topics cdc install` makes it" if OUTBOX in str(error) else ""
            raise NotFound(f"PostgreSQL says: {_said(error)}{hint}") from None
        except errors.InsufficientPrivilege as error:
            raise Forbidden(f"PostgreSQL says: {_said(error)}; capturing needs the owner of the table") from None
        except self._psycopg.OperationalError as error:
            raise DatabaseFailed(f"PostgreSQL says: {_said(error)}") from None
        except self._psycopg.Error as error:
            raise InvalidRequest(f"PostgreSQL says: {_said(error)}") from None


def _batches(cursor: Any, batch: int) -> Iterator[list[Json]]:
    while found := cursor.fetchmany(batch):
        yield [row for (row,) in found]


def _arguments(stored: bytes) -> tuple[str, ...]:
    """What a trigger was made with; PostgreSQL ends each with a zero."""
    return tuple(part.decode() for part in stored.split(b"\0")[:-1])


def _said(error: Exception) -> str:
    return str(error).strip().split("\n")[0] or type(error).__name__
