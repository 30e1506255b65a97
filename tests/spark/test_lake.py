"""A lake as Spark reads it: what comes out is what went in, whatever the records hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.spark.byhand import Archiver
from topics.spark import lake
from topics.spark.server import Server
from topics.sync import Client

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VALUES: list[Any] = [
    None,
    True,
    "",
    "ä\u2028\U0001f600\x00",
    -(2**63),
    2**64 - 1,
    1e308,
    {"": {"nested": [[], {}, [None]]}},
    ["x" * 5000],
    {"$encoding": "base64"},
]


def test_everything_comes_back_as_it_was(
    spark: SparkSession, spark_server: Server, topics_client: Client, tmp_path: Path
) -> None:
    root = str(tmp_path / "lake")
    topic = topics_client.topic("a:b.c-d")
    records = [{"data": VALUES[n % len(VALUES)], "tag": f"ü{n}" if n % 2 else None} for n in range(2000)]
    topic.write_many(
        [{name: value for name, value in record.items() if value is not None or name == "data"} for record in records]
    )
    topics_client.topic("other").write(1)
    archiver = Archiver(spark_server, root, rows_per_task=700)
    archiver.batch()
    lake.optimize(root)
    rows = lake.read(spark, root, "a:b.c-d").orderBy("seq").collect()
    assert [row.seq for row in rows] == list(range(1, 2001))
    assert {(row.topic, row.partition) for row in rows} == {("a:b.c-d", 0)}
    assert [(json.loads(row.data), row.tag) for row in rows] == [(each["data"], each["tag"]) for each in records]
    assert lake.read(spark, root).count() == 2001
    assert lake.read(spark, root, ["nobody"]).collect() == []
