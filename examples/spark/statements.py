"""Statements in a Spark session: take records as a group, work on them in Spark, say that they are done."""

from __future__ import annotations

from pyspark.sql import SparkSession

import topics.spark
from topics.spark.launch import session

TOTALS = """
    SELECT get_json_object(payload, '$.country') AS country, sum(get_json_object(payload, '$.cents')) AS cents
    FROM taken GROUP BY 1 ORDER BY 1
"""


def main(spark: SparkSession, url: str = "") -> None:
    topics.spark.connect(spark, url)
    spark.sql("CREATE TOPIC IF NOT EXISTS orders.totals WITH (retention_seconds = 86400)")
    while taken := (batch := spark.sql("CONSUME FROM orders GROUP 'totals' LIMIT 1000")).collect():
        batch.createOrReplaceTempView("taken")
        totals = [row.asDict() for row in spark.sql(TOTALS).collect()]
        spark.sql("INSERT INTO TOPIC orders.totals VALUES (?)", [totals])
        done = max(row["offset"] for row in taken)
        spark.sql("ACK orders GROUP 'totals' UPTO OFFSET :done", {"done": done})
    spark.sql("SELECT group_id, committed_offset, lag FROM system.groups").show()
    topics.spark.disconnect(spark)


if __name__ == "__main__":
    with session() as spark:
        main(spark)
