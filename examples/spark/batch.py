"""A topic as a DataFrame: orders by country, written into another topic, once however often it is run."""

from __future__ import annotations

from pyspark.sql import SparkSession

import topics.spark
from topics.spark.launch import session

SCHEMA = "country string, cents bigint"


def main(spark: SparkSession, url: str = "") -> None:
    topics.spark.connect(spark, url)
    orders = spark.read.format("topics").option("topic", "orders").option("schema", SCHEMA).load()
    sums = orders.groupBy("value.country").agg({"value.cents": "sum"}).toDF("country", "cents").orderBy("country")
    sums.show()
    (
        sums.selectExpr("struct(country, cents) AS data", "country AS tag")
        .write.format("topics")
        .option("topic", "orders.sums")
        .option("jobId", "sums-of-today")
        .mode("append")
        .save()
    )


if __name__ == "__main__":
    with session() as spark:
        main(spark)
