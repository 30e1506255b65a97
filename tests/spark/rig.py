"""What the tests of Spark have in common: DataFrames of a server, and what is in a topic without Spark."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from topics.spark.source import TopicsSource
from topics.testing.served import RunningServer


def table(spark: SparkSession, server: RunningServer, topic: str, **options: Any) -> DataFrame:
    reader = spark.read.format("topics").option("url", server.url).option("topic", topic)
    return reader.options(**{name: str(value) for name, value in options.items()}).load()


def stream(spark: SparkSession, server: RunningServer, topic: str, **options: Any) -> DataFrame:
    reader = spark.readStream.format("topics").option("url", server.url).option("topic", topic)
    return reader.options(**{name: str(value) for name, value in options.items()}).load()


def save(frame: DataFrame, server: RunningServer, topic: str = "", **options: Any) -> None:
    writer = frame.write.format("topics").option("url", server.url).mode("append")
    if topic:
        writer = writer.option("topic", topic)
    writer.options(**{name: str(value) for name, value in options.items()}).save()


def fill(server: RunningServer, topic: str, *datas: Any, **options: Any) -> None:
    with server.client() as client:
        client.topic(topic).write_many([{"data": data} for data in datas], **options)


def datas(server: RunningServer, topic: str, partition: int = 0) -> list[Any]:
    """All that is in a partition, in order."""
    found: list[Any] = []
    with server.client() as client:
        while True:
            page = client.topic(topic).diff(len(found), partition=partition, limit=1000)
            found += [record.data for record in page.records]
            if page.caught_up:
                return found


def stages(server: RunningServer) -> int:
    """How many stages the server holds."""
    host = server._server._server._context.host  # type: ignore[union-attr]
    assert host is not None
    return len(host.engine.machine.batches.stages)


def source(server: RunningServer, topic: str, **options: Any) -> TopicsSource:
    """The format itself, as Spark makes it, without a session."""
    given = {"url": server.url, "topic": topic} | {name: str(value) for name, value in options.items()}
    return TopicsSource(given)


def schema_of(made: TopicsSource) -> StructType:
    found = made.schema()
    assert isinstance(found, StructType)
    return found


def read(reader: DataSourceReader | DataSourceStreamReader, ranges: Sequence[InputPartition]) -> list[dict[str, Any]]:
    """What the tasks of a query read, one after the other."""
    return [row for each in ranges for batch in reader.read(each) for row in batch.to_pylist()]


def rows(server: RunningServer, topic: str, **options: Any) -> list[dict[str, Any]]:
    """What a batch query reads, in its order."""
    made = source(server, topic, **options)
    reader = made.reader(schema_of(made))
    return read(reader, reader.partitions())


def scanned(frame: DataFrame) -> list[str]:
    """What Spark itself still filters."""
    plan: str = frame._jdf.queryExecution().executedPlan().toString()  # type: ignore[operator]
    return re.findall(r"\bFilter .*", plan)


def column(frame: DataFrame, name: str) -> list[Any]:
    return [row[name] for row in frame.select(name).collect()]


def parsed(frame: DataFrame) -> list[Any]:
    return [json.loads(text) for text in column(frame, "data")]
