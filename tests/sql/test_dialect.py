"""Whose a text is: all that our grammar knows but queries is ours, and nothing that Spark would understand."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.sql.test_grammar import EXAMPLES
from tests.sql.test_printing import statements
from topics.sql.dialect import is_ours
from topics.sql.printing import to_text
from topics.sql.statements import Describe, Insert, Select, Statement


def _is_sparks(text: str) -> bool:
    """Spark has tables, too."""
    return text.upper().startswith(("SHOW TABLES", "DESCRIBE TABLE"))


@pytest.mark.parametrize("text", [text for text in EXAMPLES if not _is_sparks(text)])
def test_statements_of_ours(text: str) -> None:
    for said in (text, text.lower(), f"EXPLAIN {text}", f"  -- why\n /* so * / */\t{text};"):
        assert is_ours(said), said


def _is_like_a_table(statement: Statement) -> bool:
    """`INSERT INTO topic TABLE …` is Spark's, so a topic of that name needs quotes there."""
    return isinstance(statement, Insert | Describe) and statement.topic.upper() in ("TABLE", "REPLACE")


@given(statements.filter(lambda statement: not isinstance(statement, Select) and not _is_like_a_table(statement)))
def test_whatever_is_printed_is_ours(statement: Statement) -> None:
    text = to_text(statement)
    assert is_ours(text) is not _is_sparks(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "\n" * 10_000,
        "-- CREATE TOPIC x",
        "/* CREATE TOPIC x",
        "SELECT * FROM topics.orders",
        "select 'it\\'s' as Spark quotes it",
        "EXPLAIN SELECT 1",
        "EXPLAIN FORMATTED SELECT 1",
        "WITH topic AS (SELECT 1) SELECT * FROM topic",
        "CREATE TABLE topic (a int)",
        "CREATE OR REPLACE TEMP VIEW topics AS SELECT 1",
        "DROP TABLE topic",
        "DESCRIBE topics.orders",
        "DESCRIBE TABLE topic",
        "DESCRIBE topic",
        "DESCRIBE topic;",
        "DESCRIBE topic AS JSON",
        "SHOW TABLES IN topics",
        "SHOW DATABASES",
        "INSERT INTO topics.orders (data) VALUES ('1')",
        "INSERT INTO topic VALUES (1)",
        "INSERT INTO topic (a) VALUES (1)",
        "INSERT INTO topic SELECT 1",
        "insert into topic -- the table\n select 1",
        "INSERT INTO topic BY NAME SELECT 1 AS a",
        "INSERT INTO topic PARTITION (a = 1) VALUES (2)",
        "INSERT INTO TABLE topic VALUES (1)",
        "INSERT INTO topic",
        "RESET spark.sql.ansi.enabled",
        "RESET",
        "CLEAR CACHE",
        "ALTER TABLE topic SET TBLPROPERTIES ('a' = 'b')",
        "(SELECT 1)",
        "; CREATE TOPIC x",
        "`CONSUME` FROM x",
        "'CONSUME'",
        "CONSUMER",
    ],
)
def test_statements_of_spark(text: str) -> None:
    assert not is_ours(text)


@pytest.mark.parametrize("name", ["orders", "`a-b`", '"values"', "app.orders", "values_2026"])
def test_a_topic_or_a_table_of_that_name(name: str) -> None:
    assert is_ours(f"INSERT INTO TOPIC {name} VALUES (1)")
    assert is_ours(f"INSERT INTO TOPIC {name} (data) VALUES (1)")
