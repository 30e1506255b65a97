from __future__ import annotations

import pytest

from topics.sql.narrowing import narrowed
from topics.sql.query import parse, tables


def read(text: str, *parameters: object) -> list[str]:
    return [str(each) for each in narrowed(tables(parse(text)), parameters)]


ALL = "all of it"


@pytest.mark.parametrize(
    ("condition", "what"),
    [
        ("seq > 3", "seq from 4"),
        ("seq >= 3 AND (seq < 9 AND seq <= 20)", "seq from 3; seq to 8"),
        ("3 < seq AND 9 >= seq", "seq from 4; seq to 9"),
        ("seq = 5", "seq from 5; seq to 5"),
        ("seq BETWEEN 2 AND 4", "seq from 2; seq to 4"),
        ("seq IN (9, 3)", "seq from 3; seq to 9"),
        ("partition IN (2, 1) AND partition = 1", "partition in [1]"),
        ("tag = 'a'", "tag is 'a'"),
        ("tag LIKE 'a%b'", "tag beginning with 'a'"),
        ("tag LIKE 'a_b'", "tag beginning with 'a'"),
        ("tag ^@ 'ab'", "tag beginning with 'ab'"),
        ("ts > '2026-01-01'", "ts from '2026-01-01'"),
        ("ts <= now() - INTERVAL 1 DAY", "ts to NOW() - INTERVAL '1' DAY"),
        ("t.seq > 3", "seq from 4"),
        ("T.Seq > 3", "seq from 4"),
        ("seq > 3 OR seq < 2", ALL),
        ("NOT seq > 3", ALL),
        ("seq <> 3", ALL),
        ("seq > 3.5", ALL),
        ("seq > '3'", ALL),
        ("seq > data", ALL),
        ("seq > random()", ALL),
        ("seq IN (SELECT 1)", ALL),
        ("seq IN (1, 2.5)", ALL),
        ("seq NOT BETWEEN 2 AND 4", ALL),
        ("tag LIKE '%a'", ALL),
        ("tag ILIKE 'a%'", ALL),
        ("tag LIKE 'a!%b%' ESCAPE '!'", ALL),
        ("tag NOT LIKE 'a%'", ALL),
        ("tag > 'a'", ALL),
        ("ts > to_timestamp(random())", ALL),
        ("ts > data->>'x'", ALL),
        ("ts > 5", ALL),
        ("node IN (1, 2)", ALL),
        ("node LIKE 'a%'", ALL),
        ("tag LIKE 'a%' AND tag LIKE 'ab%'", "tag beginning with 'a'"),
        ("other.seq > 3", ALL),
        ("abs(seq) > 3", ALL),
    ],
)
def test_what_a_condition_leaves(condition: str, what: str) -> None:
    assert read(f"SELECT * FROM t WHERE {condition}") == [what]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("SELECT * FROM a JOIN b ON a.seq = b.seq WHERE a.seq > 3 AND b.seq < 5", ["seq from 4", "seq to 4"]),
        ("SELECT * FROM a LEFT JOIN b ON true WHERE b.seq = 5", [ALL, "seq from 5; seq to 5"]),
        ("SELECT * FROM a, b WHERE seq > 3", [ALL, ALL]),
        ("SELECT * FROM a JOIN b ON a.seq > 3", [ALL, ALL]),
        ("SELECT * FROM a ASOF JOIN b ON a.ts >= b.ts WHERE b.seq > 3", [ALL, ALL]),
        ("SELECT * FROM a POSITIONAL JOIN b WHERE b.seq > 3", [ALL, ALL]),
        ("SELECT * FROM a SEMI JOIN b USING (seq) WHERE a.seq > 3", [ALL, ALL]),
        ("SELECT * FROM a TABLESAMPLE 10% WHERE seq > 3", [ALL]),
        ("SELECT * FROM a PIVOT (count(*) FOR tag IN ('x')) WHERE seq > 3", [ALL]),
        ("SELECT * FROM (a ASOF JOIN b ON a.ts >= b.ts) WHERE b.seq > 3", [ALL, ALL]),
        ("SELECT * FROM (SELECT * FROM a) WHERE seq > 3", [ALL]),
        ("SELECT * FROM (SELECT * FROM a WHERE seq > 3) WHERE seq < 9", ["seq from 4"]),
        ("SELECT * FROM a WHERE seq > 3 AND seq IN (SELECT seq FROM b WHERE seq < 7)", ["seq from 4", "seq to 6"]),
        ("SELECT * FROM a WHERE seq > 3 UNION ALL SELECT * FROM a WHERE seq < 2", ["seq from 4", "seq to 1"]),
        ("SELECT count(*) FROM a GROUP BY tag HAVING max(seq) > 3", [ALL]),
        ("SELECT * FROM system.topics WHERE seq > 3", [ALL]),
    ],
)
def test_only_the_tables_of_a_select_are_narrowed_by_its_where(text: str, what: list[str]) -> None:
    assert read(text) == what


def test_parameters_narrow_like_literals() -> None:
    assert read("SELECT * FROM t WHERE seq > $2 AND tag = $1", "a", 7) == ["seq from 8; tag is 'a'"]
    assert read("SELECT * FROM t WHERE seq > $1", "7") == [ALL]
    (bound,) = narrowed(tables(parse("SELECT $1 FROM t WHERE ts > $2::timestamptz")), ["x", "2026-01-01"])[0].times
    assert (bound.text, bound.parameters, bound.after) == ("CAST($1 AS TIMESTAMPTZ)", ("2026-01-01",), True)


def test_a_sample_is_taken_before_the_conditions() -> None:
    assert read("SELECT * FROM a WHERE seq > 3 USING SAMPLE 5 ROWS") == [ALL]
