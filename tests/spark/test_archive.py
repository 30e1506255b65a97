"""The archive as a query of Spark."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark.lakes import rows_of
from topics.errors import Unauthorized
from topics.spark.archive import archive
from topics.sync import Client
from topics.testing.served import RunningServer, running_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run(spark: SparkSession, root: str, url: str, rows_per_batch: int = 1000) -> None:
    query = archive(spark, root, url=url, available_now=True, rows_per_batch=rows_per_batch)
    query.awaitTermination()
    error = query.exception()
    assert error is None, error


def test_a_server_that_refuses_leaves_no_lake_behind(spark: SparkSession, tmp_path: Path) -> None:
    with running_server(api_keys="boss") as served, pytest.raises(Unauthorized):
        archive(spark, str(tmp_path / "lake"), url=served.url, key="wrong")
    assert list(tmp_path.iterdir()) == []


def test_topics_into_a_lake_over_batches_runs_and_a_lost_checkpoint(
    spark: SparkSession, topics_server: RunningServer, topics_client: Client, tmp_path: Path
) -> None:
    root, orders = str(tmp_path / "lake"), topics_client.topic("orders")
    topics_client.topic("wide").create(partitions=2)
    topics_client.topic("wide").write("first", partition=1)
    orders.write_many([{"data": {"n": n}, "tag": "t", "node": "a", "meta": {"k": "v"}} for n in range(30)])
    run(spark, root, topics_server.url, rows_per_batch=20)
    found = rows_of(root)
    assert [(row["topic"], row["partition"], row["seq"]) for row in found] == [
        *(("orders", 0, seq) for seq in range(1, 31)),
        ("wide", 1, 1),
    ]
    first = found[0]
    assert (first["data"], first["tag"], first["node"], first["meta"]) == ('{"n":0}', "t", "a", '{"k":"v"}')
    assert first["date"] == first["ts"].strftime("%Y-%m-%d")
    shutil.rmtree(Path(root, "_topics"))
    orders.write("more")
    run(spark, root, topics_server.url)
    assert [row["seq"] for row in rows_of(root) if row["topic"] == "orders"] == list(range(1, 32))
    (progress,) = orders.state().archives
    assert (progress.archive, progress.upto_seq, progress.behind) == ("lake", 31, 0)


def test_without_an_end_it_archives_what_comes(
    spark: SparkSession, topics_server: RunningServer, topics_client: Client, tmp_path: Path
) -> None:
    root, orders = str(tmp_path / "lake"), topics_client.topic("orders")
    orders.write(1)
    query = archive(spark, root, "orders", url=topics_server.url, every_ms=50)
    try:
        for count in (1, 2):
            while orders.state().archives == () or orders.state().archives[0].upto_seq < count:
                assert not query.awaitTermination(1), query.exception()
            orders.write(count + 1)
    finally:
        query.stop()
    assert [row["seq"] for row in rows_of(root)][:2] == [1, 2]
