from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, ReadMaxRows

from tests.spark.rig import fill, read, schema_of, source, stream
from topics.errors import TopicNotFound, TopicsError
from topics.spark.pages import RecordsLost
from topics.spark.ranges import partition_states
from topics.spark.stream import TopicsStreamReader
from topics.testing.served import RunningServer

ALL = ReadAllAvailable()
GUARD_S = 60


def reader(server: RunningServer, topic: str, **options: Any) -> TopicsStreamReader:
    made = source(server, topic, **({"waitMs": 0} | options))
    found = made.streamReader(schema_of(made))
    assert isinstance(found, TopicsStreamReader)
    return found


def between(query: TopicsStreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[Any]:
    """The gaps and data of a batch."""
    return [row.get("gap") or row["data"] for row in read(query, query.partitions(start, end))]


def test_batches_between_exact_places(topics_server: RunningServer) -> None:
    with topics_server.client() as client:
        client.topic("t").create(partitions=2)
    fill(topics_server, "t", 1, 2, 3, partition=0)
    fill(topics_server, "t", 4, partition=1)
    query = reader(topics_server, "t")
    begin = query.initialOffset()
    assert begin == {"t": {"epoch": 1, "0": 0, "1": 0}}
    first = query.latestOffset(begin, ReadMaxRows(2))
    second = query.latestOffset(first, ReadMaxRows(2))
    assert second == {"t": {"epoch": 1, "0": 3, "1": 1}} == query.reportLatestOffset()
    assert sorted(between(query, begin, first) + between(query, first, second)) == ["1", "2", "3", "4"]
    assert query.latestOffset(second, ALL) == second
    assert between(query, second, second) == []
    fill(topics_server, "t", 5)
    assert between(query, begin, first) + between(query, first, second) == between(query, begin, first) + between(
        query, first, second
    ), "a batch that is read again is the same"


def test_where_a_new_query_begins(topics_server: RunningServer) -> None:
    with topics_server.client() as client:
        client.topic("t").create(cap_records=3)
    fill(topics_server, "t", 1, 2, 3, 4, 5)
    for options, seq in [({}, 2), ({"startingSeq": "latest"}, 5), ({"startingSeq": 4}, 3), ({"startingSeq": 1}, 0)]:
        assert reader(topics_server, "t", **options).initialOffset()["t"]["0"] == seq


def test_available_now_ends_where_the_heads_were(topics_server: RunningServer) -> None:
    fill(topics_server, "t", 1, 2)
    query = reader(topics_server, "t*")
    begin = query.initialOffset()
    query.prepareForTriggerAvailableNow()
    fill(topics_server, "t", 3)
    fill(topics_server, "tt", "new")
    end = query.latestOffset(begin, ALL)
    assert (end["t"]["0"], between(query, begin, end)) == (2, ["1", "2"])


@pytest.mark.parametrize("partitions", [1, 3])
def test_it_waits_for_news(topics_server: RunningServer, partitions: int) -> None:
    with topics_server.client() as client:
        client.topic("t").create(partitions=partitions)
    query = reader(topics_server, "t", waitMs=30_000)
    start = query.initialOffset()
    with ThreadPoolExecutor(1) as threads:
        latest = threads.submit(query.latestOffset, start, ALL)
        fill(topics_server, "t", 1, partition=partitions - 1)
        assert latest.result(GUARD_S)["t"][str(partitions - 1)] == 1


def test_a_wait_ends_when_the_topic_does(topics_server: RunningServer) -> None:
    fill(topics_server, "t", 1)
    query = reader(topics_server, "t", waitMs=10 * GUARD_S * 1000)
    start = query.reportLatestOffset()
    states = partition_states(query._options, query._server)
    with topics_server.client() as client:
        client.topic("t").drop()
    with ThreadPoolExecutor(1) as threads:
        threads.submit(query._wait, start, states).result(GUARD_S)
    with pytest.raises(TopicNotFound):
        query.latestOffset(start, ALL)


@pytest.mark.parametrize(
    ("options", "limit", "count"),
    [
        ({}, ALL, 20),
        ({"maxRowsPerTrigger": 7}, ReadMaxRows(7), 7),
        ({"maxBytesPerTrigger": 1}, ReadMaxBytes(1), 1),
        ({"maxRowsPerTrigger": 7, "maxBytesPerTrigger": 1}, ReadMaxRows(7), 1),
    ],
)
def test_a_batch_is_as_large_as_the_options_say(
    topics_server: RunningServer, options: dict[str, Any], limit: ReadLimit, count: int
) -> None:
    fill(topics_server, "t", *range(20))
    query = reader(topics_server, "t", **options)
    assert query.getDefaultReadLimit() == limit
    assert query.latestOffset(query.initialOffset(), limit)["t"]["0"] == count


def test_new_topics_of_a_wildcard_are_read_from_their_beginning(topics_server: RunningServer) -> None:
    fill(topics_server, "in.a", 1)
    query = reader(topics_server, "in.*")
    start = query.latestOffset(query.initialOffset(), ALL)
    fill(topics_server, "in.b", 2, 3)
    assert between(query, start, query.latestOffset(start, ALL)) == ["2", "3"]


def test_what_is_lost_under_a_query_is_told(topics_server: RunningServer) -> None:
    with topics_server.client() as client:
        client.topic("capped").create(cap_records=2)
        client.topic("aging").create(ttl_ms=1000)
    for topic, reason in [("capped", "cap"), ("aging", "ttl")]:
        fill(topics_server, topic, 1, 2)
        telling, failing = reader(topics_server, topic, onGap="row"), reader(topics_server, topic)
        start = telling.latestOffset(telling.initialOffset(), ALL)
        fill(topics_server, topic, 3, 4)
        topics_server.pass_time(2000)
        fill(topics_server, topic, 5, 6)
        end = telling.latestOffset(start, ALL)
        assert between(telling, start, end) == [{"from_seq": 3, "to_seq": 4, "reason": reason}, "5", "6"]
        with pytest.raises(RecordsLost, match="records 3 to 4"):
            between(failing, start, end)


def test_a_topic_made_anew_is_told_and_read_from_its_beginning(topics_server: RunningServer) -> None:
    fill(topics_server, "t", 1, 2, 3)
    query = reader(topics_server, "t", onGap="row")
    start = query.latestOffset(query.initialOffset(), ALL)
    with topics_server.client() as client:
        client.topic("t").drop()
    with pytest.raises(TopicsError):
        query.latestOffset(start, ALL)
    fill(topics_server, "t", "new")
    end = query.latestOffset(start, ALL)
    gap, data = between(query, start, end)
    assert (gap["reason"], data) == ("recreated", '"new"')
    with pytest.raises(RecordsLost, match="recreated"):
        between(reader(topics_server, "t"), start, end)


def test_a_query_in_spark(spark: SparkSession, topics_server: RunningServer, tmp_path: Path) -> None:
    """From the beginning, over a restart with its checkpoint, with what was lost in between."""
    with topics_server.client() as client:
        client.topic("t").create(cap_records=3)
    fill(topics_server, "t", 1, 2)
    frame = stream(spark, topics_server, "t", onGap="row").selectExpr("coalesce(to_json(gap), data) AS told")

    def run(*more: int) -> list[str]:
        told: list[str] = []

        def take(batch: DataFrame, _: int) -> None:
            told.extend(row.told for row in batch.collect())

        query = frame.writeStream.foreachBatch(take).option("checkpointLocation", str(tmp_path)).start()
        try:
            query.processAllAvailable()
            if more:
                fill(topics_server, "t", *more)
                query.processAllAvailable()
        finally:
            query.stop()
        return told

    assert run(3) == ["1", "2", "3"]
    fill(topics_server, "t", *range(4, 10))
    assert run() == ['{"from_seq":4,"to_seq":6,"reason":"cap"}', "7", "8", "9"]
