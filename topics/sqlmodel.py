"""What a statement answers, as users see it: columns, rows, and a word on what was done."""

from __future__ import annotations

from typing import Any

import msgspec

from topics.model import Reason


class SqlColumn(msgspec.Struct, frozen=True):
    """A column of a result."""

    name: str
    type: str
    """As SQL calls it: `VARCHAR`, `BIGINT`, `JSON`, …"""


class SqlTombstone(msgspec.Struct, frozen=True, kw_only=True):
    """Records that were lost before the statement could read them: `gap_from` to `gap_to`, both included."""

    topic: str
    partition: int
    gap_from: int
    gap_to: int
    reason: Reason
    missed_estimate: int
    earliest_seq: int
    head_seq: int


class SqlResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to one statement. A value of a JSON column is the value; times are text in UTC."""

    columns: list[SqlColumn]
    rows: list[list[Any]]
    row_count: int
    message: str | None = None
    """In words, what a statement without rows did."""
    tombstone: SqlTombstone | None = None
    tombstones: list[SqlTombstone] = []
    """All of them, when records were lost in several partitions."""

    def dicts(self) -> list[dict[str, Any]]:
        """The rows by the names of the columns."""
        names = [column.name for column in self.columns]
        return [dict(zip(names, row, strict=True)) for row in self.rows]
