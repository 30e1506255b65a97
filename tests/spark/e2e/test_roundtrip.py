"""Rows of every kind, out of Spark into a topic and back, and into a lake and back: all of them, the same, in order."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.spark.rig import save, table
from topics.spark.lake import archive
from topics.testing.served import RunningServer

FIELDS = (
    "id bigint, big bigint, price decimal(20,4), text string, at timestamp, day date, flag boolean, "
    "list array<bigint>, inner struct<x: double, deep: array<struct<name: string>>>"
)
VALUES = """struct(
    id,
    9223372036854775807 - id AS big,
    CAST(id * 0.0625D AS decimal(20,4)) AS price,
    CASE WHEN id % 7 = 0 THEN NULL ELSE concat('név "', id, '" \\\\ 日本\\n', chr(CAST(id % 32 AS int))) END AS text,
    timestamp_micros(1700000000000000 + id * 1001) AS at,
    date_add(DATE'1970-01-01', CAST(id % 40000 AS int)) AS day,
    id % 2 = 0 AS flag,
    CASE WHEN id % 5 = 0 THEN NULL ELSE array(id, NULL, -id) END AS list,
    CASE WHEN id % 11 = 0 THEN NULL ELSE struct(
        CASE WHEN id % 3 = 0 THEN NULL ELSE id * 1.1D END AS x,
        array(struct(CAST(id AS string) AS name)) AS deep
    ) END AS inner
) AS data"""


def check(sent: DataFrame, back: DataFrame, count: int) -> None:
    """All that was sent is in `back`, as it was, at its place."""
    sent, got = sent.select("data.*"), back.select("value.*")
    assert got.schema.simpleString() == sent.schema.simpleString()
    assert got.count() == count
    assert sent.exceptAll(got).take(3) == []
    assert back.where("_corrupt IS NOT NULL OR seq <> value.id + 1").take(3) == []


@pytest.mark.parametrize("count", [40_000, pytest.param(1_000_000, marks=pytest.mark.soak)])
def test_what_goes_in_comes_out(spark: SparkSession, topics_server: RunningServer, tmp_path: Path, count: int) -> None:
    frame = spark.range(0, count, 1, 3).selectExpr(VALUES)
    save(frame, topics_server, "t")
    check(frame, table(spark, topics_server, "t", schema=FIELDS), count)
    archive(spark, str(tmp_path), "t", url=topics_server.url, available_now=True).awaitTermination()
    with topics_server.client() as client:
        client.topic("t").delete(before_seq=count)
    assert table(spark, topics_server, "t").count() == 1, "the rest is in the lake alone"
    check(frame, table(spark, topics_server, "t", schema=FIELDS, history="lake"), count)
