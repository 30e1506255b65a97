from __future__ import annotations

import msgspec
import pytest

from topics.errors import InvalidRequest
from topics.tablemodel import TableColumn, TableConfig, TableFormat, TableRoute, TableState
from topics.wire.table import decode_table, table_fields, table_state, table_summary

CONFIG = TableConfig(
    format=TableFormat.SQLITE,
    location="/db",
    source="messages",
    key=("id",),
    columns=(TableColumn("id", "bigint", False),),
)
STATE = TableState(
    table="t",
    config=CONFIG,
    created_ts=1,
    changed_ts=2,
    routes=(TableRoute(topic="x", operation="insert", payload="key", number=3),),
)


def test_a_table_is_told_and_read_again() -> None:
    told = msgspec.json.decode(msgspec.json.encode(table_fields(STATE)))
    assert table_state(told) == STATE
    assert decode_table(msgspec.json.encode(told)) == CONFIG
    assert table_summary(STATE)["route_count"] == 1 and "columns" not in table_summary(STATE)


def test_null_is_leaving_out() -> None:
    body = b'{"format": "csv", "location": "/f", "key": null, "columns": null, "options": null, "other": 1}'
    assert decode_table(body) == TableConfig(format=TableFormat.CSV, location="/f")


@pytest.mark.parametrize("body", [b"", b"[]", b'{"format": 1}', b'{"format": "delta", "options": {"a": 1}}', b"{"])
def test_what_is_no_table_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidRequest):
        decode_table(body)
