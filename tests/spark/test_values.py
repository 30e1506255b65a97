from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from topics.errors import InvalidRequest
from topics.spark.values import infer_fields, parse_values

KIND = pa.struct([("id", pa.int64()), ("name", pa.string()), ("tags", pa.list_(pa.string()))])


def parse(texts: list[str], kind: pa.DataType = KIND) -> tuple[list[Any], list[Any]]:
    values, corrupt = parse_values(pa.array(texts, pa.string()), kind)
    assert values.type == kind
    return values.to_pylist(), corrupt.to_pylist()


def test_fields_by_name_missing_null_unknown_ignored() -> None:
    values, corrupt = parse(['{"id":1,"name":"ü","tags":["a",null]}', '{"x":{"y":1},"id":2}', "{}"])
    assert values == [
        {"id": 1, "name": "ü", "tags": ["a", None]},
        {"id": 2, "name": None, "tags": None},
        {"id": None, "name": None, "tags": None},
    ]
    assert corrupt == [None] * 3


def test_what_does_not_fit_is_kept_as_it_is() -> None:
    bad = [
        '"text"',
        "[1]",
        "1",
        '{"id":"1"}',
        '{"id":1.5}',
        '{"name":7}',
        '{"id":99999999999999999999}',
        '{"id":1,"id":2}',
    ]
    texts = [text for index, each in enumerate(bad) for text in (each, f'{{"id":{index}}}')]
    values, corrupt = parse(texts)
    assert corrupt[::2] == bad and values[::2] == [None] * len(bad)
    assert corrupt[1::2] == [None] * len(bad)
    assert [value["id"] for value in values[1::2]] == list(range(len(bad)))


def test_null_is_no_value_and_not_corrupt() -> None:
    assert parse(["null", '{"id":1}']) == ([None, {"id": 1, "name": None, "tags": None}], [None, None])
    assert parse([]) == ([], [])


def test_line_breaks_inside_a_text() -> None:
    values, corrupt = parse(['{\n"id":\n1}', '{"name":"a\\nb"}'])
    assert ([value["id"] for value in values], values[1]["name"], corrupt) == ([1, None], "a\nb", [None, None])


def test_times_dates_and_decimals() -> None:
    kind = pa.struct(
        [
            ("at", pa.timestamp("us", tz="UTC")),
            ("on", pa.date32()),
            ("price", pa.decimal128(10, 2)),
            ("in", pa.struct([("on", pa.date32())])),
        ]
    )
    texts = [
        '{"at":"2024-01-01T10:00:00.5+01:00","on":"2024-02-29","price":1.25,"in":{"on":"2024-01-01"}}',
        '{"on":"2024-02-30"}',
    ]
    values, corrupt = parse(texts, kind)
    assert values[0]["at"] == datetime(2024, 1, 1, 9, 0, 0, 500_000, UTC)
    assert (values[0]["on"], values[0]["price"], values[0]["in"]) == (
        date(2024, 2, 29),
        Decimal("1.25"),
        {"on": date(2024, 1, 1)},
    )
    assert corrupt == [None, texts[1]]


def test_types_that_json_does_not_have_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="from_json"):
        parse(["{}"], pa.struct([("m", pa.map_(pa.string(), pa.int64()))]))


def test_a_sample_says_which_fields_there_are() -> None:
    fields = infer_fields(
        ['{"id":1,"at":"2024-01-01","in":{"x":[1.5]}}', '{"id":null,"more":true}', "[1]", '{"n":null}']
    )
    assert infer_fields(["null", '{"id":1}', "null"]).equals(pa.schema([("id", pa.int64())]))
    assert len(infer_fields(["null"])) == 0
    assert {field.name: str(field.type) for field in fields} == {
        "id": "int64",
        "at": "string",
        "in": "struct<x: list<item: double>>",
        "more": "bool",
        "n": "string",
    }
