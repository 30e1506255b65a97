"""What a pipeline's query becomes for Spark, and what is refused with its place."""

from __future__ import annotations

import pytest

from topics.errors import InvalidSql
from topics.pipelinemodel import PipelineConfig
from topics.sql.pipelinegrammar import definition


def insert(query: str) -> PipelineConfig:
    return definition(f"INSERT INTO TOPIC t {query}", {})


def test_streams_and_tables_become_views_under_their_old_names() -> None:
    made = insert(
        "SELECT orders.tag, u.name FROM STREAM app.orders SCHEMA 'sku string' WATERMARK (value.at) DELAY '5 minutes' "
        "JOIN chat.users u ON u.id = orders.tag LEFT JOIN chat.users ON true JOIN STREAM app.orders o2 ON true"
    )
    assert made.sql == (
        "SELECT orders.tag, u.name FROM `topics_stream_1` AS `orders` "
        "JOIN `topics_table_1` u ON u.id = orders.tag LEFT JOIN `topics_table_1` AS `users` ON true "
        "JOIN `topics_stream_2` o2 ON true"
    )
    first, second = made.streams
    assert (first.view, first.topic, first.schema) == ("topics_stream_1", "app.orders", "sku string")
    assert (first.watermark, first.delay) == ("value.at", "5 minutes")
    assert (second.view, second.topic, second.schema, second.delay) == ("topics_stream_2", "app.orders", "", "")
    assert [(each.view, each.table) for each in made.tables] == [("topics_table_1", "chat.users")]


def test_names_and_strings_are_spark_s() -> None:
    made = insert("""SELECT "a b" AS x, 'it''s \\d' FROM STREAM "big-orders" o JOIN "odd table" ON true""")
    expected = "SELECT `a b` AS x, 'it\\'s \\\\d' FROM `topics_stream_1` o JOIN `topics_table_1` AS `odd table` ON true"
    assert made.sql == expected
    assert made.streams[0].topic == "big-orders" and made.tables[0].table == "odd table"


def test_a_with_clause_and_a_subquery_are_not_tables() -> None:
    made = insert("WITH c AS (SELECT * FROM STREAM o) SELECT * FROM c JOIN (SELECT seq FROM STREAM p) AS q ON true")
    assert [stream.topic for stream in made.streams] == ["o", "p"] and made.tables == ()
    assert "FROM c JOIN (SELECT seq FROM `topics_stream_2` AS `p`) AS q" in made.sql


def test_a_hint_names_no_table_of_its_own() -> None:
    made = insert("SELECT /*+ BROADCAST(u, users) */ o.tag FROM STREAM o JOIN chat.users u ON true JOIN users ON true")
    assert [each.table for each in made.tables] == ["chat.users", "users"]
    assert made.sql == (
        "SELECT /*+ BROADCAST(u, users) */ o.tag FROM `topics_stream_1` AS `o` JOIN `topics_table_1` u ON true "
        "JOIN `topics_table_2` AS `users` ON true"
    )


def test_records_may_be_spread_by_several_expressions() -> None:
    made = definition("INSERT INTO TOPIC t PARTITION BY (tag, lower(node)) SELECT tag, node FROM STREAM o", {})
    assert made.partition_by == "tag, lower(node)"


def test_functions_in_place_of_tables_stay() -> None:
    made = insert("SELECT o.tag, r.id FROM STREAM o CROSS JOIN range(3) r")
    assert made.sql.endswith("CROSS JOIN range(3) r") and made.tables == ()


def test_a_merge_says_what_it_takes() -> None:
    made = definition(
        "MERGE INTO delta.'/p' KEY (id, \"b c\") DELETE WHEN (value.gone) "
        "FROM STREAM o SCHEMA 'id int, `b c` int' WHERE (tag <> 'x')",
        {"trigger_ms": 7},
    )
    assert (made.path, made.key, made.delete_when, made.where) == ("/p", ("id", "b c"), "value.gone", "tag <> 'x'")
    assert (made.sql, made.streams[0].topic, made.options.trigger_ms) == ("", "o", 7)
    made = definition("MERGE INTO delta.'/p' KEY (tag) SELECT tag, count(*) AS n FROM STREAM o GROUP BY tag", {})
    assert made.sql == "SELECT tag, count(*) AS n FROM `topics_stream_1` AS `o` GROUP BY tag" and made.where == ""


