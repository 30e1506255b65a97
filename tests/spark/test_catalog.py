from __future__ import annotations

import pytest

from topics.errors import Conflict
from topics.spark.catalog import named_tables, table_name


def test_names_of_tables() -> None:
    assert [table_name(topic) for topic in ("orders", "orders.eu", "Orders:eu-1", "a_b")] == [
        "orders",
        "orders_eu",
        "orders_eu_1",
        "a_b",
    ]
    assert named_tables(["b.c", "a"]) == {"a": "a", "b_c": "b.c"}


def test_two_topics_cannot_be_one_table() -> None:
    with pytest.raises(Conflict, match=r'topics "a.b" and "a:b" would both be the table a_b'):
        named_tables(["a:b", "x", "a.b"])
