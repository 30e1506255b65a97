"""Answers of a server as Arrow tables: each type as Spark has it, and JSON to the letter."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import msgspec
import pyarrow as pa

from topics.spark.answers import _decoder, _table

COLUMNS = {
    "text": ("VARCHAR", '"ä"', "ä"),
    "json": ("JSON", '{"n": 9223372036854775808.50, "n2":1e3}', '{"n": 9223372036854775808.50, "n2":1e3}'),
    "whole": ("BIGINT", "-9223372036854775808", -(2**63)),
    "large": ("UBIGINT", "18446744073709551615", Decimal(2**64 - 1)),
    "flag": ("BOOLEAN", "true", True),
    "real": ("DOUBLE", "0.5", 0.5),
    "time": ("TIMESTAMP WITH TIME ZONE", '"2026-01-28T12:00:00.123Z"', datetime(2026, 1, 28, 12, 0, 0, 123000, UTC)),
    "other": ("STRUCT(a INTEGER)", '{"a": 1}', '{"a": 1}'),
}


def test_each_type_and_nothing_at_all() -> None:
    columns = [{"name": name, "type": kind} for name, (kind, _, _) in COLUMNS.items()]
    row = ",".join(text for _, text, _ in COLUMNS.values())
    nulls = ",".join("null" for _ in COLUMNS)
    head = msgspec.json.encode(columns).decode()
    body = f'{{"results":[{{"columns":{head},"rows":[[{row}],[{nulls}]],"row_count":2}}],"performance":{{}}}}'
    (result,) = _decoder.decode(body).results
    first, second = _table(result).to_pylist()
    assert first == {name: value for name, (_, _, value) in COLUMNS.items()}
    assert second == dict.fromkeys(COLUMNS)


def test_what_was_done_in_words() -> None:
    (result,) = _decoder.decode('{"results":[{"columns":[],"rows":[],"row_count":0,"message":"done"}]}').results
    assert _table(result) == pa.table({"message": ["done"]})
