from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from pyspark.cloudpickle import dumps
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pyspark_topics import DefaultSource
from topics.errors import InvalidRequest
from topics.spark.source import FORMAT, TopicsSource, preset_source
from topics.testing.served import running_server

KEY = "k-4f1d9c7e-not-to-be-seen"


def test_spark_finds_it_by_its_name() -> None:
    assert DefaultSource is TopicsSource and DefaultSource.name() == FORMAT == "topics"


def test_a_preset_travels_with_its_class() -> None:
    made = preset_source("topics__orders", url="http://host:1", key=KEY, topic="orders")
    there = pickle.loads(dumps(made))
    assert there.name() == "topics__orders"
    options = there({"startingSeq": "5"})._options
    assert (options.url, options.key, options.topics, options.starting_seq) == ("http://host:1", KEY, ("orders",), 5)
    assert TopicsSource.preset == {}, "others know nothing of it"


def test_which_topic_has_to_be_said() -> None:
    with pytest.raises(InvalidRequest, match="option topic is missing"):
        TopicsSource({"url": "http://host:1"}).schema()


def test_a_key_is_in_no_plan_and_no_log(
    spark: SparkSession, spark_event_log: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with running_server(api_keys=KEY) as server:
        spark.dataSource.register(preset_source("topics__keyed", url=server.url, key=KEY))
        frame = spark.read.format("topics__keyed").option("topic", "t").load()
        spark.range(3).selectExpr("id AS data").write.format("topics__keyed").option("topic", "t").mode("append").save()
        said = spark.read.format("topics").option("url", server.url).option("key", KEY).option("topic", "t").load()
        assert frame.count() == said.count() == 3
        plans = [each._jdf.queryExecution().toString() for each in (frame, said)]  # type: ignore[operator]
        said.explain(extended=True)
        query = (
            spark.readStream.format("topics__keyed")
            .option("topic", "t")
            .load()
            .select("data")
            .writeStream.format("topics__keyed")
            .option("topic", "copy")
            .option("checkpointLocation", str(tmp_path))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        with server.client(KEY) as client:
            assert client.topic("copy").state().count == 3
        with pytest.raises(PySparkException) as refused:
            spark.read.format("topics").option("url", server.url).option("key", f"{KEY}x").option(
                "topic", "t"
            ).load().count()
        plans.append(str(refused.value))
    texts = [
        path.read_text(errors="replace")
        for path in [*spark_event_log.rglob("*"), *tmp_path.rglob("*")]
        if path.is_file()
    ]
    assert any("topics__keyed" in text for text in texts), "this is the log of these queries"
    assert not [text for text in [*texts, *plans, "".join(capfd.readouterr())] if KEY in text]


def test_a_key_that_is_wrong_is_said_at_once(spark: SparkSession) -> None:
    with running_server(api_keys=f"{KEY}:read") as server:
        frame = spark.read.format("topics").option("url", server.url).option("topic", "t")
        with pytest.raises(PySparkException, match="key"):
            frame.load().collect()
