"""History that leaves the server and not you: archive a topic into a lake, and read both as one table."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

import topics.spark
from topics.spark import lake
from topics.spark.launch import session


def main(spark: SparkSession, url: str = "", location: str = "./lake") -> DataFrame:
    """Every order there ever was."""
    topics.spark.connect(spark, url)
    lake.archive(spark, location, "orders", url=url, available_now=True).awaitTermination()
    lake.optimize(location)
    return spark.read.format("topics").option("topic", "orders").option("history", "lake").load()


if __name__ == "__main__":
    with session() as spark:
        main(spark).show()
