from __future__ import annotations

import pytest

from topics.sql.ddl import parse_columns, to_ddl
from topics.tablemodel import TableColumn


def test_columns_are_read_and_written() -> None:
    found = parse_columns("id BIGINT NOT NULL, `a b` string, s struct<X: int, y: array<string>>, d decimal(10,2)")
    assert found == (
        TableColumn("id", "bigint", False),
        TableColumn("a b", "string"),
        TableColumn("s", "STRUCT<X: INT, y: ARRAY<STRING>>"),
        TableColumn("d", "decimal(10, 2)"),
    )
    assert parse_columns(to_ddl(found)) == found


@pytest.mark.parametrize(
    "text", ["", "id", "id bigint,", "id bigint) x", "1 int", "id bigint; drop table x", "id int default null(``)"]
)
def test_what_has_no_columns_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"understood|no type|missing"):
        parse_columns(text)
