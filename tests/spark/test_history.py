"""A topic and its lake as one table: nothing twice, nothing left out, in order. All but one without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.types import StructType

from tests.spark.byhand import Archiver
from topics.spark.columns import BASE, source_schema
from topics.spark.options import parse_options
from topics.spark.pages import RecordsLost
from topics.spark.reader import TopicsReader
from topics.spark.server import Server
from topics.spark.stream import TopicsStreamReader
from topics.sync import Client
from topics.testing.served import RunningServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def read(server: Server, **given: str) -> list[dict[str, Any]]:
    """The rows that a batch query gets, in the order of its tasks."""
    options = parse_options({"url": "http://said.elsewhere", "topic": "t", "history": "lake", **given})
    schema = source_schema(options, server)
    assert isinstance(schema, StructType)
    reader = TopicsReader(options, server, schema)
    batches = [batch for partition in reader.partitions() for batch in reader.read(partition)]
    return [row for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize("kept", [3, 15])
def test_lake_and_server_are_one_table(
    topics_server: RunningServer, spark_server: Server, topics_client: Client, tmp_path: Path, kept: int
) -> None:
    """What the server still has overlaps with the lake, or begins behind it."""
    server, topic = spark_server, topics_client.topic("t")
    topic.create(cap_records=kept, protect_unarchived=True)
    archiver = Archiver(server, str(tmp_path / "lake"))
    times = []
    for start in (0, 10):
        topic.write_many([{"data": n, "tag": f"t{n % 3}", "node": "ab"[n % 2]} for n in range(start, start + 10)])
        archiver.batch()
        times.append(topics_server.clock.now_ms())
        topics_server.pass_time(1000)
    topic.write_many([{"data": n} for n in range(20, 25)])
    assert topic.state().earliest_seq == 25 - max(kept, 5) + 1
    assert [(row["seq"], row["data"]) for row in read(server)] == [(n + 1, str(n)) for n in range(25)]
    assert [row["data"] for row in read(server, rowsPerTask="4")] == [str(n) for n in range(25)]
    assert [row["seq"] for row in read(server, startingSeq="8", endingSeq="22")] == list(range(8, 23))
    assert [row["data"] for row in read(server, tags="t1")] == [str(n) for n in range(20) if n % 3 == 1]
    assert [row["data"] for row in read(server, tags="t1,t2*")] == [str(n) for n in range(20) if n % 3]
    assert {row["node"] for row in read(server, node="a")} == {"b", None}
    assert [row["seq"] for row in read(server, startingTimestamp=str(times[1]))] == list(range(11, 26))
    assert [row["seq"] for row in read(server, endingTimestamp=str(times[1]))] == list(range(1, 11))
    assert len(read(server, location=str(tmp_path / "lake"))) == 25


def test_a_topic_that_is_in_no_lake_is_read_from_the_server(spark_server: Server, topics_client: Client) -> None:
    topics_client.topic("t").write(1)
    assert [row["seq"] for row in read(spark_server)] == [1]


def test_a_partition_without_records_does_not_hide_the_lake(
    spark_server: Server, topics_client: Client, tmp_path: Path
) -> None:
    topic = topics_client.topic("t")
    topic.create(partitions=3, cap_records=1, protect_unarchived=True)
    topic.write_many([{"data": n} for n in range(4)], partition=2)
    Archiver(spark_server, str(tmp_path / "lake")).batch()
    assert topic.state(partition=2).count == 1
    assert [row["data"] for row in read(spark_server)] == ["0", "1", "2", "3"]


def test_gaps_of_the_lake_and_of_the_server_are_told(
    spark_server: Server, topics_client: Client, tmp_path: Path
) -> None:
    server, topic = spark_server, topics_client.topic("t")
    topic.create(cap_records=2)
    topic.write_many([{"data": n} for n in range(5)])
    Archiver(server, str(tmp_path / "lake")).batch()
    topic.write_many([{"data": n} for n in range(5, 8)])
    rows = read(server, onGap="row", rowsPerTask="2")
    told = [(row["gap"]["from_seq"], row["gap"]["to_seq"]) if row["gap"] else row["seq"] for row in rows]
    assert told == [(1, 2), (3, 3), 4, 5, (6, 6), 7, 8]
    with pytest.raises(RecordsLost, match="records 1 to 2 of"):
        read(server)
    assert [row["seq"] for row in read(server, startingSeq="7")] == [7, 8]


def test_a_stream_begins_in_the_lake_and_goes_on_at_the_server(
    spark_server: Server, topics_client: Client, tmp_path: Path
) -> None:
    server, topic = spark_server, topics_client.topic("t")
    topic.create(cap_records=2, protect_unarchived=True)
    topic.write_many([{"data": n} for n in range(9)])
    Archiver(server, str(tmp_path / "lake")).batch()
    topic.write_many([{"data": n} for n in range(9, 12)])
    options = parse_options({"url": "http://said.elsewhere", "topic": "t", "history": "lake"})
    reader = TopicsStreamReader(options, server, BASE)
    ranges = reader.partitions(reader.initialOffset(), reader.reportLatestOffset())
    batches = [batch for partition in ranges for batch in reader.read(partition)]
    assert [row["data"] for batch in batches for row in batch.to_pylist()] == [str(n) for n in range(12)]


def test_a_query_of_spark(
    spark: SparkSession, topics_server: RunningServer, spark_server: Server, topics_client: Client, tmp_path: Path
) -> None:
    server, topic = spark_server, topics_client.topic("t")
    topic.create(cap_records=2, protect_unarchived=True)
    topic.write_many([{"data": n} for n in range(9)])
    Archiver(server, str(tmp_path / "lake")).batch()
    topic.write(9)
    rows = spark.read.format("topics").options(url=topics_server.url, topic="t", history="lake").load().collect()
    assert [row.data for row in rows] == [str(n) for n in range(10)]
