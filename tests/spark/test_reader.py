from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    StringStartsWith,
)
from pyspark.sql.functions import col

from tests.spark.rig import column, fill, parsed, read, rows, scanned, schema_of, source, table
from topics.errors import TopicNotFound
from topics.spark.options import Options
from topics.spark.pages import RecordsLost
from topics.spark.ranges import SeqRange
from topics.spark.reader import Narrowed
from topics.testing.served import RunningServer

SECOND_MS = 1000
MICROSECOND = timedelta(microseconds=1)


def seqs(frame: DataFrame) -> list[int]:
    return sorted(column(frame, "seq"))


def places(server: RunningServer, topic: str, **options: Any) -> list[int]:
    return [row["seq"] for row in rows(server, topic, **options)]


def test_all_columns(spark: SparkSession, topics_server: RunningServer) -> None:
    with topics_server.client() as client:
        client.topic("t").write_many([{"data": {"x": 1}, "tag": "a", "node": "n", "meta": {"k": "v"}}, {"data": "ü"}])
        stamp = client.topic("t").diff().records[0].ts
    first, second = table(spark, topics_server, "t").orderBy("seq").collect()
    assert first.asDict() == {
        "topic": "t",
        "partition": 0,
        "seq": 1,
        "ts": first.ts,
        "node": "n",
        "tag": "a",
        "meta": '{"k":"v"}',
        "data": '{"x":1}',
    }
    assert first.ts.astimezone(UTC) == datetime.fromtimestamp(stamp / SECOND_MS, UTC)
    assert (second.data, second.tag, second.node, second.meta) == ('"ü"', None, None, None)


def test_several_topics_wildcards_and_partitions(topics_server: RunningServer) -> None:
    with topics_server.client() as client:
        client.topic("orders.eu").create(partitions=3)
    for partition in range(3):
        fill(topics_server, "orders.eu", partition, partition=partition)
    fill(topics_server, "orders.us", "us")
    fill(topics_server, "other", "other")
    found = rows(topics_server, "orders.*, other")
    assert [(row["topic"], row["partition"], row["data"]) for row in found] == [
        ("orders.eu", 0, "0"),
        ("orders.eu", 1, "1"),
        ("orders.eu", 2, "2"),
        ("orders.us", 0, '"us"'),
        ("other", 0, '"other"'),
    ]
    assert [row["data"] for row in rows(topics_server, "orders.*", partitions="1,2")] == ["1", "2"]


def test_where_it_begins_and_ends(topics_server: RunningServer) -> None:
    times = []
    for number in range(1, 7):
        fill(topics_server, "t", number)
        times.append(topics_server.clock.now_ms())
        topics_server.pass_time(10)
    assert places(topics_server, "t", startingSeq=3, endingSeq=4) == [3, 4]
    assert places(topics_server, "t", startingSeq="earliest", endingSeq=99) == [1, 2, 3, 4, 5, 6]
    assert places(topics_server, "t", startingSeq="latest") == []
    by_time = {"startingTimestamp": times[1], "endingTimestamp": times[4]}
    assert places(topics_server, "t", **by_time) == [2, 3, 4]
    assert places(topics_server, "t", startingTimestamp=times[1] + 1) == [3, 4, 5, 6]
    assert places(topics_server, "t", startingTimestamp=times[5] + 1) == []
    assert places(topics_server, "t", endingTimestamp=times[0]) == []


def test_tags_and_nodes(topics_server: RunningServer) -> None:
    with topics_server.client() as client:
        for number, tag in enumerate(["a", "ab", "b", None, "c*"], 1):
            client.topic("t").write(number, tag=tag, node=f"n{number}")
    assert places(topics_server, "t", tags="a") == [1]
    assert places(topics_server, "t", tags="a*") == [1, 2]
    assert places(topics_server, "t", tags="b,a*") == [1, 2, 3]
    assert places(topics_server, "t", node="n2") == [1, 3, 4, 5]


