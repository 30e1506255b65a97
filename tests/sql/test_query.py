from __future__ import annotations

import pytest

from topics.sql.query import TABLES_MAX, NotAQuery, Spliced, parse, plain_count, tables


def found(text: str) -> list[str]:
    return [f"system.{table.name}" if table.system else table.name for table in tables(parse(text))]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT 1", []),
        ("SELECT * FROM orders", ["orders"]),
        ('SELECT * FROM app.new_messages AS m, "a-b:c"', ["app.new_messages", "a-b:c"]),
        ("SELECT * FROM a.b.c.d", ["a.b.c.d"]),
        ("SELECT * FROM System.Topics", ["system.topics"]),
        ('SELECT * FROM "system.topics"', ["system.topics"]),
        ('SELECT * FROM "system"."x"', ["system.x"]),
        ("SELECT (SELECT max(seq) FROM a) FROM b WHERE seq IN (SELECT seq FROM c) ORDER BY 1", ["a", "b", "c"]),
        ("WITH x AS (SELECT * FROM a), y AS (SELECT * FROM x) SELECT * FROM y JOIN b USING (seq)", ["a", "b"]),
        ("WITH orders AS (SELECT * FROM orders) SELECT * FROM orders", ["orders"]),
        ("WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT * FROM r", []),
        ("SELECT * FROM (WITH x AS (SELECT 1) SELECT * FROM x), x", ["x"]),
        ("SELECT * FROM range(3), unnest([1]) AS u, json_each('[]')", []),
        ("(SELECT seq FROM a) UNION ALL SELECT seq FROM b EXCEPT SELECT seq FROM a", ["a", "b", "a"]),
        ("FROM orders SELECT seq", ["orders"]),
    ],
)
def test_every_table_is_found(text: str, names: list[str]) -> None:
    assert found(text) == names


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_parquet('x')",
        "SELECT * FROM glob('*')",
        "SELECT * FROM query('SELECT 1')",
        "SELECT * FROM duckdb_settings()",
        "SELECT * FROM pragma_database_list()",
        "WITH x AS (INSERT INTO t VALUES (1)) SELECT * FROM x",
        "WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x",
        "SELECT 1 INTO x",
        "SELECT * FROM orders FOR UPDATE",
        "SELECT 1; SELECT 2",
        "SELECT * FROM",
        "WITH x AS (SELECT 1)",
        "SELECT * FROM :x.orders",
        "SELECT * FROM range(3).orders",
        'SELECT null("")',
    ],
)
def test_what_does_more_than_read_topics_is_refused(text: str) -> None:
    with pytest.raises(NotAQuery):
        parse(text)


def test_a_query_names_so_many_tables_and_no_more() -> None:
    names = [f"t{number}" for number in range(TABLES_MAX + 1)]
    assert found(f"SELECT 1 FROM {', '.join(names[:-1])}") == names[:-1]
    with pytest.raises(NotAQuery, match=f"at most {TABLES_MAX} tables, and this one {TABLES_MAX + 1}"):
        parse(f"SELECT 1 FROM {', '.join(names)}")


def test_tables_get_other_names_and_answer_to_the_old_ones() -> None:
    text = 'SELECT o.seq, x.seq FROM orders o, app.x JOIN "a""b" USING (seq)'
    spliced = Spliced(text, tables(parse(text)), ["s0", "s1", "s2"])
    assert spliced.text == 'SELECT o.seq, x.seq FROM "s0" o, "s1" AS "x" JOIN "s2" AS "a""b" USING (seq)'
    for word in ("SELECT", "o,", "JOIN", "USING", "(seq)"):
        assert spliced.place(spliced.text.index(word)) == text.index(word)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("SELECT count(*) FROM t", "count_star()"),
        ("select COUNT(*) as n from app.t x", "n"),
        ("SELECT count(*) FROM t WHERE seq > 1", None),
        ("SELECT count(*), 1 FROM t", None),
        ("SELECT count(seq) FROM t", None),
        ("SELECT count(DISTINCT seq) FROM t", None),
        ("SELECT count(*) FILTER (WHERE seq > 1) FROM t", None),
        ("SELECT count(*) OVER () FROM t", None),
        ("SELECT count(*) + 1 FROM t", None),
        ("SELECT count(*) FROM t, u", None),
        ("SELECT count(*) FROM t GROUP BY seq", None),
        ("SELECT count(*) FROM t LIMIT 0", None),
        ("SELECT count(*) FROM t HAVING count(*) > 5", None),
        ("SELECT count(*) FROM t TABLESAMPLE 10%", None),
        ("SELECT DISTINCT count(*) FROM t", None),
        ("WITH t AS (SELECT 1) SELECT count(*) FROM t", None),
        ("SELECT count(*) FROM (SELECT 1)", None),
        ("SELECT count(*)", None),
        ("SELECT count(*) FROM t UNION ALL SELECT 1", None),
    ],
)
def test_a_plain_count_is_told_from_all_others(text: str, name: str | None) -> None:
    assert plain_count(parse(text)) == name
