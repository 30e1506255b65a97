from __future__ import annotations

import pytest

from topics.errors import InvalidSql
from topics.sql.grammar import parse_script
from topics.sql.rowcolumns import check
from topics.sql.statements import AddSource

COLUMNS = ("id", "Body", "channel", "op_id", "a b")


def checked(text: str) -> None:
    ((statement, origin),) = [each for each in parse_script(text) if isinstance(each[0], AddSource)]
    assert isinstance(statement, AddSource)
    for clause, expressions in (("WHERE", statement.where), ("PARTITION", statement.partition_by)):
        if expressions is not None:
            check(expressions, clause, COLUMNS, statement.table, origin)


@pytest.mark.parametrize(
    "clauses",
    [
        "WHERE (id = 1 AND body LIKE 'x%' AND BODY IS NOT NULL)",
        "WHERE (before.id <> after.id OR op = 'delete')",
        "WHERE (channel.name.first = 'x' AND \"a b\" > 1 AND before.channel.name = 'y')",
        "WHERE (exists(channel, c -> c > id)) PARTITION BY (id, lower(body))",
        "WHERE (after IS NOT NULL)",
    ],
)
def test_columns_of_the_table_are_fine(clauses: str) -> None:
    checked(f"ALTER TOPIC t ADD SOURCE m ON UPDATE {clauses}")


@pytest.mark.parametrize(
    ("clauses", "word"),
    [
        ("WHERE (nope = 1)", "nope"),
        ("WHERE (id = 1 AND lower(bodyy) = 'x')", "bodyy"),
        ("WHERE (before.nope = 1)", "nope"),
        ("WHERE (op.id = 1 AND nope.x)", "nope"),
        ("WHERE (id > 1) PARTITION BY (id, nope)", "nope"),
        ('WHERE ("no pe" > 1)', '"no pe"'),
    ],
)
def test_another_column_is_refused_where_it_stands(clauses: str, word: str) -> None:
    text = f"SHOW ROUTES;\nALTER TOPIC nope ADD SOURCE m ON UPDATE {clauses}"
    with pytest.raises(InvalidSql, match="table m has no column") as refused:
        checked(text)
    line = text.split("\n")[1]
    assert (refused.value.detail["line"], refused.value.detail["column"]) == (2, line.index(word, 20) + 1)
    assert refused.value.detail["expected"] == list(COLUMNS)