@pytest.mark.parametrize(
    ("text", "column", "sentence"),
    [
        ("INSERT INTO TOPIC t SELECT a FROM b", 21, "at least one topic as a stream"),
        ("INSERT INTO TOPIC t SELECT tag FROM STREAM o WHER x", 51, "not understood as a query"),
        ("INSERT INTO TOPIC t SELECT FROM STREAM", 39, "ends too early"),
        ("INSERT INTO TOPIC t DELETE FROM STREAM o", 21, "this is no query"),
        ("INSERT INTO TOPIC t SELECT tag FROM STREAM o; SELECT 1", 45, "; is not understood"),
        ("INSERT INTO TOPIC t SELECT ? FROM STREAM o", 28, "no parameter"),
        ("INSERT INTO TOPIC t SELECT tag FROM STREAM o SCHEMA 'x'", 53, "no columns with their types"),
        ("INSERT INTO TOPIC t SELECT tag FROM STREAM o WATERMARK ts", 58, "ends too early"),
        ("INSERT INTO TOPIC t SELECT tag FROM STREAM o WATERMARK ts DELAY 'soon'", 65, "no length of time"),
        ("INSERT INTO TOPIC t SELECT tag FROM STREAM o WATERMARK ts DELAY INTERVAL 5 APPLES", 74, "5 apples is no"),
        ("INSERT INTO TOPIC t SELECT extract(day FROM STREAM o) FROM STREAM o", 45, "cannot stand here"),
        ("INSERT INTO TOPIC t PARTITION BY () SELECT tag FROM STREAM o", 35, ") is not understood"),
        ("INSERT INTO TOPIC t SELECT tag FROM STREAM o FOR UPDATE", 21, "a query only reads, and LOCK does more"),
        ("INSERT INTO TOPIC t WITH x AS (DELETE FROM y) SELECT * FROM STREAM o", 21, "DELETE does more"),
        ("INSERT INTO TOPIC t SELECT tag FROM STREAM o JOIN :x.y", 55, ":x.y is not understood as a table"),
        (f"INSERT INTO TOPIC t SELECT {'(' * 3000}1{')' * 3000} FROM STREAM o", 6043, "nested too deeply"),
        ("INSERT INTO TOPIC t PARTITION BY (a b c) SELECT tag FROM STREAM o", 35, "this is no expression"),
        ("INSERT INTO TOPIC t PARTITION BY (null(``)) SELECT tag FROM STREAM o", 35, "this is no expression"),
        ("INSERT INTO TOPIC t SELECT null(``) FROM STREAM o", 21, "this is not understood as a query"),
        ("MERGE INTO delta.'p' KEY (id) FROM STREAM o SCHEMA 'a int'", 22, "no field id"),
        ("MERGE INTO delta.'p' KEY (id) FROM o", 36, "STREAM"),
        ("APPEND INTO delta.'s3://key:secret@b/t' FROM STREAM o", 19, "a password"),
        ("APPEND INTO delta.'' FROM STREAM o", 19, "is empty"),
        ("APPEND INTO delta.$1 FROM STREAM o", 19, "no parameter"),
        ("APPEND INTO delta.'p' FROM STREAM o SCHEMA ?", 44, "no parameter"),
        ("INSERT INTO TOPIC t SELECT tag FROM STREAM o WATERMARK tss DELAY '1 day'", 56, "no column tss"),
        ("INSERT INTO TOPIC t SELECT tag FROM STREAM o JOIN f(1).x", 57, "(1).x is not understood as a table"),
        ("INSERT INTO TOPIC t SELECT tag FROM STREAM o JOIN IDENTIFIER('text.`/p`')", 21, "identifier reaches beyond"),
        ("INSERT INTO TOPIC t SELECT (SELECT Reflect('a', 'b')) FROM STREAM o", 21, "reflect reaches beyond"),
        ("INSERT INTO TOPIC t SELECT x.`try_reflect`(1) FROM STREAM o", 21, "try_reflect reaches beyond"),
        ("INSERT INTO TOPIC t PARTITION BY (java_method('a', 'b')) SELECT 1 FROM STREAM o", 35, "java_method cannot"),
        ("MERGE INTO delta.'p' KEY (a) DELETE WHEN (reflect('a')) FROM STREAM o", 43, "reflect cannot stand"),
        ("APPEND INTO delta.'p' FROM STREAM o WHERE (tag IN (SELECT value FROM text.`/p`))", 44, "a table cannot"),
    ],
)
def test_what_is_not_understood_is_refused_where_it_stands(text: str, column: int, sentence: str) -> None:
    with pytest.raises(InvalidSql) as refused:
        definition(text, {})
    assert sentence in refused.value.message
    assert (refused.value.detail["line"], refused.value.detail["column"]) == (1, column)


def test_options_by_name_are_checked() -> None:
    text = "INSERT INTO TOPIC t SELECT tag FROM STREAM o"
    wrong: list[dict[str, object]] = [{"trigger_ms": "5"}, {"trigger_ms": True}, {"starting": "now"}, {"x": 1}]
    wrong += [{"checkpoint": ""}, {"checkpoint": "s3://k:s@b"}]
    for options in wrong:
        with pytest.raises(InvalidSql, match=r"cannot be|no option|a password"):
            definition(text, options)
    assert definition(text + ";", {"checkpoint": "s3://b/c"}).options.checkpoint == "s3://b/c"
