"""What is exported is in `test_load.py`, there and back; here is what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from topics.spark.export import export
from topics.sync import Client
from topics.testing.served import RunningServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_nothing_is_written_over_unless_that_is_meant(
    spark: SparkSession, topics_server: RunningServer, topics_client: Client, tmp_path: Path
) -> None:
    topics_client.topic("t").write_many([{"data": n, "tag": "ab"[n % 2]} for n in range(4)])
    path = str(tmp_path / "out")
    assert export(spark, "t", path, url=topics_server.url).count == 4
    with pytest.raises(Exception, match=r"(?i)already exists"):
        export(spark, "t", path, url=topics_server.url)
    told = export(spark, "t", path, url=topics_server.url, options={"tags": "a"}, overwrite=True)
    assert (told.count, spark.read.parquet(path).count()) == (2, 2)
