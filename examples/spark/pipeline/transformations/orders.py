"""Orders by country, as a declarative pipeline: a streaming table out of a topic, and a view over it.

The server is the one of TOPICS_URL and TOPICS_API_KEY.
"""

from __future__ import annotations

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import sum as sum_

spark = SparkSession.active()


@dp.table
def orders() -> DataFrame:
    """Every order, as it came."""
    stream = (
        spark.readStream.format("topics").option("topic", "orders").option("schema", "country string, cents bigint")
    )
    return stream.load().select("seq", "ts", "value.country", "value.cents")


@dp.materialized_view
def sums() -> DataFrame:
    """What each country has spent."""
    return spark.read.table("orders").groupBy("country").agg(sum_("cents").alias("cents"))


dp.create_sink("expensive", "topics", {"topic": "orders.expensive"})


@dp.append_flow(target="expensive")
def expensive() -> DataFrame:
    """Large orders go into a topic of their own."""
    return spark.readStream.table("orders").where("cents >= 10000").selectExpr("struct(seq, country, cents) AS data")
