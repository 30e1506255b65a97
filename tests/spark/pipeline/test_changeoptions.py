"""Options of a source of changes: what is missing or wrong is said."""

from __future__ import annotations

import pytest

from topics.errors import InvalidRequest
from topics.spark.pipeline.changeoptions import parse_change_options
from topics.tablemodel import TableFormat

GOOD = {"location": "/t", "key": "id, at"}


def test_what_is_said_counts_before_what_is_preset() -> None:
    options = parse_change_options({"KEY": "a"}, {**GOOD, "table": "chat.messages", "start": "now", "sinceMs": "5"})
    assert (options.key, options.table, options.start, options.since_ms) == (("a",), "chat.messages", "now", 5)
    assert parse_change_options(GOOD).key == ("id", "at")


def test_a_location_is_in_no_repr() -> None:
    shown = repr(parse_change_options({**GOOD, "location": "postgresql://u:secret@h/d"}))
    assert "secret" not in shown


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"key": "id"}, "option location must be where the table is"),
        ({"location": "/t"}, "option key must be the columns that identify a row"),
        ({**GOOD, "tableFormat": "excel"}, 'not "excel"'),
        ({**GOOD, "start": "sometime"}, "now, snapshot or version"),
        ({**GOOD, "startVersion": "-1"}, "a whole number from 0"),
        ({**GOOD, "tableFormat": TableFormat.SQLITE.value}, "option spool must be a directory"),
    ],
)
def test_what_is_wrong_is_said(given: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        parse_change_options(given)