def test_one_table_in_many_queries_and_places(spark: SparkSession, topics_server: RunningServer) -> None:
    """With filters that stayed on the table, as Spark keeps them, all of these would read rows of another filter."""
    assert spark.conf.get("spark.sql.python.filterPushdown.enabled") == "true"
    fill(topics_server, "t", *range(1, 11))
    frame = table(spark, topics_server, "t")
    first, last = frame.filter("seq < 4"), frame.filter("seq > 8 AND partition = 0")
    assert seqs(first) == [1, 2, 3] and scanned(first)
    assert frame.count() == 10
    assert seqs(first.union(last)) == [1, 2, 3, 9, 10]
    assert first.alias("a").join(frame.alias("b"), how="cross").count() == 30
    assert seqs(last.alias("a").join(first.alias("b"), how="cross").select("a.seq").distinct()) == [9, 10]
    frame.createOrReplaceTempView("readers_view")
    try:
        for condition, count in {"seq < 4": 3, "true": 10, "seq > 8": 2}.items():
            assert spark.table("readers_view").filter(condition).count() == count
        both = "SELECT seq FROM readers_view WHERE seq < 4 UNION ALL SELECT seq FROM readers_view WHERE seq > 8"
        assert seqs(spark.sql(both)) == [1, 2, 3, 9, 10]
    finally:
        spark.catalog.dropTempView("readers_view")


def test_filters_narrow_what_is_asked_of_the_server(topics_server: RunningServer) -> None:
    fill(topics_server, "t", *range(1, 11))
    filters: list[Filter] = [GreaterThan(("seq",), 2), LessThanOrEqual(("seq",), 4), EqualTo(("node",), "n")]
    for options, taken, bounds in [({"pushdown": "true"}, 2, (2, 4)), ({}, 0, (0, 10))]:
        made = source(topics_server, "t", **options)
        reader = made.reader(schema_of(made))
        assert list(reader.pushFilters(filters)) == filters[taken:]
        (planned,) = reader.partitions()
        assert isinstance(planned, SeqRange)
        assert (planned.from_seq, planned.to_seq) == bounds
        assert [row["seq"] for row in read(reader, [planned])] == list(range(bounds[0] + 1, bounds[1] + 1))


def test_filters_on_topics_and_partitions_leave_the_others_out(topics_server: RunningServer) -> None:
    with topics_server.client() as client:
        client.topic("t").create(partitions=2)
    fill(topics_server, "t", 1, partition=0)
    fill(topics_server, "t", 2, partition=1)
    fill(topics_server, "u", 3)
    made = source(topics_server, "t,u", pushdown="true")
    reader = made.reader(schema_of(made))
    assert list(reader.pushFilters([In(("topic",), ("t", "other")), EqualTo(("partition",), 1)])) == []
    assert [row["data"] for row in read(reader, reader.partitions())] == ["2"]


def test_filters_are_not_taken_where_rows_would_fall_to_them(topics_server: RunningServer) -> None:
    """A gap has no seq of its own, and a dead letter is not where its seq says."""
    fill(topics_server, "t", 1, 2)
    with topics_server.client() as client:
        client.queue("jobs").create(dead_letter="jobs.dead")
        client.queue("jobs").put_many([{"data": 3}, {"data": 4}])
        client.topic("jobs.dead").create()
    filters: list[Filter] = [GreaterThan(("seq",), 1)]
    for topic, options in [("t", {"onGap": "row"}), ("jobs", {})]:
        made = source(topics_server, topic, pushdown="true", **options)
        reader = made.reader(schema_of(made))
        assert list(reader.pushFilters(filters)) == filters
        assert [row["seq"] for row in read(reader, reader.partitions())] == [1, 2]


def test_filters_are_handed_over(spark: SparkSession, topics_server: RunningServer) -> None:
    times = []
    with topics_server.client() as client:
        for number, tag in enumerate(["a", "ab", "b", None, "a"], 1):
            client.topic("t").write(number, tag=tag)
            times.append(datetime.fromtimestamp(topics_server.clock.now_ms() / SECOND_MS, UTC))
            topics_server.pass_time(10)

    def filtered(condition: Any) -> DataFrame:
        return table(spark, topics_server, "t", pushdown="true").filter(condition)

    def pushed(condition: Any, wanted: list[int]) -> None:
        narrowed = filtered(condition).select("seq")
        assert sorted(row.seq for row in narrowed.collect()) == wanted, condition
        assert not scanned(narrowed), condition

    pushed("seq > 2 AND seq <= 4", [3, 4])
    pushed("topic = 't' AND partition = 0 AND tag = 'a'", [1, 5])
    pushed("tag LIKE 'a%'", [1, 2, 5])
    pushed((col("ts") >= times[2]) & (col("ts") < times[4]), [3, 4])
    kept = filtered("tag = 'a' AND node IS NULL AND data = '5'")
    assert seqs(kept) == [5] and scanned(kept)


