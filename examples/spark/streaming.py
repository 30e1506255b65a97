"""A stream: orders as they come, counted by country, each batch into a topic exactly once."""

from __future__ import annotations

from pyspark.sql import SparkSession

import topics.spark
from topics.spark.launch import session


def main(spark: SparkSession, url: str = "", checkpoint: str = "./checkpoint", available_now: bool = False) -> None:
    topics.spark.connect(spark, url)
    orders = spark.readStream.format("topics").option("topic", "orders").option("schema", "country string").load()
    counts = orders.groupBy("value.country").count()
    query = (
        counts.selectExpr("struct(country, count) AS data", "country AS tag")
        .writeStream.format("topics")
        .option("topic", "orders.counts")
        .option("checkpointLocation", checkpoint)
        .outputMode("update")
        .trigger(**({"availableNow": True} if available_now else {"processingTime": "1 second"}))
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    with session() as spark:
        main(spark)
