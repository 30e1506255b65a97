"""A column that no stream has is refused when a pipeline is declared; what may come from elsewhere is left to Spark."""

from __future__ import annotations

import pytest

from topics.errors import InvalidSql
from topics.sql.pipelinegrammar import definition


@pytest.mark.parametrize(
    ("query", "word", "sentence"),
    [
        ("SELECT tagg FROM STREAM o", "tagg", "o has no column tagg"),
        ("SELECT o.tagg FROM STREAM o", "tagg", "o has no column tagg"),
        ("SELECT tag FROM STREAM app.o WHERE o.tagg = 1", "tagg", "app.o has no column tagg"),
        ("SELECT value.sku FROM STREAM o", "value", "SCHEMA '…' behind the name"),
        ("SELECT value.sqq FROM STREAM o SCHEMA 'sku string'", "sqq", "no field sqq"),
        ("SELECT x.value.sqq FROM STREAM o SCHEMA 'sku string' x JOIN users ON true", "sqq", "no field sqq"),
        ("SELECT x.seqq FROM (SELECT seq FROM STREAM o) y JOIN STREAM p x ON true", "seqq", "p has no column seqq"),
        ("WITH c AS (SELECT seqq FROM STREAM o) SELECT * FROM c", "seqq", "o has no column seqq"),
    ],
)
def test_a_column_that_nobody_has_is_refused(query: str, word: str, sentence: str) -> None:
    text = f"INSERT INTO TOPIC t {query}"
    with pytest.raises(InvalidSql) as refused:
        definition(text, {})
    assert sentence in refused.value.message
    assert refused.value.detail["column"] == text.index(word) + 1


@pytest.mark.parametrize(
    ("query", "word", "sentence"),
    [
        ("SELECT u.nope FROM STREAM o JOIN chat.users u ON true", "nope", "chat.users has no column nope"),
        ("SELECT users.nope FROM STREAM o JOIN chat.users ON true", "nope", "chat.users has no column nope"),
        ("SELECT name, nope FROM STREAM o JOIN chat.users ON id = tag", "nope", "o and chat.users have no column nope"),
    ],
)
def test_a_table_whose_columns_are_known_is_asked_for_no_other(query: str, word: str, sentence: str) -> None:
    text = f"INSERT INTO TOPIC t {query}"
    tables = {"chat.users": ("id", "Name"), "other": ("x",)}
    with pytest.raises(InvalidSql) as refused:
        definition(text, {}, tables)
    assert sentence in refused.value.message and refused.value.detail["column"] == text.index(word) + 1
    definition(text.replace("nope", "ID"), {}, tables)
    definition(text, {}, {"other": ("x",)})


@pytest.mark.parametrize(
    "query",
    [
        "SELECT SEQ, Tag, o.DATA FROM STREAM o",
        "SELECT value.SKU, value.a.b, value['x'] FROM STREAM o SCHEMA 'sku string, a struct<b:int>'",
        "SELECT name, u.anything FROM STREAM o JOIN users u ON u.id = o.tag",
        "SELECT window.start, count(*) AS n FROM STREAM o GROUP BY window(ts, '1 minute') HAVING n > 1",
        "SELECT tag AS t2, concat(t2, 'x') FROM STREAM o ORDER BY t2",
        "SELECT item FROM STREAM o LATERAL VIEW explode(split(tag, ',')) x AS item",
        "SELECT transform(split(tag, ','), w -> upper(w)) FROM STREAM o",
        "SELECT n FROM (SELECT count(*) AS n FROM STREAM o) x",
        "SELECT o.tag FROM STREAM o WHERE EXISTS (SELECT 1 FROM users WHERE id = o.tag AND whatever)",
        "SELECT * FROM STREAM o",
        "(nothing_that_is_understood) UNION SELECT tagg FROM STREAM o",
    ],
)
def test_what_may_be_there_is_let_through(query: str) -> None:
    definition(f"INSERT INTO TOPIC t {query}", {})
