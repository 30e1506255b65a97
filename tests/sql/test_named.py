from __future__ import annotations

import pytest

from topics.errors import InvalidSql
from topics.groupmodel import at_seq
from topics.sql.grammar import parse, parse_script
from topics.sql.named import numbered
from topics.sql.statements import AckGroup, Consume, Insert, Json


def test_names_become_numbers() -> None:
    text = "CONSUME FROM t GROUP :who FROM OFFSET :at LIMIT :n ;\n ACK t GROUP :who UPTO :n -- :not this"
    made = numbered(text, {"n": 5, "who": "it's :n", "at": 2})
    assert made.text == "CONSUME FROM t GROUP $1 FROM OFFSET $2 LIMIT $3 ;\n ACK t GROUP $1 UPTO $3 -- :not this"
    assert made.values == ["it's :n", 2, 5]
    again = numbered("CONSUME FROM t GROUP :who FROM OFFSET :at LIMIT :n", {"n": 5, "who": "g", "at": 2})
    (statement,) = parse(again.text, again.values)
    assert statement == Consume("t", group="g", start=at_seq(2), limit=5)
    assert [each for each, _ in parse_script(text, ["g", 2, 5], made.tokens)] == [statement, AckGroup("t", "g", 5)]


def test_what_only_looks_like_a_name_stays() -> None:
    made = numbered("INSERT INTO TOPIC \"a:b\" (data, tag) VALUES (:v, ':v')", {"v": [1]})
    assert parse(made.text, made.values) == [Insert("a:b", ("data", "tag"), ((Json(b"[1]"), ":v"),))]
    assert numbered("ALTER TOPIC t ADD SOURCE s ON INSERT WHERE (a::int = 1)", {}).values == []


@pytest.mark.parametrize(
    ("text", "values", "sentence"),
    [
        ("CONSUME FROM t\n  LIMIT :n", {"m": 1}, "line 2, column 9: there is no value for :n; expected :m"),
        ("CONSUME FROM t LIMIT ?", {"n": 1}, "line 1, column 22: the values have names here; expected :n"),
        ("CONSUME FROM t LIMIT 1", {"n": 1, "m": 2}, "no statement uses :n, :m"),
        ("CONSUME FROM t LIMIT : n", {"n": 1}, "no statement uses :n"),
    ],
)
def test_names_and_values_belong_together(text: str, values: dict[str, object], sentence: str) -> None:
    with pytest.raises(InvalidSql, match=sentence):
        numbered(text, values)


def test_an_error_stands_where_it_does_in_the_text_as_it_was() -> None:
    text = "CONSUME FROM t GROUP :who LIMIT :many WIAT 5"
    made = numbered(text, {"who": "g", "many": 5})
    with pytest.raises(InvalidSql) as refused:
        parse_script(text, made.values, made.tokens)
    assert refused.value.message.split("\n")[1:] == [f"  {text}", "  " + " " * text.index("WIAT") + "^^^^"]
