from __future__ import annotations

from typing import Any

import pytest

from tests.core.catalogrig import table
from topics.core.table import check_config, has_secret
from topics.errors import InvalidRequest
from topics.limits import TABLE_COLUMNS_MAX, TABLE_OPTIONS_MAX
from topics.tablemodel import TableColumn, TableFormat

PG = TableFormat.POSTGRESQL


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"format": PG, "location": "postgresql://app@db/chat?sslmode=require", "source": "public.messages"},
        {"format": PG, "location": "host=db dbname=chat user=app"},
        {"format": PG, "location": "", "location_env": "PG_DSN"},
        {"location": "s3://bucket/table"},
        {"format": TableFormat.CSV, "key": (), "options": {"header": "true"}},
        {"columns": (TableColumn("id", "bigint"), TableColumn("b", "string"))},
    ],
)
def test_what_may_be_registered(fields: dict[str, Any]) -> None:
    check_config("t", table(**fields))


@pytest.mark.parametrize(
    ("fields", "field", "sentence"),
    [
        ({"location": ""}, "location", "neither"),
        ({"location_env": "X"}, "location", "both"),
        ({"location": "", "location_env": "A B"}, "location_env", "no name of an environment variable"),
        ({"location": "x" * 5000}, "location", "at most"),
        ({"location": "s3://key:secret@bucket/t"}, "location", "a password"),
        ({"format": PG, "location": "postgresql://app:pw@db/chat"}, "location", "--dsn-env"),
        ({"format": PG, "location": "postgresql://db/chat?password=pw"}, "location", "a password"),
        ({"format": PG, "location": "host=db PASSWORD = 'x'"}, "location", "a password"),
        ({"key": ()}, "key", "needs a key"),
        ({"key": ("id", "ID")}, "key", "twice"),
        ({"key": ("",)}, "key", "no name"),
        ({"columns": (TableColumn("a", "int"),)}, "key", "no column id"),
        ({"columns": (TableColumn("id", "int"), TableColumn("ID", "int"))}, "columns", "twice"),
        ({"columns": (TableColumn("id", ""),)}, "columns", "a name and a type"),
        ({"columns": (TableColumn("id", "int"),) * (TABLE_COLUMNS_MAX + 1)}, "columns", "at most"),
        ({"source": "x"}, "source", "of a database"),
        ({"format": PG, "location": "db", "source": "x" * 1000}, "source", "at most"),
        ({"options": {"header": "true"}}, "options", "for files"),
        (
            {"format": TableFormat.CSV, "options": {str(n): "" for n in range(TABLE_OPTIONS_MAX + 1)}},
            "options",
            "at most",
        ),
        ({"format": TableFormat.CSV, "options": {"secret": "x"}}, "options", "no option"),
        ({"format": TableFormat.CSV, "options": {"sep": "x" * 1000}}, "options", "at most"),
    ],
)
def test_what_may_not(fields: dict[str, Any], field: str, sentence: str) -> None:
    with pytest.raises(InvalidRequest, match=sentence) as refused:
        check_config("t", table(**fields))
    assert refused.value.detail["field"] == field and refused.value.detail["expected"]


def test_a_path_may_look_like_a_password() -> None:
    assert not has_secret("/data/password=x", TableFormat.DELTA)
    assert has_secret("http://[broken", TableFormat.DELTA), "what cannot be read may hold anything"
