"""Records as rows: changes are what they say, other records are their data, and nothing is left out in silence."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from topics.spark.pipeline.rowflows import GONE, as_rows
from topics.sql.envelope import CHANGE_TYPE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RECORD = "topic string, partition int, seq bigint, ts timestamp, node string, tag string, meta string, data string"
CHANGE = json.dumps({"content-type": CHANGE_TYPE})


def records(spark: SparkSession, *datas: tuple[Any, bool]) -> DataFrame:
    rows = [
        ("orders", 0, seq, None, None, None, CHANGE if is_change else None, json.dumps(data))
        for seq, (data, is_change) in enumerate(datas, 1)
    ]
    return spark.createDataFrame(rows, RECORD)


def change(op: str, payload: Any, mode: str = "full") -> tuple[Any, bool]:
    return {"op": op, "payload": payload, "payload_mode": mode, "source_table": "t"}, True


def rows(spark: SparkSession, *datas: tuple[Any, bool], **how: Any) -> list[tuple[Any, ...]]:
    columns = spark.createDataFrame([], "id bigint, name string").schema
    wanted = {"where": "", "gone_when": "", "merges": True} | how
    found = as_rows(records(spark, *datas), columns, **wanted)
    assert found.columns == ["id", "name", *([GONE] if wanted["merges"] else [])]
    return [tuple(row) for row in found.collect()]


def test_changes_and_plain_records(spark: SparkSession) -> None:
    datas = [
        change("insert", {"id": 1, "name": "a"}),
        change("delete", {"id": 1, "name": "a"}),
        change("delete", {"id": 2}, "key"),
        ({"id": 3, "name": "plain", "else": [1]}, False),
        ({"id": 4, "name": "dead"}, False),
    ]
    assert rows(spark, *datas, where="seq < 99 AND coalesce(name, '') <> 'x'", gone_when="name = 'dead'") == [
        (1, "a", False),
        (1, "a", True),
        (2, None, True),
        (3, "plain", False),
        (4, "dead", True),
    ]


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (({"id": "seven"}, False), "topic orders, partition 0, seq 1: the record does not fit the columns"),
        ((7, False), "does not fit the columns"),
        (change("update", {"name": {"old": 1, "new": 2}}, "diff"), r"payload is not the whole row.*payload = 'full'"),
        (change("insert", {"id": 1}, "key"), "payload is not the whole row"),
    ],
)
def test_what_is_no_row_stops_it_with_its_place(spark: SparkSession, bad: tuple[Any, bool], words: str) -> None:
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException, match=words):
        rows(spark, bad)


def test_appending_takes_no_deletes_into_account(spark: SparkSession) -> None:
    assert rows(spark, change("delete", {"id": 1, "name": "a"}), merges=False) == [(1, "a")]