STAMP = datetime(2024, 1, 1, 0, 0, 0, 5000, UTC)
STAMP_MS = 1_704_067_200_005


def narrowed(*filters: Filter) -> tuple[Narrowed, list[bool]]:
    found = Narrowed()
    return found, [found.take(each, has_tags=False) for each in filters]


def test_filters_on_seq() -> None:
    for filters, bounds in [
        ([EqualTo(("seq",), 5)], (4, 5)),
        ([GreaterThan(("seq",), 5), LessThan(("seq",), 9)], (5, 8)),
        ([GreaterThanOrEqual(("seq",), 5), LessThanOrEqual(("seq",), 9), GreaterThan(("seq",), 2)], (4, 9)),
    ]:
        found, taken = narrowed(*filters)
        assert (found.from_seq, found.to_seq) == bounds and all(taken)


def test_filters_on_time_are_exact_to_the_millisecond() -> None:
    options = Options("http://host", ("t",))
    for filters, bounds in [
        ([GreaterThanOrEqual(("ts",), STAMP), LessThan(("ts",), STAMP)], (STAMP_MS, STAMP_MS)),
        ([GreaterThan(("ts",), STAMP), LessThanOrEqual(("ts",), STAMP)], (STAMP_MS + 1, STAMP_MS + 1)),
        ([GreaterThan(("ts",), STAMP - MICROSECOND), LessThan(("ts",), STAMP + MICROSECOND)], (STAMP_MS, STAMP_MS + 1)),
        ([GreaterThan(("ts",), datetime(1960, 1, 1, tzinfo=UTC))], (1, None)),
    ]:
        found, taken = narrowed(*filters)
        assert all(taken)
        assert (found.options(options).starting_ms, found.options(options).ending_ms) == bounds
    assert narrowed(GreaterThan(("ts",), datetime(2024, 1, 1)))[1] == [False], "without a zone it is another type"


def test_filters_that_only_spark_can_keep() -> None:
    refused = [EqualTo(("tag",), "x*"), EqualTo(("tag",), ""), StringStartsWith(("tag",), ""), EqualTo(("node",), "n")]
    refused += [EqualTo(("seq",), 1.5), GreaterThan(("seq",), None), LessThan(("ts",), datetime(2024, 1, 1))]
    assert not any(narrowed(*refused)[1])
    assert narrowed(EqualTo(("tag",), "a"), EqualTo(("tag",), "b"))[1] == [True, False]
    assert narrowed(IsNotNull(("tag",)), IsNotNull(("seq",)))[1] == [False, True]
    found, _ = narrowed(In(("topic",), ("t", "u")), EqualTo(("topic",), "u"), EqualTo(("partition",), 1))
    assert not found.excludes("u", 1)
    assert found.excludes("t", 1) and found.excludes("u", 0)


def test_it_works_with_push_down_off(spark: SparkSession, topics_server: RunningServer) -> None:
    fill(topics_server, "t", 1, 2, 3)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")
    try:
        assert seqs(table(spark, topics_server, "t").filter("seq > 1")) == [2, 3]
        with pytest.raises(PySparkException, match=r"spark\.sql\.python\.filterPushdown\.enabled"):
            seqs(table(spark, topics_server, "t", pushdown="true").filter("seq > 1"))
    finally:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")


def test_few_large_tasks_in_order(spark: SparkSession, topics_server: RunningServer) -> None:
    for begin in range(0, 20_000, 5000):
        fill(topics_server, "t", *range(begin, begin + 5000))
    assert table(spark, topics_server, "t").rdd.getNumPartitions() == 1
    several = table(spark, topics_server, "t", rowsPerTask=7000)
    assert several.rdd.getNumPartitions() == 3
    assert parsed(several) == list(range(20_000))


