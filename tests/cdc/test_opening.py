from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from topics.cdc.opening import format_of, opened
from topics.cdc.sqlite import SqliteOutbox
from topics.tablemodel import TableFormat


@pytest.mark.parametrize(
    ("location", "form"),
    [
        ("postgresql://app@db/chat", TableFormat.POSTGRESQL),
        ("postgres:///chat", TableFormat.POSTGRESQL),
        ("host=db dbname=chat", TableFormat.POSTGRESQL),
        ("dbname = chat", TableFormat.POSTGRESQL),
        ("./chat.db", TableFormat.SQLITE),
        ("/data/my host.db", TableFormat.SQLITE),
    ],
)
def test_a_location_says_what_it_is(location: str, form: TableFormat) -> None:
    assert format_of(location) is form


def test_it_is_closed_in_the_end(tmp_path: Path) -> None:
    path = tmp_path / "a b?.db"
    sqlite3.connect(path).execute("CREATE TABLE t (id INTEGER PRIMARY KEY)").connection.close()
    with opened(str(path)) as outbox:
        assert isinstance(outbox, SqliteOutbox) and outbox.key_of("t") == ("id",)
    with pytest.raises(Exception, match="closed"):
        outbox.key_of("t")
