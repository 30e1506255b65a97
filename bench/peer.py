"""The peer: SQLite in WAL mode, as good a log as it can be made from Python.

It gets the same JSON bodies, cut by the same parser; a batch is one transaction. A page of records is put together
inside SQLite, so that no Python object is made for a record on its side either.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import msgspec

from bench.sizes import BATCH

CHECKPOINT_PAGES = 16_384
"""64 MiB of its WAL make a checkpoint due, as in the engine."""


class Synchronous(StrEnum):
    NORMAL = "NORMAL"
    """Like the class `disk`: a commit is in the operating system's hands."""
    FULL = "FULL"
    """Like the class `fsync`: a commit is on disk."""


class _Record(msgspec.Struct, gc=False):
    data: msgspec.Raw
    tag: str | None = None
    node: str | None = None


class _Body(msgspec.Struct):
    records: list[_Record]


class PeerPage(NamedTuple):
    body: str
    delivered: int
    last_seq: int


_decoder = msgspec.json.Decoder(_Body)
_INSERT = "INSERT INTO log (ts, node, tag, data) VALUES (1700000000000, ?, ?, ?)"
_PAGE = """
    SELECT group_concat('{"$seq":' || seq || ',"$ts":' || ts || ',"data":' || data || '}'), count(*)
    FROM (SELECT * FROM log WHERE seq > ? ORDER BY seq LIMIT ?)
"""


class SqliteLog:
    def __init__(self, path: Path, synchronous: Synchronous = Synchronous.NORMAL) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute(f"PRAGMA synchronous = {synchronous}")
        self._db.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS log (seq INTEGER PRIMARY KEY, ts INTEGER, node TEXT, tag TEXT, data BLOB)"
        )

    def index_tags(self) -> None:
        self._db.execute("CREATE INDEX IF NOT EXISTS by_tag ON log (tag, seq)")

    def write(self, bodies: Iterable[bytes], per_commit: int = 1) -> None:
        """Each body's records, so many bodies a transaction."""
        open_bodies = 0
        for body in bodies:
            if not open_bodies:
                self._db.execute("BEGIN")
            rows = [(item.node, item.tag, bytes(item.data)) for item in _decoder.decode(body).records]
            self._db.executemany(_INSERT, rows)
            open_bodies += 1
            if open_bodies == per_commit:
                self._db.execute("COMMIT")
                open_bodies = 0
        if open_bodies:
            self._db.execute("COMMIT")

    def read(self, from_seq: int, but_node: str | None = None) -> PeerPage:
        """The next page behind a cursor, as wire-ready text, without the records of a node."""
        query, values = _PAGE, (from_seq, BATCH)
        if but_node is not None:
            query += "WHERE node <> ?"
            body, count = self._db.execute(query, (*values, but_node)).fetchone()
        else:
            body, count = self._db.execute(query, values).fetchone()
        return PeerPage(body, count, from_seq + BATCH)

    def checkpoint(self) -> None:
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        self._db.close()
