"""Positions in words, and how far behind they are."""

from __future__ import annotations

import json
from typing import Any

import pytest

from topics.spark.pipeline.progress import lag_between, position_text


@pytest.mark.parametrize(
    ("offset", "words"),
    [
        ({"version": 17}, "version 17"),
        ({"id": 4, "seen": "1:2:"}, "id 4"),
        ({"files": 3}, "file 3"),
        ({"orders": {"epoch": 1, "0": 1200, "10": 9, "2": 7}}, "orders/0@1200 orders/2@7 orders/10@9"),
        ({"start": "snapshot"}, ""),
        (None, ""),
    ],
)
def test_a_position_is_said_in_words(offset: Any, words: str) -> None:
    assert position_text(None if offset is None else json.dumps(offset)) == words


def test_a_lag_is_what_lies_between() -> None:
    def lag(here: Any, there: Any) -> int | None:
        return lag_between([json.dumps(here)], [json.dumps(there)])

    assert lag({"version": 3}, {"version": 10}) == 7
    assert lag({"start": "snapshot"}, {"version": 10}) is None
    assert lag({"a": {"epoch": 1, "0": 5}}, {"a": {"epoch": 1, "0": 8, "1": 2}}) == 5
    assert lag({"a": {"epoch": 1, "0": 5}}, {"a": {"epoch": 2, "0": 3}}) == 3, "another life of the topic"
    assert lag_between([json.dumps({"version": 3}), None], [json.dumps({"version": 4}), None]) == 1
