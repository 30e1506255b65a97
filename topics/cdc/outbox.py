"""An outbox: a table beside a table, into which triggers write each change within the transaction that makes it.

`postgres.py` and `sqlite.py` are the two databases behind one protocol, `postgrestext.py` and `sqlitetext.py` the
statements that they run. See docs/PIPELINES.md, "Change capture".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, Protocol

from topics.tablemodel import TableColumn

OUTBOX: Final = "topics_outbox"
"""What the table of changes is called."""

Json = str
"""An object as JSON text: numbers are exactly as the database has them."""


@dataclass(frozen=True, slots=True)
class Place:
    """How far somebody has read: up to and with this id."""

    id: int = 0
    snapshot: str = ""
    """Of PostgreSQL: what this snapshot has seen was read with it, whatever its id."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one row."""

    id: int
    xid: int | None
    ts: int
    """Milliseconds since 1970."""
    operation: str
    """`insert`, `update` or `delete`."""
    key: Json
    before: Json | None
    after: Json | None


@dataclass(frozen=True, slots=True)
class Captured:
    """What is captured of one table, and what waits in the outbox."""

    table: str
    installed: bool
    key: tuple[str, ...] = ()
    change_count: int = 0
    """Rows of it in the outbox."""
    last_id: int = 0
    """The highest id that was ever given, whether its change is still there or not."""
    oldest_ms: int | None = None
    problem: str | None = None
    """Why not all changes are captured as they are, and what helps."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A table at one moment, and the place in the outbox that goes with it. Rows are read while it is open."""

    place: Place
    rows: Iterator[list[Json]]
    """In batches."""


class Outbox(Protocol):
    """The changes of a database's tables. One connection; close it."""

    def close(self) -> None: ...

    def columns(self, table: str) -> tuple[TableColumn, ...]:
        """The columns of a table, with types in the words of Spark; `NotFound` when there is no such table."""

    def key_of(self, table: str) -> tuple[str, ...]:
        """Its primary key; empty when it has none."""

    def install(self, table: str, key: Sequence[str] = ()) -> bool:
        """Capture changes from now on, with this key or the primary key; False when all was there already."""

    def uninstall(self, table: str) -> bool:
        """Capture nothing any more and forget what waits; False when nothing was there."""

    def status(self, table: str | None = None) -> list[Captured]:
        """What is captured: of one table, or of all that are."""

    def is_captured(self, table: str) -> bool:
        """Whether each change of a table comes into the outbox now, under this name."""

    def prune(self, table: str, upto: int) -> int:
        """Remove changes up to and with an id, which everybody has read; how many."""

    def settled(self, table: str) -> int:
        """The highest id up to which every change is there or never will be. Ask again and again: it goes up."""

    def changes(self, table: str, after: Place, upto: int, limit: int) -> list[Change]:
        """Changes behind a place up to and with an id, in their order."""

    def snapshot(self, table: str, batch: int = 10_000) -> AbstractContextManager[Snapshot]:
        """All rows as they are at one moment."""
