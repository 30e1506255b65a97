"""A stream: large orders go into a topic of their own as they come, each exactly once."""

from __future__ import annotations

from pyspark.sql import SparkSession

import topics.spark
from topics.spark.launch import session

SCHEMA = "country string, cents bigint"


def main(spark: SparkSession, url: str = "", checkpoint: str = "./checkpoint", available_now: bool = False) -> None:
    topics.spark.connect(spark, url)
    orders = spark.readStream.format("topics").option("topic", "orders").option("schema", SCHEMA).load()
    query = (
        orders.where("value.cents >= 10000")
        .selectExpr("value AS data", "value.country AS tag")
        .writeStream.format("topics")
        .option("topic", "orders.large")
        .option("checkpointLocation", checkpoint)
        .trigger(**({"availableNow": True} if available_now else {"processingTime": "1 second"}))
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    with session() as spark:
        main(spark)
