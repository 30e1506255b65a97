from __future__ import annotations

import pytest

from topics.sql.place import Place
from topics.sql.sparktext import SparkText, to_spark


@pytest.mark.parametrize(
    ("text", "spark"),
    [
        ("is_visible = true AND channel_id = 42", "is_visible = true AND channel_id = 42"),
        ('"a b" > 1', "`a b` > 1"),
        ("`a``b` > 1", "`a``b` > 1"),
        ("name = 'it''s'", "name = 'it\\'s'"),
        ("name RLIKE '\\d+'", "name RLIKE '\\\\d+'"),
        ("a -- why\n AND b /* really */", "a -- why\n AND b"),
        ("f(x, [1, 2]) IS NOT NULL", "f(x, [1, 2]) IS NOT NULL"),
    ],
)
def test_what_means_something_else_to_spark_is_written_anew(text: str, spark: str) -> None:
    assert to_spark(text) == spark


def test_a_position_leads_back_to_where_it_came_from() -> None:
    text = 'SELECT "a" FROM x'
    places = [Place(0, 6), Place(7, 10), Place(11, 15), Place(16, 17)]
    made = SparkText(text, [(places[0], "SELECT"), (places[1], "`a_long_name`"), (places[2], "FROM"), (places[3], "x")])
    assert made.text == "SELECT `a_long_name` FROM x"
    assert [made.place(at) for at in (0, 3, 7, 12, 21, 26)] == [places[n] for n in (0, 0, 1, 1, 2, 3)]
