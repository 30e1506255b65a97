from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topics.spark.jsontexts import json_texts


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        (pa.array(['{"a": 1}', None]), ['{"a": 1}', "null"]),
        (pa.array([1, None, 2**62]), ["1", "null", str(2**62)]),
        (pa.array([True, None]), ["true", "null"]),
        (pa.array([1.5, float("nan"), None, 2.0, 1e300, -0.0]), ["1.5", "null", "null", "2.0", "1e+300", "-0.0"]),
        (pa.array([[1, None], [], None]), ["[1,null]", "[]", "null"]),
        (pa.array([["a"], None, ["b", None]]).slice(1), ["null", '["b",null]']),
        (
            pa.array([{"a": {"b": ['x"\\\u0001']}}, {"a": None}, None]),
            ['{"a":{"b":["x\\"\\\\\\u0001"]}}', '{"a":null}', "null"],
        ),
        (pa.array([{"a": 1}, {"a": 2}]).slice(1), ['{"a":2}']),
        (pa.array([{"": "é\u2028", 'q"': None}]), ['{"":"é\u2028","q\\"":null}']),
        (pa.array([{}]), ["{}"]),
        (pa.nulls(2), ["null", "null"]),
        (pa.array([[], None], pa.map_(pa.string(), pa.int64())), ["{}", "null"]),
        (pa.array([[(1, [("x", True)])]], pa.map_(pa.int32(), pa.map_(pa.string(), pa.bool_()))), ['{"1":{"x":true}}']),
        (pa.array([[("k", [b"x", None])]], pa.map_(pa.string(), pa.list_(pa.binary()))), ['{"k":["eA==",null]}']),
        (pa.array([{"a": None, "b": "ü\n"}, None]), ['{"a":null,"b":"ü\\n"}', "null"]),
        (pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())), ['{"k":1}']),
        (
            pa.array([{"m": [("k", b"x")]}], pa.struct([("m", pa.map_(pa.string(), pa.binary()))])),
            ['{"m":{"k":"eA=="}}'],
        ),
        (pa.array([Decimal("1.20")]), ["1.20"]),
        (pa.array([date(2024, 1, 2)]), ['"2024-01-02"']),
        (pa.array([datetime(2024, 1, 2, 3, 4, 5, 600, UTC)]), ['"2024-01-02T03:04:05.000600Z"']),
    ],
)
def test_columns_as_json(column: pa.Array, texts: list[str]) -> None:
    assert json_texts(column).to_pylist() == texts


VALUE = st.fixed_dictionaries(
    {
        "i": st.none() | st.integers(-(2**63), 2**63 - 1),
        "s": st.none() | st.text(max_size=6),
        "f": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "l": st.none() | st.lists(st.none() | st.text(max_size=3), max_size=3),
        "o": st.none() | st.fixed_dictionaries({"b": st.none() | st.booleans()}),
    }
)
KIND = pa.struct(
    [
        ("i", pa.int64()),
        ("s", pa.string()),
        ("f", pa.float64()),
        ("l", pa.list_(pa.string())),
        ("o", pa.struct([("b", pa.bool_())])),
    ]
)


@given(st.lists(st.none() | VALUE, max_size=12), st.integers(0, 3))
def test_it_is_the_json_of_the_values(values: list[Any], skip: int) -> None:
    texts = json_texts(pa.array(values, KIND).slice(skip)).to_pylist()
    assert [json.loads(text) for text in texts] == values[skip:]
