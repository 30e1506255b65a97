from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from tests.spark.rig import datas, fill, parsed, save, stages, stream, table
from topics.testing.served import RunningServer


def copy(frame: DataFrame, server: RunningServer, topic: str, checkpoint: Path, **options: Any) -> None:
    """Run a stream into a topic until it has worked off what there is."""
    writer = frame.writeStream.format("topics").option("url", server.url).option("topic", topic)
    writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    writer.options(**{name: str(value) for name, value in options.items()}).start().awaitTermination()


def test_any_type_is_written_as_json(spark: SparkSession, topics_server: RunningServer) -> None:
    row = Row(id=2**60, name="ü\n", more=[None, 1.5], inner=Row(x=None))
    schema = "data struct<id: bigint, name: string, more: array<double>, inner: struct<x: int>>"
    save(spark.createDataFrame([(row,)], schema), topics_server, "structs")
    assert datas(topics_server, "structs") == [{"id": 2**60, "name": "ü\n", "more": [None, 1.5], "inner": {"x": None}}]
    save(spark.createDataFrame([('{"a" : 1}',), (None,)], "data string"), topics_server, "texts")
    assert datas(topics_server, "texts") == [{"a": 1}, None]


def test_all_columns(spark: SparkSession, topics_server: RunningServer) -> None:
    with topics_server.client() as client:
        client.topic("wide").create(partitions=4)
    rows = [
        ("wide", 3, None, "t", "n", {"k": "v"}, "1"),
        ("wide", None, "some key", None, None, None, "2"),
        ("narrow", None, "some key", "u", None, None, "3"),
        ("wide", 3, "some key", None, None, None, "4"),
    ]
    schema = "topic string, partition int, key string, tag string, node string, meta map<string,string>, data string"
    save(spark.createDataFrame(rows, schema), topics_server)
    assert datas(topics_server, "narrow") == [3]
    with topics_server.client() as client:
        home = client.topic("wide").write(0, key="some key").partition
        (first, *_) = client.topic("wide").diff(partition=3).records
    assert (first.tag, first.node, first.meta) == ("t", "n", {"k": "v"})
    assert datas(topics_server, "wide", home) == ([1, 4] if home == 3 else []) + [2, 0]
    assert datas(topics_server, "wide", 3)[:2] == [1, 4]


def test_the_order_of_tasks_is_the_order_of_the_log(spark: SparkSession, topics_server: RunningServer) -> None:
    frame = spark.range(0, 50_000, 1, 5).select(F.col("id").alias("data"))
    save(frame, topics_server, "t")
    assert datas(topics_server, "t") == list(range(50_000))
    assert stages(topics_server) == 0


def test_a_job_is_done_once(spark: SparkSession, topics_server: RunningServer) -> None:
    frame = spark.range(100).select(F.col("id").alias("data"))
    save(frame, topics_server, "t", jobId="nightly-1")
    save(frame.repartition(3), topics_server, "t", jobId="nightly-1")
    assert datas(topics_server, "t") == list(range(100))
    assert stages(topics_server) == 0, "what the second attempt staged is not left behind"
    save(frame, topics_server, "t", jobId="nightly-2")
    assert len(datas(topics_server, "t")) == 200


def test_an_attempt_that_fails_leaves_nothing(
    spark: SparkSession, topics_server: RunningServer, tmp_path: Path
) -> None:
    marker = tmp_path / "failed-once"
    path = str(marker)

    def stumble(rows: Any) -> Any:
        """Fail in the middle of the second task, the first time."""
        import os

        for batch in rows:
            yield batch
            if batch.column(0)[0].as_py() >= 15_000 and not os.path.exists(path):
                open(path, "w").close()
                raise RuntimeError("stumbled")

    frame = spark.range(0, 30_000, 1, 2).mapInArrow(stumble, "id bigint").select(F.col("id").alias("data"))
    save(frame, topics_server, "t")
    assert marker.exists()
    assert datas(topics_server, "t") == list(range(30_000))
    assert stages(topics_server) == 0


def test_a_job_that_fails_writes_nothing(spark: SparkSession, topics_server: RunningServer) -> None:
    broken = spark.range(0, 1000, 1, 2).selectExpr(
        "CASE WHEN id = 999 THEN 'no json' ELSE CAST(id AS string) END AS data"
    )
    with pytest.raises(PySparkException, match=r"records\[\d+\].data is not valid JSON"):
        save(broken, topics_server, "t")
    assert datas(topics_server, "t") == []
    assert stages(topics_server) == 0


