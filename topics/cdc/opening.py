"""Which database a location is, and its outbox."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from topics.cdc.outbox import Outbox
from topics.cdc.postgres import PostgresOutbox
from topics.cdc.sqlite import SqliteOutbox
from topics.tablemodel import TableFormat

_KEYWORDS = re.compile(r"(?:^|\s)(?:host|hostaddr|dbname|service|port|user)\s*=")


def format_of(location: str) -> TableFormat:
    """PostgreSQL's addresses and `key=value` words; anything else is the path of a SQLite file."""
    if location.startswith(("postgresql://", "postgres://")) or _KEYWORDS.search(location):
        return TableFormat.POSTGRESQL
    return TableFormat.SQLITE


@contextmanager
def opened(location: str, form: TableFormat | None = None) -> Iterator[Outbox]:
    """The outbox of a database, closed in the end."""
    is_postgres = (form or format_of(location)) is TableFormat.POSTGRESQL
    outbox: Outbox = PostgresOutbox(location) if is_postgres else SqliteOutbox(location)
    try:
        yield outbox
    finally:
        outbox.close()