def test_a_schema_makes_values(spark: SparkSession, topics_server: RunningServer) -> None:
    fill(topics_server, "t", {"id": 1, "name": "a", "in": {"x": [1, 2]}}, {"id": "no"}, None, {"id": 3, "more": 1})
    frame = table(spark, topics_server, "t", schema="id bigint, name string, in struct<x: array<int>>").orderBy("seq")
    assert frame.schema["value"].dataType.simpleString() == "struct<id:bigint,name:string,in:struct<x:array<int>>>"
    rows = frame.collect()
    assert rows[0].value.asDict(recursive=True) == {"id": 1, "name": "a", "in": {"x": [1, 2]}}
    assert [row.value and row.value.id for row in rows] == [1, None, None, 3]
    assert column(frame, "_corrupt") == [None, '{"id":"no"}', None, None]
    guessed = table(spark, topics_server, "t", schema="infer", endingSeq=1)
    assert column(guessed.select("value.in.x"), "x") == [[1, 2]]


def test_some_columns_by_a_schema_of_ones_own(spark: SparkSession, topics_server: RunningServer) -> None:
    fill(topics_server, "t", 1)
    reader = spark.read.format("topics").option("url", topics_server.url).option("topic", "t")
    assert reader.schema("data string, seq bigint").load().collect() == [("1", 1)]
    with pytest.raises(PySparkException, match="there is no column"):
        reader.schema("id bigint").load().collect()


def test_what_is_lost_is_told(topics_server: RunningServer) -> None:
    with topics_server.client() as client:
        client.topic("t").create(cap_records=2)
    fill(topics_server, "t", 1, 2, 3, 4, 5)
    assert places(topics_server, "t") == [4, 5], "what is there is the table"
    with pytest.raises(RecordsLost, match="records 2 to 3 of topic"):
        rows(topics_server, "t", startingSeq=2)
    found = rows(topics_server, "t", startingSeq=2, onGap="row")
    assert [(row["seq"], row["data"]) for row in found] == [(2, None), (4, "4"), (5, "5")]
    assert [row["gap"] for row in found] == [{"from_seq": 2, "to_seq": 3, "reason": "cap"}, None, None]
    within = rows(topics_server, "t", startingSeq=1, endingSeq=2, onGap="row")
    assert [row["gap"] for row in within] == [{"from_seq": 1, "to_seq": 2, "reason": "cap"}]


def test_what_is_lost_between_planning_and_reading_is_told(topics_server: RunningServer) -> None:
    with topics_server.client() as client:
        client.topic("t").create(cap_records=3)
    fill(topics_server, "t", 1, 2, 3)
    made = source(topics_server, "t", onGap="row")
    reader = made.reader(schema_of(made))
    planned = reader.partitions()
    fill(topics_server, "t", 4, 5)
    assert [row["gap"] or row["seq"] for row in read(reader, planned)] == [
        {"from_seq": 1, "to_seq": 2, "reason": "cap"},
        3,
    ]
    with topics_server.client() as client:
        client.topic("t").drop()
    fill(topics_server, "t", "another")
    assert [row["gap"] for row in read(reader, planned)] == [{"from_seq": 1, "to_seq": 3, "reason": "recreated"}]


def test_deleted_records_are_not_lost(topics_server: RunningServer) -> None:
    with topics_server.client() as client:
        client.topic("t").write_many([{"data": number, "tag": str(number % 2)} for number in range(1, 9)])
        client.topic("t").delete(match="0")
    assert places(topics_server, "t", rowsPerTask=3) == [1, 3, 5, 7]


def test_nothing_to_read(topics_server: RunningServer) -> None:
    with topics_server.client() as client:
        client.topic("t").create()
    assert rows(topics_server, "t") == []
    assert rows(topics_server, "none.*") == []
    with pytest.raises(TopicNotFound):
        rows(topics_server, "none")
    made = source(topics_server, "t")
    assert read(made.reader(schema_of(made)), [InputPartition(None)]) == [], "what Spark makes when there is no range"