def test_a_stream_is_copied_once_however_often_it_is_started(
    spark: SparkSession, topics_server: RunningServer, tmp_path: Path
) -> None:
    fill(topics_server, "from", *range(500))
    frame = stream(spark, topics_server, "from", maxRowsPerTrigger=200).select("data")
    copy(frame, topics_server, "to", tmp_path / "checkpoint")
    assert datas(topics_server, "to") == list(range(500))
    assert len([*(tmp_path / "checkpoint" / "commits").glob("[0-9]*")]) == 3, "200 rows a batch"
    # As after a crash behind the publish: the last batch is done again, and split in another way.
    newest = max((tmp_path / "checkpoint" / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    newest.unlink()
    newest.with_name(f".{newest.name}.crc").unlink(missing_ok=True)
    fill(topics_server, "from", *range(500, 600))
    copy(frame.repartition(3), topics_server, "to", tmp_path / "checkpoint")
    found = datas(topics_server, "to")
    assert found[:500] == list(range(500)) and sorted(found) == list(range(600))
    assert stages(topics_server) == 0


def test_a_lost_commit_adds_nothing_after_many_batches_of_others(
    spark: SparkSession, topics_server: RunningServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topics.core.batch.PUBLISHED_ANSWERS_MAX", 4)
    fill(topics_server, "from", *range(500))
    frame = stream(spark, topics_server, "from").select("data")
    copy(frame, topics_server, "to", tmp_path / "checkpoint")
    lost = tmp_path / "checkpoint" / "commits" / "0"
    lost.unlink()
    lost.with_name(".0.crc").unlink(missing_ok=True)
    with topics_server.client() as client:
        for number in range(20):
            client.topic("other").write(number)
            client.stage("s", "other", [{"data": number}])
            client.publish(["s"], producer=(f"other-{number % 6}", number))
    topics_server.pass_time(40 * 24 * 3_600_000)
    copy(frame, topics_server, "to", tmp_path / "checkpoint")
    assert datas(topics_server, "to") == list(range(500))


def test_a_job_without_an_id_is_not_remembered_for_good(spark: SparkSession, topics_server: RunningServer) -> None:
    save(spark.range(3).selectExpr("id AS data"), topics_server, "t")
    save(spark.range(3).selectExpr("id AS data"), topics_server, "t", jobId="nightly")
    with topics_server.client() as client:
        assert [producer.one_off for producer in client.producers()] == [False, True]


def test_each_job_comes_when_its_time_has_come(spark: SparkSession, topics_server: RunningServer) -> None:
    def done() -> list[Any]:
        """The jobs that can be had, which are then done."""
        with topics_server.client() as client:
            found = client.queue("jobs", node="w").claim(99)
            for job in found:
                job.ack()
        return [job.data for job in found]

    with topics_server.client() as client:
        client.queue("jobs").create()
    delayed = spark.range(0, 8, 1, 2).selectExpr("id AS data", "IF(id % 2 = 0, NULL, id * 60000) AS delay_ms")
    save(delayed, topics_server, "jobs", jobId="one")
    save(delayed, topics_server, "jobs", jobId="one")
    due_ms = topics_server.clock.now_ms() + 3_600_000
    # Half a millisecond behind a whole one.
    timed = spark.range(1).selectExpr("'timed' AS data", f"timestamp_micros({due_ms}500L) AS not_before")
    save(timed.selectExpr("to_json(struct(data)) AS data", "not_before"), topics_server, "jobs")
    assert done() == [0, 2, 4, 6]
    for minute in (1, 3, 5, 7):
        topics_server.pass_time(60_000 if minute == 1 else 120_000)
        assert done() == [minute]
    topics_server.pass_time(due_ms - topics_server.clock.now_ms())
    assert done() == []
    topics_server.pass_time(1)
    assert done() == [{"data": "timed"}]


def test_only_jobs_wait(spark: SparkSession, topics_server: RunningServer) -> None:
    fill(topics_server, "log", 1)
    delayed = spark.range(2).selectExpr("id AS data", "5 AS delay_ms")
    with pytest.raises(PySparkException, match="cannot be delayed"):
        save(delayed, topics_server, "log")
    with pytest.raises(PySparkException, match="does not exist"):
        save(delayed, topics_server, "new")
    with topics_server.client() as client:
        assert [topic.topic for topic in client.topics()] == ["log"]
    assert datas(topics_server, "log") == [1] and stages(topics_server) == 0


def test_what_cannot_be_written_is_said_before_anything_happens(
    spark: SparkSession, topics_server: RunningServer
) -> None:
    for frame, topic, message in [
        (spark.range(1), "t", "there is no column data"),
        (spark.range(1).selectExpr("'1' AS data"), "", "where to"),
        (spark.range(1).selectExpr("'1' AS data", "1 AS tag"), "t", "column tag must be a string"),
        (spark.range(1).selectExpr("'1' AS data"), "a,b", "names one topic"),
        (spark.range(1).selectExpr("'1' AS data", "5.0 AS priority"), "t", "priority must be a whole number"),
        (spark.range(1).selectExpr("'1' AS data", "'5' AS delay_ms"), "t", "delay_ms must be a whole number"),
        (spark.range(1).selectExpr("'1' AS data", "5 AS not_before"), "t", "not_before must be a timestamp"),
        (spark.range(1).selectExpr("'1' AS data", "5 AS delay_ms", "now() AS not_before"), "t", "have one of them"),
    ]:
        with pytest.raises(PySparkException, match=message):
            save(frame, topics_server, topic)
    with pytest.raises(PySparkException, match="only ever appended"):
        spark.range(1).selectExpr("'1' AS data").write.format("topics").option("url", topics_server.url).option(
            "topic", "t"
        ).mode("overwrite").save()
    with pytest.raises(PySparkException, match="does not exist"):
        save(spark.range(1).selectExpr("'1' AS data"), topics_server, "t", create="false")


def test_what_was_read_can_be_written(spark: SparkSession, topics_server: RunningServer) -> None:
    with topics_server.client() as client:
        client.topic("from").write_many(
            [{"data": {"n": 1}, "tag": "t", "meta": {"k": "v"}}, {"data": None, "node": "n"}, {"data": "ü"}]
        )
    save(table(spark, topics_server, "from"), topics_server, "to")
    names = ["node", "tag", "meta", "data"]
    assert (
        table(spark, topics_server, "to").select(names).collect()
        == table(spark, topics_server, "from").select(names).collect()
    )
    assert [json.dumps(value) for value in parsed(table(spark, topics_server, "to"))] == [
        '{"n": 1}',
        "null",
        '"\\u00fc"',
    ]
