"""Where rows go, and how a task and a driver write them: the sink by hand, as Spark calls it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import DoubleType, StringType, StructField, StructType

from tests.spark.rig import datas, source, stages
from topics.errors import Forbidden, InvalidRequest
from topics.spark.options import parse_options
from topics.spark.outgoing import Outgoing, check_columns
from topics.spark.server import Server
from topics.spark.source import TopicsSource
from topics.spark.staging import Target
from topics.testing.served import RunningServer, running_server
from topics.wire.routing import partition_of

DATA = StructType().add("data", StringType())


def batch(**columns: Any) -> Any:
    return pa.RecordBatch.from_pydict(columns)


def split(server: Server, rows: Any, topic: str = "") -> dict[Target, list[str]]:
    outgoing = Outgoing(parse_options({"url": "http://host:1", "topic": topic}), server)
    return {target: records["data"].to_pylist() for target, records in outgoing.split(rows)}


def test_rows_go_where_their_columns_say(spark_server: Server, topics_server: RunningServer) -> None:
    with topics_server.client() as client:
        client.topic("wide").create(partitions=3)
    rows = batch(
        data=["1", "2", "3", "4", "5"],
        topic=["one", "wide", "wide", "one", "wide"],
        key=["a", "a", "b", None, None],
        partition=pa.array([None, None, 2, None, None], pa.int16()),
    )
    home = partition_of("a", 3)
    found = split(spark_server, rows)
    assert found[Target("one", 0)] == ["1", "4"] and spark_server.is_there("one"), "it is made where it is missing"
    assert {target.partition: texts for target, texts in found.items() if target.topic == "wide"} == (
        {home: ["2"], 2: ["3"], 0: ["5"]} if home == 1 else {0: ["2", "5"], 2: ["3"]} if home == 0 else {2: ["2", "3"]}
    )
    assert split(spark_server, rows.slice(0, 0), "one") == {}


def test_rows_that_cannot_go_anywhere_are_refused(spark_server: Server) -> None:
    spark_server.create("t")
    with pytest.raises(InvalidRequest, match="column topic is null in a row, and there is no option topic"):
        split(spark_server, batch(data=["1", "2"], topic=["t", None]))
    for partition in (1, -1):
        with pytest.raises(InvalidRequest, match=rf'topic "t" has partitions 0 to 0, and a row is for {partition}'):
            split(spark_server, batch(data=["1", "2"], partition=[0, partition]), "t")
    with pytest.raises(InvalidRequest, match="column partition must be a whole number"):
        schema = StructType([*DATA, StructField("partition", DoubleType())])
        check_columns(parse_options({"url": "http://host:1", "topic": "t"}), schema)


def test_who_may_not_make_a_topic_is_told_to_have_it_made() -> None:
    with running_server(api_keys="boss,writer:read+write:t") as served:
        server = Server(served.url, "writer", 10_000)
        with pytest.raises(Forbidden, match=r'topic "t" is not there, and it cannot be made: .*; make it first'):
            split(server, batch(data=["1"]), "t")
        with served.client("boss") as client:
            client.topic("t").create()
        assert split(server, batch(data=["1"]), "t") == {Target("t", 0): ["1"]}
        server.close()


@pytest.mark.parametrize("is_stream", [False, True])
def test_who_may_write_need_not_read(is_stream: bool) -> None:
    """By key, to a heap by priority, and to a named partition: each once, and without a stage left behind."""
    with running_server(api_keys="boss,writer:write,reader:read") as served:
        with served.client("boss") as client:
            client.topic("wide").create(partitions=3)
            client.heap("heap").create(partitions=2)
        rows = batch(data=["1", "2", "3"], key=["a", "b", None], partition=pa.array([None, None, 2], pa.int32()))
        messages = batch(data=["4"], key=["a"], priority=[7])
        for topic, each in (("wide", rows), ("heap", messages)):
            for _ in range(2):
                writes(source(served, topic, key="writer", jobId=topic, producerId=topic), is_stream, each)
        with served.client("boss") as client:
            for data, partition in ((1, partition_of("a", 3)), (2, partition_of("b", 3)), (3, 2)):
                found = client.topic("wide").diff(partition=partition).records
                assert [record.data for record in found].count(data) == 1
            (message,) = client.topic("heap").diff(partition=partition_of("a", 2)).records
            assert (message.data, message.meta) == (4, {"$priority": "7"})
        assert stages(served) == 0
        with pytest.raises(InvalidRequest, match="column priority is for heaps"):
            writes(source(served, "wide", key="writer"), is_stream, messages)
        with pytest.raises(Forbidden, match=r'topic "none" is not there, and it cannot be made: .*; make it first'):
            writes(source(served, "none", key="writer"), is_stream, rows)
        with pytest.raises(Forbidden, match="this key lacks the scope write"):
            writes(source(served, "wide", key="reader"), is_stream, rows)


def writes(made: TopicsSource, is_stream: bool, rows: Any) -> None:
    """One task, and the driver behind it."""
    if is_stream:
        stream = made.streamWriter(DATA, overwrite=False)
        stream.commit([stream.write(iter([rows]))], 1)
    else:
        writer = made.writer(DATA, overwrite=False)
        writer.commit([writer.write(iter([rows]))])


def test_a_time_to_come_is_a_timestamp_or_milliseconds(spark_server: Server, topics_server: RunningServer) -> None:
    with topics_server.client() as client:
        client.queue("jobs").create()
    outgoing = Outgoing(parse_options({"url": "http://host:1", "topic": "jobs"}), spark_server)
    for times in (pa.array([1001, None], pa.int64()), pa.array([1_000_001, None], pa.timestamp("us", "UTC"))):
        ((_, records),) = outgoing.split(batch(data=["1", "2"], not_before=times))
        assert records["not_before"].to_pylist() == [1001, None]


@pytest.mark.parametrize("is_stream", [False, True])
def test_what_is_given_up_is_seen_by_nobody(topics_server: RunningServer, is_stream: bool) -> None:
    """Tasks that are done, and a driver that says no; then it says yes, and says it again."""
    made = source(topics_server, "t", jobId="once", producerId="once")
    schema = StructType().add("data", StringType())
    if is_stream:
        stream = made.streamWriter(schema, overwrite=False)
        stream.abort([stream.write(iter([batch(data=["1"])])), None], 7)
        for _ in range(2):
            stream.commit([stream.write(iter([batch(data=["2"]), batch(data=["3"])])), None], 7)
    else:
        writer = made.writer(schema, overwrite=False)
        writer.abort([writer.write(iter([batch(data=["1"])])), None])
        for _ in range(2):
            writer.commit([writer.write(iter([batch(data=["2"]), batch(data=["3"])])), None])
    assert datas(topics_server, "t") == [2, 3]
